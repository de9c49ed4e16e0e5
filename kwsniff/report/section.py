"""Parts of a page: sections of sentences, charts, tables. The template escapes all texts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from kwsniff.report.chart_labels import label
from kwsniff.report.drawing import Drawing

_GROUPED = 1000
"""From here on, numbers have commas."""
MOST_LETTERS = 400
"""Limit for a field or a heading: a name from the wire can be 32 kB long."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One field of a table."""

    text: str
    kind: Literal["text", "number", "code"] = "text"
    title: str = ""
    """Tooltip."""
    share: float | None = None
    """0 to 1: a bar behind the text."""
    link: str = ""
    """Link target: the id of another part of the page."""
    value: int | float | None = None
    """What rows are sorted by, where it is not the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a caption."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    folded: bool = False
    """Collapsed on the screen until opened, expanded on paper."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart with a text alternative."""

    name: str
    label: str
    drawings: Sequence[Drawing]
    """Below one another."""
    legend: Sequence[tuple[str, str]] = ()
    """Legend: colours and their meanings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One claim with its proof."""

    name: str
    """Its id in the page."""
    heading: str
    weight: str
    """problem, warning or info: its colour."""
    lines: Sequence[tuple[str, str]]
    """Pairs of a label, which may be empty, and a sentence."""
    commands: Sequence[tuple[str, str]] = ()
    """Pairs of a description and a command."""
    proof: Table | None = None
    """Opens on click."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One heading of a page."""

    name: str
    """Its id in the page."""
    title: str
    says: Sequence[str] = ()
    items: Sequence[Item] = ()
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    links: Sequence[tuple[str, str]] = field(default=())
    """Text, and the id of its link target."""


def text(value: object) -> Cell:
    """A field with a text; null is empty."""
    return Cell(label(value, MOST_LETTERS))


def number(value: int | float | None, shown: str | None = None) -> Cell:
    """A field with a number, at the right."""
    if value is None:
        return Cell("", "number")
    if shown is None and abs(value) < _GROUPED:
        return Cell(str(value), "number")  # sorted by its text
    return Cell(shown if shown is not None else f"{value:,}", "number", value=value)


def code(value: str) -> Cell:
    """A field with a command."""
    return Cell(value, "code")
