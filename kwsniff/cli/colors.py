"""Lines on a terminal, with colors; anywhere else, with NO_COLOR or on a dumb terminal, as plain text."""

import re
import sys
from collections.abc import Callable, Iterable, Sequence

from kwsniff.texts import clean

Styles = Sequence[tuple[re.Pattern[str], str]]
"""Patterns in a line, each with a style of rich; later ones win."""


def line_printer(styles: Styles, *, plain: bool = False) -> Callable[[Iterable[str]], None]:
    """A function that prints lines to standard output. Control characters of names are escaped."""
    return _print_plain if plain or not sys.stdout.isatty() else _color_printer(styles)


def _print_plain(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{clean(line)}\n" for line in lines)


def _color_printer(styles: Styles) -> Callable[[Iterable[str]], None]:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)

    def draw(lines: Iterable[str]) -> None:
        for line in lines:
            text = Text(clean(line))
            for pattern, style in styles:
                text.highlight_regex(pattern, style)
            console.print(text, soft_wrap=True)

    return draw
