"""What a table and a column are. The tables themselves are declared in calls.py and transport.py."""

from dataclasses import dataclass
from typing import Final, Literal

TypeWord = Literal[
    "bool", "int16", "int32", "int64", "double", "integers", "string", "strings", "time", "binary"
]
"""Types of columns: plain words for what Arrow, Spark and pandas call differently.

``time`` is microseconds since the epoch in UTC, ``strings`` a list of strings, ``integers`` a list of
64-bit integers. Unsigned integers and
nanosecond timestamps do not occur: Spark reads neither well.
"""


LISTS: Final = ("strings", "integers")
"""Types whose values are lists."""

RUN: Final = "run_id"
"""The column that every table ends with. The rows of a run do not carry it before they leave it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column, as users see it.

    ``null`` says what a null means; None when the column never is. ``enum`` names the closed list a string
    comes from. ``source`` says which bytes of the capture the value comes from, or how it is computed.
    ``statistics``: parquet keeps least and greatest values. Only for what people filter by: it takes time.
    """

    name: str
    type: TypeWord
    doc: str
    source: str
    unit: str | None = None
    null: str | None = None
    enum: str | None = None
    derived_from: str | None = None
    statistics: bool = False

    @property
    def required(self) -> bool:
        """Whether parquet is told that the column is never null, and so keeps no levels of its values.

        Not for texts as they were on the wire: where memory for more of them is refused, they are null.
        """
        told = self.type in ("bool", "int16", "int32", "int64", "time") or self.enum or self.name == RUN
        return self.null is None and bool(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """One table: its name, what a row stands for, its columns in order."""

    name: str
    row: str
    doc: str
    columns: tuple[Column, ...]

    @property
    def own(self) -> tuple[Column, ...]:
        """Columns that differ from row to row: all but the run's."""
        return tuple(column for column in self.columns if column.name != RUN)
