"""What a page is made of: sections of sentences, charts, tables. Texts are texts: the template escapes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from kwsniff.report.words import label

if TYPE_CHECKING:
    from bokeh.models import LayoutDOM

MOST_LETTERS = 400
"""Of a field or a heading: a name from the wire may be 32 kB long."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One field of a table."""

    text: str
    kind: Literal["text", "number", "code"] = "text"
    title: str = ""
    """More of it, for the mouse."""
    share: float | None = None
    """0 to 1: a bar behind the text."""
    link: str = ""
    """The id of another part of the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a caption."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    folded: bool = False
    """Shown when it is asked for, and on paper."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A picture and, for those who do not see it, what it shows."""

    name: str
    label: str
    plot: "LayoutDOM"
    legend: Sequence[tuple[str, str]] = ()
    """Colours and what they stand for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One claim with what proves it."""

    name: str
    """Its id in the page."""
    heading: str
    weight: str
    """problem, warning or info: its colour."""
    lines: Sequence[tuple[str, str]]
    """A word in front, which may be empty, and a sentence."""
    commands: Sequence[tuple[str, str]] = ()
    """What a command does, and the command."""
    proof: Table | None = None
    """Opens with one click."""


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
    """Text, and the id it leads to."""


def text(value: object) -> Cell:
    """A field with a text; null is empty."""
    return Cell(label(value, MOST_LETTERS))


def number(value: int | float | None, shown: str | None = None) -> Cell:
    """A field with a number, at the right."""
    if value is None:
        return Cell("", "number")
    return Cell(shown if shown is not None else f"{value:,}", "number")


def code(value: str) -> Cell:
    """A field with a command."""
    return Cell(value, "code")
