"""What is written where, added up in passes over Arrow's columns, against the same in plain Python."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from kwsniff.core.columns.partition_sums import SEEN, WRITTEN, place_rows, sum_by_code, sum_places
from tests.core.whole_columns import NEVER, ROWS, column, numbers


class Writes:
    """Rows of partitions at random, and what is made of them."""

    def __init__(self) -> None:
        rng = random.Random(7)
        self.rows = [
            (
                rng.choice((None, 0, 1, 2)), rng.choice((None, 0, 3, 5)), rng.choice((None, 0, 1)),
                rng.choice((None, 0, rng.randrange(90))), rng.choice((None, rng.randrange(90))), each,
                rng.choice((None, 0, 1)),
            )
            for each in range(ROWS)
        ]  # fmt: skip
        columns = [column(each, pa.int32()) for each in zip(*self.rows, strict=True)]
        self.places, self.widths = np.full(ROWS, 9), np.zeros(3, np.int64)
        self.used = np.zeros(18, np.uint8)
        self.placing = tuple(columns[:4])
        self.summing = (*columns[3:6], columns[6])
        self.numbers = np.arange(18, dtype=np.int64)
        self.sums = np.repeat(numbers(0, 0, NEVER, 0)[:, None], 18, axis=1)
        self.keys, self.ids = np.full((18, 2), NEVER), np.full((18, 2), NEVER)
        self.writers = np.zeros(54, np.uint8)

    def place(self, width: int = 6) -> None:
        place_rows(self.placing, 1, width, self.places, self.widths, self.used)

    def add(self) -> None:
        sum_places(
            self.places, self.numbers, self.summing, self.sums, self.keys, self.ids, self.writers
        )  # fmt: skip

    def placed(self) -> list[int]:
        return [
            topic * 6 + (partition or 0) if topic is not None and api == 1 and written else -1
            for topic, partition, api, written, *_ in self.rows
        ]


def test_what_is_written_is_added_up_by_place() -> None:
    writes = Writes()
    writes.place()
    assert writes.places.tolist() == writes.placed()
    assert writes.widths.tolist() == [6, 6, 6]
    assert {*np.flatnonzero(writes.used & WRITTEN).tolist()} == {*writes.placed()} - {-1}
    seen = {topic * 6 + (partition or 0) for topic, partition, *_ in writes.rows if topic is not None}
    assert {*np.flatnonzero(writes.used & SEEN).tolist()} == seen
    writes.add()
    for place in range(18):
        rows = [row for row, at in zip(writes.rows, writes.placed(), strict=True) if at == place]
        times = [row[4] for row in rows if row[4] is not None]
        assert writes.sums[:, place].tolist() == [
            sum(row[3] or 0 for row in rows), len(rows), min(times, default=NEVER), max(times, default=0),
        ]  # fmt: skip
        largest = sorted((-(row[3] or 0), row[5]) for row in rows)[:2]
        assert writes.ids[place].tolist()[: len(largest)] == [each for _, each in largest]
        wrote = {0 if row[6] is None else row[6] + 1 for row in rows}
        assert {*np.flatnonzero(writes.writers[place * 3 : place * 3 + 3]).tolist()} == wrote
    assert writes.sums[1].sum() > 40


def test_writers_are_not_marked_where_there_is_no_room_for_them() -> None:
    writes, without = Writes(), Writes()
    without.writers = np.zeros(0, np.uint8)
    for each in (writes, without):
        each.place()
        each.add()
    assert without.sums.tolist() == writes.sums.tolist()


def test_places_without_a_number_are_refused() -> None:
    writes = Writes()
    with pytest.raises(ValueError, match="different sizes"):
        writes.place(width=5)
    writes.used = np.zeros(15, np.uint8)
    with pytest.raises(IndexError):  # partition 5
        writes.place(width=5)
    writes = Writes()
    writes.used, writes.widths = np.zeros(12, np.uint8), np.zeros(2, np.int64)
    with pytest.raises(IndexError):  # topic 2
        writes.place()
    for wrong in (np.full(18, -1), np.full(18, 18), np.arange(17)):
        writes = Writes()
        writes.place()
        writes.numbers = wrong
        with pytest.raises(IndexError):
            writes.add()
    writes = Writes()
    writes.place()
    writes.writers = np.zeros(36, np.uint8)
    with pytest.raises(IndexError):  # client 1
        writes.add()


@pytest.mark.parametrize("wrong", ["places", "sums", "keys", "ids", "writers", "summing"])
def test_places_of_other_sizes_are_refused(wrong: str) -> None:
    writes = Writes()
    writes.place()
    given = getattr(writes, wrong)
    other = (*given[:-1], column([1])) if wrong == "summing" else given[..., :1].copy()
    setattr(writes, wrong, other)
    with pytest.raises(ValueError, match="different sizes"):
        writes.add()


def test_numbers_are_added_up_by_code() -> None:
    rng = random.Random(9)
    rows = [tuple(rng.choice((None, 0, 1, 2)) for _ in range(4)) for _ in range(ROWS)]
    columns = tuple(column(each, pa.int8()) for each in zip(*rows, strict=True))
    sums = np.zeros((2, 4), np.int64)
    sum_by_code(columns, 1, 2, sums)
    wanted = [
        [row[1] or 0 for row in rows if row[0] == code and row[2:] == (1, 2)] for code in (0, 1, 2, None)
    ]
    assert sums.tolist() == [[sum(each) for each in wanted], [len(each) for each in wanted]]
    with pytest.raises(IndexError):
        sum_by_code(columns, 1, 2, sums[:, :3].copy())
    with pytest.raises(IndexError):
        sum_by_code(columns, 1, 2, sums[:, :0].copy())
    with pytest.raises(ValueError, match="different sizes"):
        sum_by_code((*columns[:3], column([1])), 1, 2, sums)
