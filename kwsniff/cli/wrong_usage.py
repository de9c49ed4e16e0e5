"""A command line that cannot be understood, told in one line: what is wrong, and what may have been meant."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from kwsniff.errors import UsageError


class Parser(argparse.ArgumentParser):
    """Raises UsageError where argparse would print every option that there is and exit; for verbs, too."""

    def error(self, message: str) -> NoReturn:
        """Raises UsageError: what argparse says, and where to read on."""
        raise UsageError(f"{message}; see {self.prog} --help")

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """As argparse has it, but a word that no argument takes is told by the verb that was given it."""
        found, unknown = super().parse_known_args(args, namespace)
        for word in unknown:
            if word.startswith("-") and word != "--":
                self._no_option(word.partition("=")[0])
        if unknown:
            self.error(f"{unknown[0]!r} is one word too many")
        return found, unknown

    def _no_option(self, option: str) -> NoReturn:
        from difflib import get_close_matches

        known = [name for name in self._option_string_actions if name.startswith("--")]
        near = get_close_matches(option, known, 2, 0.65)
        hint = f"did you mean {' or '.join(near)}?" if near else f"{self.prog} --help lists them"
        raise UsageError(f"{self.prog} has no option {option}; {hint}")
