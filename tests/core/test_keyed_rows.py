"""Rows numbered by what they say, and the first offset beyond another, beside plain Python."""

import numpy as np
import pyarrow as pa
import pytest

from kwsniff.core.columns.keyed_rows import count_rows, find_beyond, number_rows
from tests.core.whole_columns import NEVER, column

SEEDS = range(20)


def _beyond(slots: list[int], offsets: list[int], asked: list[int], lasts: list[int]) -> list[int]:
    one, two, three, four = (np.array(each, np.int64) for each in (slots, offsets, asked, lasts))
    found = np.full(len(asked), -1)
    spans = np.zeros((2, max(slots, default=-1) + 1), np.int64)
    find_beyond(one, two, three, four, spans, np.zeros(len(slots), np.int64), found)
    return found.tolist()


def test_rows_are_numbered_as_they_come_first() -> None:
    columns = (np.array([7, 9, 7, 7, 9]), np.array([1, 1, 1, 2, 1]))
    ranks, firsts = np.zeros((2, 5), np.int64)
    assert number_rows(columns, ranks, firsts) == 3
    assert ranks.tolist() == [0, 1, 0, 2, 1]
    assert firsts[:3].tolist() == [0, 1, 3]


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_are_those_of_a_dict(seed: int) -> None:
    chosen = np.random.default_rng(seed)
    rows, width = int(chosen.integers(0, 3000)), int(chosen.integers(1, 5))
    columns = tuple(chosen.integers(-3, 3, rows) * (1 << 61) for _ in range(width))
    known: dict[tuple[int, ...], int] = {}
    expected = [
        known.setdefault(row, len(known)) for row in zip(*map(np.ndarray.tolist, columns), strict=True)
    ]
    ranks, firsts = np.zeros((2, rows), np.int64)
    assert number_rows(columns, ranks, firsts) == len(known)
    assert ranks.tolist() == expected
    assert firsts[: len(known)].tolist() == [expected.index(number) for number in range(len(known))]


def _counted(columns: list[list[int | None]], times: list[int | None]) -> list[tuple[int, ...]]:
    rows = len(times)
    firsts, counts, least, most = np.zeros((4, rows), np.int64)
    beside = tuple(column(each, pa.int32() if place else pa.int64()) for place, each in enumerate(columns))
    found = count_rows(beside, column(times), firsts, counts, least, most)
    return list(zip(*(each[:found].tolist() for each in (firsts, counts, least, most)), strict=True))


def test_equal_rows_are_counted_with_their_first_and_last_time() -> None:
    columns: list[list[int | None]] = [[7, 7, None, 7, None], [1, 1, 1, 2, 1]]
    assert _counted(columns, [50, 40, None, 9, None]) == [
        (0, 2, 40, 50),
        (2, 2, NEVER, -NEVER),
        (3, 1, 9, 9),
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_are_those_of_a_dict(seed: int) -> None:
    chosen = np.random.default_rng(seed)
    rows, width = int(chosen.integers(1, 3000)), int(chosen.integers(1, 20))
    columns: list[list[int | None]] = [
        [None if each == 2 else each for each in chosen.integers(0, 3, rows).tolist()]
        if place < 3
        else [int(chosen.integers(9))] * rows
        for place in range(width)
    ]
    times = chosen.integers(-99, 99, rows).tolist()
    expected: dict[tuple[int | None, ...], list[int]] = {}
    for row, values in enumerate(zip(*columns, strict=True)):
        expected.setdefault(values, []).append(row)
    assert _counted(columns, times) == [
        (same[0], len(same), min(times[row] for row in same), max(times[row] for row in same))
        for same in expected.values()
    ]


def test_many_distinct_rows_are_counted() -> None:
    values = np.random.default_rng(7).permutation(5000).tolist()
    twice = [*values, *reversed(values)]
    counted = _counted([twice, [1] * 10_000], list(range(10_000)))
    assert counted == [(row, 2, row, 9_999 - row) for row in range(5000)]


def test_columns_of_other_sizes_are_not_counted() -> None:
    three, four = (np.zeros((4, rows), np.int64) for rows in (3, 4))
    one, other = column([1, 2, 3]), column([1, 2, 3, 4])
    cases = [((one, other), one, three), ((one,), other, three), ((one,), one, four)]
    for columns, times, into in cases:
        with pytest.raises(ValueError, match="columns"):
            count_rows(columns, times, *into)
    for unfit in ((), (one,) * 25):
        with pytest.raises(ValueError, match="columns"):
            count_rows(unfit, one, *three)


def test_the_first_greater_offset_of_the_slot_is_found() -> None:
    slots, offsets = [1, 0, 1, 1, 0], [5, 50, 3, 9, 60]
    assert _beyond(slots, offsets, [1, 1, 1, 0, 2, -1], [4, 5, 9, 0, 0, 0]) == [0, 3, -1, 1, -1, -1]


@pytest.mark.parametrize("seed", SEEDS)
def test_offsets_beyond_are_those_of_a_search_from_the_first(seed: int) -> None:
    chosen = np.random.default_rng(seed)
    slots, asked = (chosen.integers(0, 5, size).tolist() for size in (300, 200))
    offsets, lasts = (chosen.integers(-40, 40, size).tolist() for size in (300, 200))
    expected = [
        next((row for row in range(300) if slots[row] == slot and offsets[row] > last), -1)
        for slot, last in zip(asked, lasts, strict=True)
    ]
    assert _beyond(slots, offsets, asked, lasts) == expected


def test_columns_of_other_sizes_and_unknown_slots_are_refused() -> None:
    three, four = np.zeros(3, np.int64), np.zeros(4, np.int64)
    for columns in ((), (three, four), (three,) * 5):
        with pytest.raises(ValueError, match="different sizes"):
            number_rows(columns, three.copy(), three.copy())
    with pytest.raises(ValueError, match="different sizes"):
        number_rows((three,), three.copy(), four.copy())
    spans = np.zeros((2, 1), np.int64)
    for sizes in ((four, three, three, three, three), (three, three, four, three, three)):
        with pytest.raises(ValueError, match="different sizes"):
            slots, offsets, asked, lasts, found = sizes
            find_beyond(slots, offsets, asked, lasts, spans.copy(), three.copy(), found)
    for slot in (-1, 1):
        with pytest.raises(IndexError):
            find_beyond(three + slot, three, three, three, spans.copy(), three.copy(), three.copy())
