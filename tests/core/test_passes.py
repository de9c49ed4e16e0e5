"""Passes over columns, against the same in plain Python."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwsniff.core.columns.passes import fill_nulls, follow, follow_ends, sum_calls
from kwsniff.tables.arrays import whole_numbers

NEVER = 1 << 62


def column(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.timestamp("us")])
@pytest.mark.parametrize("begin", [0, 1, 8, 13])
def test_nulls_get_a_number_wherever_a_slice_begins(type_: pa.DataType, begin: int) -> None:
    rng = random.Random(begin)
    mixed = [rng.choice((None, rng.randint(-100, 100))) for _ in range(30)]
    values = [*mixed, *range(20), *[None] * 20, *mixed]  # whole bytes of the mask are full, or empty
    expected = [-7 if value is None else value for value in values]
    column = pa.array(values, pa.int64()).cast(type_)
    for size in (0, 1, 7, 15, len(values) - begin):
        assert whole_numbers(column.slice(begin, size), null=-7).tolist() == expected[begin : begin + size]


def test_masks_and_columns_of_other_sizes_are_refused() -> None:
    mask = np.zeros(1, np.uint8)
    for rows, first, filled in ((9, 0, 9), (8, 1, 8), (8, -1, 8), (8, 0, 7)):
        with pytest.raises(ValueError, match="different sizes"):
            fill_nulls(np.zeros(rows, np.int32), mask, first, 0, np.zeros(filled, np.int64))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([], []),
        ([4, 4, 9, 2], [0, 0, 2, 3]),
        ([2], [3]),
        ([9, 4], None),
        ([5], None),
    ],
)
def test_rows_that_come_in_the_order_of_their_calls(wanted: list[int], expected: list[int] | None) -> None:
    places = np.zeros(len(wanted), np.int64)
    assert follow(column(4, 7, 9, 2), column(*wanted), places) == (expected is not None)
    assert expected is None or places.tolist() == expected


def test_the_greatest_end_before_each_row() -> None:
    rng = random.Random(2)
    rows = [(rng.randrange(4), rng.choice((-1, 3, 5, 5, 8)), rng.randrange(9)) for _ in range(60)]
    asked = sorted(rng.sample(range(60), 20))
    others = [rng.randrange(-1, 4) for _ in asked]
    latest, before, beside = (np.full((3, size), -1, np.int64) for size in (4, 20, 20))
    slots, reached, times = (column(*each) for each in zip(*rows, strict=True))
    follow_ends(
        slots, reached, times, column(*range(60)), column(*asked), column(*others), latest, before, beside
    )

    def greatest(slot: int, row: int) -> list[int]:
        told = [
            (end, number, time)
            for number, (at, end, time) in enumerate(rows[:row])
            if at == slot and end >= 0
        ]
        end, number, time = max(told, default=(-1, -1, -1))
        return [end, time, number]

    assert latest.T.tolist() == [greatest(slot, 60) for slot in range(4)]
    assert before.T.tolist() == [greatest(rows[row][0], row) for row in asked]
    assert beside.T.tolist() == [
        greatest(slot, row) if slot >= 0 else [-1, -1, -1] for slot, row in zip(others, asked, strict=True)
    ]


@pytest.mark.parametrize(("slot", "other"), [(4, 0), (-1, 0), (0, 4)])
def test_ends_without_room_are_refused(slot: int, other: int) -> None:
    ends = [np.full((3, size), -1, np.int64) for size in (4, 1, 1)]
    with pytest.raises(IndexError):
        follow_ends(column(slot), column(1), column(1), column(1), column(0), column(other), *ends)
    with pytest.raises(ValueError, match="different sizes"):
        follow_ends(column(0, 0), column(1), column(1), column(1), column(0), column(0), *ends)


def test_calls_are_added_up_by_group() -> None:
    rng = random.Random(3)
    rows = [[rng.randrange(3), *(rng.randint(-1, 5) for _ in range(5))] for _ in range(50)]
    groups, times, took, records, sizes, waits = (column(*each) for each in zip(*rows, strict=True))
    sums = np.zeros((6, 3), np.int64)
    first, last, wait = np.full(3, NEVER), np.zeros(3, np.int64), np.full(3, NEVER)
    sum_calls(groups, times, took, records, sizes, waits, sums, first, last, wait)
    for group in range(3):
        mine = [row for row in rows if row[0] == group]
        assert sums[:, group].tolist() == [
            len(mine),
            sum(row[3] >= 0 for row in mine),
            sum(row[3] <= 0 for row in mine),
            sum(row[2] for row in mine),
            sum(max(row[3], 0) for row in mine),
            sum(max(row[4], 0) for row in mine),
        ]
        assert first[group] == min(row[1] for row in mine)
        assert last[group] == max(row[1] for row in mine)
        assert wait[group] == min(row[5] for row in mine if row[5] >= 0)


@pytest.mark.parametrize("group", [-1, 3])
def test_groups_without_sums_are_refused(group: int) -> None:
    one = column(1)
    with pytest.raises(IndexError):
        sum_calls(
            column(group), one, one, one, one, one, np.zeros((6, 3), np.int64), *np.zeros((3, 3), np.int64)
        )
    with pytest.raises(ValueError, match="different sizes"):
        sum_calls(
            column(0, 0), one, one, one, one, one, np.zeros((6, 3), np.int64), *np.zeros((3, 3), np.int64)
        )
