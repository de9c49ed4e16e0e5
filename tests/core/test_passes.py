"""Passes over columns, against the same in plain Python."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from kwsniff.core.columns.passes import follow, follow_ends


def column(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


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
