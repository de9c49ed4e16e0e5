"""The help of a verb: common options first, then by group; lines of at most 80 columns.

usage, description, positional arguments, options
calls, times, reading, output, ... groups that several verbs share, in the order of GROUPS
examples: a command on a line, what it does below it
"""

import argparse
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

GROUPS: Final = (
    "filters; a call must match all of them",
    "time",
    "reading captures",
    "live capture",
    "following a directory",
    "Spark",
    "advanced",
)
"""Titles of the groups of options, in their order after the common ones."""

_WIDEST: Final = 80
_USAGE: Final = "usage: "
_CONTINUED: Final = re.compile(r"\n  (?!.*kwsniff )")
_SHELL_WORD: Final = re.compile(r"""(?:-{1,2}[a-z][\w-]* (?![-|<>]))?(?:[^\s"']|"[^"]*"|'[^']*')+""")
_COMMAND: Final = re.compile(r"  (\S.*?)(?: {2,}(\S.*))?")


def group_of(parser: argparse.ArgumentParser, title: str) -> argparse._ArgumentGroup:
    """The group of that title, made where the parser has none."""
    found = (group for group in parser._action_groups if group.title == title)
    return next(found, None) or parser.add_argument_group(title)


def in_order(groups: Iterable[argparse._ArgumentGroup]) -> list[argparse._ArgumentGroup]:
    """Common options first."""
    return sorted(groups, key=lambda group: GROUPS.index(group.title) if group.title in GROUPS else -1)


def fill_usage(usage: str) -> list[str]:
    """A usage line in as many as it takes."""
    return textwrap.wrap(
        usage, _width() - len(_USAGE), subsequent_indent=" " * len(_USAGE), break_on_hyphens=False
    )


def _width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDEST)


class HelpFormatter(argparse.HelpFormatter):
    """As argparse's, at most 80 columns wide, and with examples."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = (self._fill_block(block, width) for block in text.strip().split("\n\n"))
        return "\n\n".join(blocks) + "\n"

    def _fill_block(self, block: str, width: int) -> str:
        lines = block.splitlines()
        if not any(line.startswith("  ") for line in lines):
            return textwrap.fill(" ".join(lines), width)
        whole = _CONTINUED.sub(" ", block).splitlines()
        return "\n".join(line for each in whole for line in _example_lines(each, width))


def _example_lines(line: str, width: int) -> Iterator[str]:
    """`  COMMAND   what it does` on two lines; a heading as it is. A long command is continued."""
    found = _COMMAND.fullmatch(line)
    if found is None:
        yield line
        return
    command, effect = found.groups()
    first, *words = _SHELL_WORD.findall(command)
    begun = f"  {first}"
    for word in words:
        if len(begun) + len(word) + 3 > width:
            yield f"{begun} \\"
            begun = f"      {word}"
        else:
            begun += f" {word}"
    yield begun
    if effect:
        yield from textwrap.wrap(effect, width, initial_indent="      ", subsequent_indent="      ")
