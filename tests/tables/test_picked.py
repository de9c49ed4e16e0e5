"""Rows as batches and back as Python values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kwsniff.tables.column import LISTS
from kwsniff.tables.rows import batch_of, pick
from kwsniff.tables.schema import TABLES

EMPTY: dict[str, Any] = {column.name: [] if column.type in LISTS else None for column in TABLES["groups"].own}


def test_chosen_rows_are_picked_with_their_nulls() -> None:
    rows = [
        {**EMPTY, "group_id": group, "duration_ns": took}
        for group, took in (("a", 5), (None, None), ("b", None), (None, 7))
    ]
    batch = batch_of("groups", rows)
    wanted = [(row["group_id"], row["duration_ns"]) for row in rows]
    for chosen in ([True] * 4, [False] * 4, [True, False, True, False], [False, True, True, True]):
        found = [*pick(batch, np.array(chosen), ("group_id", "duration_ns"))]
        assert found == [row for row, is_chosen in zip(wanted, chosen, strict=True) if is_chosen]


@pytest.mark.parametrize(
    ("nanoseconds", "microseconds"), [(1999, 1), (1000, 1), (999, 0), (-1, -1), (None, None)]
)
def test_times_are_cut_to_the_microsecond(nanoseconds: int | None, microseconds: int | None) -> None:
    """As the core's are, on both sides of 1970."""
    batch = batch_of("groups", [{**EMPTY, "begin_time": nanoseconds}])
    assert [*pick(batch, np.ones(1, np.bool_), ("begin_time",))] == [(microseconds,)]
