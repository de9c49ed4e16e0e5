from typing import Any

from kwsniff.core.columns.numbers import WholeColumn

Column = Any
"""One that shows its memory, of whole numbers: numpy's arrays, which the core does not know."""

def number_rows(columns: tuple[Column, ...], numbers: Column, firsts: Column) -> int:
    """Numbers the distinct combinations of values as they come first; see the source."""

def count_rows(
    columns: tuple[WholeColumn, ...],
    times: WholeColumn,
    firsts: Column,
    counts: Column,
    least: Column,
    most: Column,
) -> int:
    """Counts the rows of each distinct combination of values, as they come first; see the source."""

def find_beyond(
    slots: Column, offsets: Column, asked: Column, lasts: Column, spans: Column, rises: Column, found: Column
) -> None:
    """The first row of each asked slot with a greater offset; see the source."""
