"""Classes that declare tables and columns. calls.py, transport.py and others declare the tables."""

from dataclasses import dataclass
from typing import Final, Literal

TypeWord = Literal[
    "bool", "int16", "int32", "int64", "double", "integers", "string", "strings", "time", "binary"
]
"""Types of columns, with neutral names for types that Arrow, Spark and pandas name differently.

``time`` is microseconds since the epoch in UTC, ``strings`` a list of strings, ``integers`` a list of
64-bit integers. There are no unsigned integers and
no nanosecond timestamps: Spark reads neither well.
"""


LISTS: Final = ("strings", "integers")
"""Types with list values."""

RUN: Final = "run_id"
"""The last column of every table. Rows do not have it until they leave their run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One public column.

    ``null``: the meaning of a null; None if the column is never null. ``enum``: name of the closed list of a
    string. ``source``: the bytes of the capture that the value comes from, or its computation.
    ``from_layouts``: the core has the number of an API, whose name is in the layouts.
    ``judged``: null until all rows of a run are known.
    ``statistics``: parquet keeps minimum and maximum. Only for usual filter columns, because it takes time.
    """

    name: str
    type: TypeWord
    doc: str
    source: str
    unit: str | None = None
    null: str | None = None
    enum: str | None = None
    derived_from: str | None = None
    from_layouts: bool = False
    judged: bool = False
    statistics: bool = False

    @property
    def delivered(self) -> bool:
        """Whether the core has values for it, in tables that the core fills."""
        return not (self.derived_from or self.judged)

    @property
    def required(self) -> bool:
        """Whether parquet declares the column as never null, which saves definition levels.

        Not for texts from the wire: if memory for them is refused, they become null.
        """
        told = self.type in ("bool", "int16", "int32", "int64", "time") or self.enum or self.name == RUN
        return self.null is None and bool(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """One table: its name, the meaning of a row, its columns in order."""

    name: str
    row: str
    doc: str
    columns: tuple[Column, ...]

    def __hash__(self) -> int:
        return hash(self.name)  # of all columns it takes longer than what is cached by it

    @property
    def own(self) -> tuple[Column, ...]:
        """All columns but the run's."""
        return tuple(column for column in self.columns if column.name != RUN)
