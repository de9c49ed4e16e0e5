from typing import Any

Column = Any
"""One that shows its memory, of whole numbers: numpy's arrays, which the core does not know."""

def follow(ids: Column, wanted: Column, places: Column) -> bool:
    """The place of each of `wanted` in `ids`, if all are there, in order; else False, and places are any."""

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
    """The greatest end of each slot, and its state before some rows; see the source."""

def find_rises(slots: Column, values: Column, latest: Column, rises: Column) -> None:
    """Marks values that are greater than all earlier ones of their slot; see the source."""

def find_partitions(
    calls: Column,
    topics: Column,
    partitions: Column,
    asked_calls: Column,
    asked_topics: Column,
    asked_partitions: Column,
    found: Column,
) -> None:
    """The row of each asked partition of a topic and call, in one pass; see the source."""
