"""Lines of `kwsniff explain`: they fit into 80 columns."""

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Final

WIDTH: Final = 80
_LEAST: Final = 24
"""Columns that the last cell of a row has at least; with less, it continues on a line of its own."""


def paragraph(text: str, label: str = "") -> list[str]:
    """A text, indented by 2; its label is the beginning of the first line."""
    return wrap(
        f"{label}{text}", WIDTH, initial_indent="  ", subsequent_indent="    " if label else "  ",
        break_on_hyphens=False,
    )  # fmt: skip


def pairs(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Names, each with its text beside it or, where a name is long, below it."""
    listed = list(rows)
    widest = min(max((len(name) for name, _ in listed), default=0), 26)
    lines: list[str] = []
    for name, text in listed:
        first = f"    {name.ljust(widest)}  "
        if len(name) > widest:
            lines.append(f"    {name}")
            first = " " * (widest + 6)
        lines += wrap(
            text, WIDTH, initial_indent=first, subsequent_indent=" " * (widest + 6), break_on_hyphens=False
        ) or [first.rstrip()]
    return lines


def _cut(line: str) -> str:
    """The beginning of a line, up to a space."""
    return f"{line[: WIDTH - 4].rpartition(' ')[0].rstrip()} ..."


def table(rows: Sequence[Sequence[str]], *, cut: bool = False) -> list[list[str]]:
    """The lines of each row, columns padded to their widest cell. The last cell is wrapped, or cut to one
    line."""
    *fixed, _ = (
        (max((len(cell) for cell in column), default=0) for column in zip(*rows, strict=True))
        if rows
        else (0,)
    )
    begin = 2 + sum(width + 2 for width in fixed)
    texts: list[list[str]] = []
    for *cells, last in rows:
        head = "  " + "".join(cell.ljust(width) + "  " for cell, width in zip(cells, fixed, strict=True))
        room = WIDTH - begin
        if not last or len(head) + len(last) <= WIDTH:
            texts.append([(head + last).rstrip()])
        elif cut:
            texts.append([_cut(f"{head}{last}")])
        elif room >= _LEAST:
            first, *others = wrap(last, room, break_on_hyphens=False)
            texts.append([head + first, *(" " * begin + each for each in others)])
        else:
            texts.append([head.rstrip(), *(f"      {each}" for each in wrap(last, WIDTH - 6))])
    return texts
