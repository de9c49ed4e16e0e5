"""Columns of the core as Python values: kind, rows, nulls, validity, then buffers."""

from collections.abc import Sequence
from typing import Any, Final

from kwsniff.core.declared import ENUMS

_FORMATS: Final = {"int16": "h", "int32": "i", "int64": "q"}


def num_rows(column: Sequence[Any]) -> int:
    """Rows of a column."""
    return int(column[1])


def numbers(column: Sequence[Any]) -> "memoryview[int]":
    """Values of an integer column; arbitrary where null."""
    return memoryview(column[4]).cast("B").cast(_FORMATS[column[0]])  # type: ignore[call-overload, no-any-return]


def nullable(column: Sequence[Any]) -> list[int | None]:
    """The same with nulls."""
    values: list[int | None] = list(numbers(column))
    if column[3] is None:
        return values
    valid = memoryview(column[3]).cast("B")
    return [value if valid[row >> 3] >> (row & 7) & 1 else None for row, value in enumerate(values)]


def texts(column: Sequence[Any]) -> list[str | None]:
    """Values of a dictionary-coded column."""
    _, _, _, validity, indices, offsets, data, num = column
    ends, text = memoryview(offsets).cast("B").cast("i"), bytes(data)
    words: list[str | None] = [text[ends[place] : ends[place + 1]].decode() for place in range(num)]
    valid = None if validity is None else memoryview(validity).cast("B")
    places = memoryview(indices).cast("B").cast("i")
    return [
        words[place] if valid is None or valid[row >> 3] >> (row & 7) & 1 else None
        for row, place in enumerate(places)
    ]


def words(column: Sequence[Any], list_of: str, rows: Sequence[int]) -> list[str | None]:
    """Values of a closed list, for some rows."""
    places = memoryview(column[4]).cast("B")
    valid = None if column[3] is None else memoryview(column[3]).cast("B")
    return [
        ENUMS[list_of][places[row]] if valid is None or valid[row >> 3] >> (row & 7) & 1 else None
        for row in rows
    ]
