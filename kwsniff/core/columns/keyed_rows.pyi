from typing import Any

Column = Any
"""One that shows its memory, of whole numbers: numpy's arrays, which the core does not know."""

def number_rows(columns: tuple[Column, ...], numbers: Column, firsts: Column) -> int:
    """Numbers the distinct combinations of values as they come first; see the source."""

def find_beyond(
    slots: Column, offsets: Column, asked: Column, lasts: Column, spans: Column, rises: Column, found: Column
) -> None:
    """The first row of each asked slot with a greater offset; see the source."""
