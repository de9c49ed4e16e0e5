"""Calls added up in one pass over Arrow's columns, against the same in plain Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwsniff.core.columns.call_totals import Codes, sum_calls
from tests.core.whole_columns import NEVER, ROWS, column, numbers

LONG_AGO = np.iinfo(np.int64).min


class Calls:
    """Rows of calls at random, and what `sum_calls` gets for them."""

    NAMES = ("a", "b")
    CALLERS = ("client", "broker")
    APIS = ("Produce", "Fetch", "Metadata", "Heartbeat")
    STATUSES = ("unanswered", "answered")

    def __init__(self, number: int) -> None:
        rng = random.Random(number)

        def code(words: Sequence[str]) -> int | None:
            return rng.choice((*range(len(words)), None))

        self.rows: list[tuple[Any, ...]] = [
            (
                code(self.NAMES), rng.randrange(2), code(self.CALLERS), code(self.APIS), code(self.STATUSES),
                rng.choice((None, rng.randrange(40))), each, rng.choice((None, rng.randrange(90))),
                *(rng.choice((None, 0, rng.randrange(9))) for _ in range(3)),
                rng.choice((None, rng.randrange(90))),
            )
            for each in rng.sample(range(10_000), number)
        ]  # fmt: skip
        self.columns = tuple(
            column(each, pa.int8() if at < 5 else pa.int32())
            for at, each in enumerate(zip(*self.rows, strict=True))
        )
        self.sums = np.zeros((6, 16), np.int64)
        self.spans = np.repeat(numbers(NEVER, 0, NEVER)[:, None], 16, axis=1)
        self.keys, self.ids = np.full((16, 3), NEVER), np.full((16, 3), NEVER)
        self.latest, self.marks = np.full((2, 4), -1), np.zeros((2, number), np.int64)
        self.reads = np.repeat(numbers(0, 0, 0, 0, LONG_AGO)[:, None], 4, axis=1)
        self.named, self.placed = numbers(0, 1, -1), numbers(2, 3, -1)
        self.kinds, self.unanswered = numbers(0, 1, 2, 3, 3), numbers(0, 3, 2, 3, 3)

    def add(self, tick: int = 10) -> tuple[int, int]:
        codes = Codes(self.named, self.placed, numbers(1, 0, 1), self.kinds, self.unanswered, 1)
        return sum_calls(
            self.columns, codes, 2, 1, tick,
            self.sums, self.spans, self.keys, self.ids, self.latest, self.marks, self.reads,
        )  # fmt: skip

    def of(self, client: int, kind: int | None) -> list[tuple[Any, ...]]:
        """The rows of a group; of a client where the kind is None."""
        found = []
        for row in self.rows:
            name, address, caller, api, status, time = row[:6]
            mine = (2 + address if name is None else name) == client
            asked = 3 if api is None or (api == 1 and status != 1) else api
            if mine and time is not None and caller != 1 and kind in (None, asked):
                found.append(row)
        return found


def test_calls_are_added_up_by_client_and_kind() -> None:
    calls = Calls(ROWS)
    marked, asked = calls.add()
    for client in range(4):
        for kind in range(4):
            rows = calls.of(client, kind)
            assert rows
            counts = [row[8] for row in rows]
            assert calls.sums[:, client * 4 + kind].tolist() == [
                len(rows),
                sum(count is not None for count in counts),
                sum(not count for count in counts),
                sum(row[7] or 0 for row in rows),
                sum(count or 0 for count in counts),
                sum(row[9] or 0 for row in rows),
            ]
            assert calls.spans[:, client * 4 + kind].tolist() == [
                min(row[5] for row in rows),
                max(row[5] for row in rows),
                min((row[10] for row in rows if row[10] is not None), default=NEVER),
            ]
            earliest = sorted((row[5], row[6]) for row in rows)[:3]
            assert calls.keys[client * 4 + kind].tolist()[: len(earliest)] == [key for key, _ in earliest]
            assert calls.ids[client * 4 + kind].tolist()[: len(earliest)] == [each for _, each in earliest]
    marks: list[tuple[int | None, Any]] = [(None, calls.marks[0, :marked]), (2, calls.marks[1, :asked])]
    for of, found in marks:
        assert {(each >> 40, each & 0xFF) for each in found.tolist()} == {
            (client, row[5] // 10) for client in range(4) for row in calls.of(client, of)
        }


def test_fetches_are_added_up_by_client_whatever_became_of_them() -> None:
    calls = Calls(ROWS)
    calls.add()
    for client in range(4):
        rows = [
            row for row in calls.rows
            if (2 + row[1] if row[0] is None else row[0]) == client and row[2] != 1 and row[3] == 1
        ]  # fmt: skip
        assert any(row[5] is None for row in rows) and any(row[4] != 1 for row in rows)
        ends = [row[5] if row[11] is None else row[11] for row in rows]
        assert calls.reads[:, client].tolist() == [
            len(rows),
            sum((row[9] or 0) > 0 for row in rows),
            sum(row[8] is not None for row in rows),
            sum(row[8] or 0 for row in rows),
            max(end for end in ends if end is not None),
        ]


def test_a_tick_is_marked_once_while_it_lasts() -> None:
    calls = Calls(ROWS)
    assert calls.add(tick=1000) == (4, 4)
    assert calls.add(tick=1000) == (0, 0)


@pytest.mark.parametrize("time", [-1, 1 << 50])
def test_times_of_no_clock_are_told(time: int) -> None:
    calls = Calls(50)
    calls.columns = (*calls.columns[:5], column([time] * 50), *calls.columns[6:])
    assert calls.add(tick=1) == (-1, -1)


@pytest.mark.parametrize("wrong", ["named", "placed", "kinds"])
@pytest.mark.parametrize("number", [4, -2])
def test_groups_without_sums_are_refused(wrong: str, number: int) -> None:
    calls = Calls(ROWS)
    setattr(calls, wrong, np.full(5, number, np.int64))
    with pytest.raises(IndexError):
        calls.add()


@pytest.mark.parametrize("wrong", ["named", "placed", "kinds"])
def test_codes_that_stand_for_nothing_are_refused(wrong: str) -> None:
    calls = Calls(ROWS)
    setattr(calls, wrong, getattr(calls, wrong)[1:])
    if wrong == "kinds":
        calls.kinds = calls.unanswered = numbers(0, 3)
    with pytest.raises(IndexError):
        calls.add()


@pytest.mark.parametrize("wrong", ["sums", "spans", "keys", "ids", "latest", "marks", "reads", "columns"])
def test_sums_of_other_sizes_are_refused(wrong: str) -> None:
    calls = Calls(ROWS)
    given = getattr(calls, wrong)
    other = (*given[:-1], column([1])) if wrong == "columns" else given[..., :0].copy()
    setattr(calls, wrong, other)
    with pytest.raises(ValueError, match="different sizes"):
        calls.add()


@pytest.mark.parametrize("wrong", ["named", "placed", "kinds", "unanswered"])
def test_something_must_stand_for_null(wrong: str) -> None:
    calls = Calls(ROWS)
    setattr(calls, wrong, numbers())
    with pytest.raises(ValueError, match="nothing to look up"):
        calls.add()


def test_ticks_in_which_no_time_passes_are_refused() -> None:
    with pytest.raises(ValueError, match="no time passes"):
        Calls(1).add(tick=0)
