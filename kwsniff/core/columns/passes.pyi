from typing import Any

Column = Any
"""One that shows its memory, of whole numbers: numpy's arrays, which the core does not know."""

def fill_nulls(values: Column, valid: Column, first: int, null: int, filled: Column) -> None:
    """The values as they are, `null` where their bit is not set; that of the first one is number `first`."""

def follow(ids: Column, wanted: Column, places: Column) -> bool:
    """Where each of `wanted` stands in `ids`, if all do and in that order; else False, and places are any."""

def sum_calls(
    groups: Column,
    times: Column,
    took: Column,
    records: Column,
    sizes: Column,
    waits: Column,
    sums: Column,
    first: Column,
    last: Column,
    wait: Column,
) -> None:
    """Adds up calls by group; see the source."""

def follow_ends(
    slots: Column,
    reached: Column,
    times: Column,
    ids: Column,
    asked: Column,
    others: Column,
    latest: Column,
    before: Column,
    beside: Column,
) -> None:
    """The greatest end of each slot, and how it stood in front of some rows; see the source."""
