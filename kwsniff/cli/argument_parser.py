"""Errors in the command line, in one line each: the mistake, and a suggestion. And help in groups."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from kwsniff.cli.help_text import HelpFormatter, fill_usage, in_order
from kwsniff.errors import UsageError


class Parser(argparse.ArgumentParser):
    """Raises UsageError where argparse would print all options and exit; also for verbs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": HelpFormatter, **options})

    def format_help(self) -> str:
        """All options by group; the usage names only those that must be given."""
        self._action_groups = in_order(self._action_groups)
        self.usage = self._short_usage()
        return super().format_help()

    def _short_usage(self) -> str:
        needed = [action for action in self._actions if action.required and action.option_strings]
        words = [f"{action.option_strings[0]} {action.metavar}" for action in needed]
        given = HelpFormatter("")._format_usage(None, self._get_positional_actions(), [], "")
        usage = " ".join([self.prog.replace("%", "%%"), "[options]", *words, *given.split()])
        return "\n".join(fill_usage(usage))

    def error(self, message: str) -> NoReturn:
        """Raises UsageError with argparse's message and a pointer to the help."""
        raise UsageError(f"{message}; see {self.prog} --help")

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """As in argparse, but the verb itself reports an unexpected argument."""
        found, unknown = super().parse_known_args(args, namespace)
        for word in unknown:
            if word.startswith("-") and word != "--":
                self._no_option(word.partition("=")[0])
        if unknown:
            self.error(f"unexpected argument {unknown[0]!r}")
        return found, unknown

    def _no_option(self, option: str) -> NoReturn:
        from difflib import get_close_matches

        known = [name for name in self._option_string_actions if name.startswith("--")]
        near = get_close_matches(option, known, 2, 0.65)
        hint = f"did you mean {' or '.join(near)}?" if near else f"{self.prog} --help lists them"
        raise UsageError(f"unknown option {option}; {hint}")
