"""Readers that do not advance are counted, whichever way the rows come; the expected figures are by hand."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from kwsniff.findings.prefilter import stuck_reads
from kwsniff.findings.prefilter.stuck_reads import StandingReads

SECOND = 1_000_000
Row = Mapping[str, Any]


def fetch(time: float, asked: int | None, records: int, end: int | None = 100, **other: Any) -> Row:
    """A row of partitions: `records` of ten bytes each."""
    row = {
        "connection_id": 1, "topic": "orders", "topic_id": None, "partition": 0, "requested_offset": asked,
        "high_watermark": end, "record_bytes": 10 * records, "record_count": records,
        "time": int(time * SECOND),
    }  # fmt: skip
    return row | other


def batch_of(rows: Iterable[Row]) -> pa.RecordBatch:
    kept = [*rows]
    return pa.RecordBatch.from_pydict(
        {
            name: pa.array(
                [row[name] for row in kept],
                pa.string() if name in ("topic", "topic_id")
                else pa.timestamp("us", "UTC") if name == "time" else pa.int64(),
            )
            for name in StandingReads.OF_PARTITIONS
        }
    )  # fmt: skip


def counted(*parts: Iterable[Row]) -> tuple[float, float]:
    reads = StandingReads()
    for part in parts:
        reads.add(batch_of(part))
    figures = reads.figures()
    return figures["empty_beyond"], figures["repeated_reads"]


def test_a_consumer_that_advances_repeats_nothing() -> None:
    assert counted(fetch(at, 10 * at, 10) for at in range(9)) == (0, 0)


def test_an_offset_that_is_delivered_again_counts_each_time() -> None:
    assert counted(fetch(at, 40, 10) for at in range(9)) == (0, 8)


def test_an_offset_of_0_that_is_delivered_again_is_that_of_a_start() -> None:
    reads = StandingReads()
    reads.add(batch_of(fetch(at, offset, 10) for at, offset in enumerate([0, 0, 7, 0, 7, 7, 7])))
    assert reads.figures() == {"empty_beyond": 0, "repeated_reads": 4, "repeated_beyond_start": 2}


def test_a_consumer_that_goes_back_counts_once_for_each_time() -> None:
    offsets = [0, 10, 20, 0, 10, 20, 0, 10, 20]
    assert counted(fetch(at, offset, 10) for at, offset in enumerate(offsets)) == (0, 2)


def test_a_session_asks_for_the_last_offset_where_it_names_none() -> None:
    # Each offset is named when there is nothing to read yet, and delivered by the next fetch.
    rows = [(0, 0, 0), (1, None, 10), (2, 10, 0), (3, None, 10), (4, 20, 10), (5, None, 10), (6, None, 10)]
    ends = [0, 10, 10, 30, 40, 40, 40]
    assert counted(fetch(*row, end) for row, end in zip(rows, ends, strict=True)) == (0, 2)


def test_a_delivery_of_an_unknown_offset_does_not_count() -> None:
    assert counted(fetch(at, None, 10) for at in range(9)) == (0, 0)


def test_nothing_below_the_high_watermark_counts_while_the_reader_stays() -> None:
    rows = [fetch(0, 99, 0), fetch(1, 100, 0), fetch(2, 101, 0), fetch(3, 50, 0), fetch(9, 100, 0)]
    assert counted(rows) == (1, 0)
    rows = [
        fetch(0, 50, 0),
        fetch(1, 50, 0),
        fetch(2, 51, 0),
        fetch(3, 50, 0),
        fetch(4, 50, 0),
        fetch(9, 50, 0),
    ]
    assert counted(rows) == (3, 0)


def test_a_delivery_beyond_ends_a_stay_and_one_at_the_same_offset_does_not() -> None:
    stay = [fetch(at, 50, 0) for at in range(4)]
    assert counted([*stay, fetch(4, 51, 10), *stay]) == (4, 0)
    assert counted([*stay, fetch(4, 50, 10), *stay]) == (8, 0)
    assert counted([*stay, fetch(4, 100, 0), *stay]) == (8, 0)


def test_in_another_order_all_fetches_that_got_nothing_count() -> None:
    reads = StandingReads()
    reads.in_order = False
    reads.add(batch_of(fetch(at, 50 + at, 0) for at in range(9)))
    assert reads.figures()["empty_beyond"] == 9


def test_readers_are_apart() -> None:
    others: list[Row] = [
        {}, {"connection_id": 2}, {"partition": 1}, {"topic": "audit"}, {"topic": None, "topic_id": "A"},
        {"topic": None, "topic_id": "B"}, {"topic": None},
    ]  # fmt: skip
    rows = [fetch(at, 40, 10, **other) for at, other in enumerate(others)]
    assert counted(rows) == (0, 0)
    assert counted(rows, rows) == (0, len(others))


def test_fetches_within_three_seconds_are_not_worth_a_look() -> None:
    assert counted(fetch(at / 4, 40, 10) for at in range(12)) == (0, 0)
    assert counted(fetch(at / 4, 40, 10) for at in range(13)) == (0, 12)


def random_rows(seed: int) -> list[Row]:
    dice = random.Random(seed)
    return [
        fetch(
            at, dice.choice((None, dice.randrange(30))), dice.randrange(3), dice.choice((None, 20)),
            connection_id=dice.randrange(40), partition=dice.randrange(40),
            topic=dice.choice((None, "orders", "audit")), topic_id=dice.choice((None, "A", "B")),
        )
        for at in range(4_000)
    ]  # fmt: skip


def expected(rows: Iterable[Row]) -> tuple[int, int]:
    asked: dict[object, int] = {}
    delivered: dict[object, int] = {}
    stays: dict[object, list[int]] = {}
    repeated = 0
    for row in rows:
        topic = row["topic"] or row["topic_id"]
        reader = row["connection_id"], row["partition"], topic
        if row["requested_offset"] is not None:
            asked[reader] = row["requested_offset"]
        if row["high_watermark"] is None or reader not in asked:
            continue
        if not row["record_count"]:
            if row["high_watermark"] > asked[reader]:
                stays.setdefault(reader, []).append(asked[reader])
        else:
            if asked[reader] not in stays.get(reader, ())[-1:]:
                stays.setdefault(reader, []).append(-1)
            repeated += reader in delivered and asked[reader] <= delivered[reader]
            delivered[reader] = asked[reader]
    runs = [
        len([*same])
        for each in stays.values()
        for offset, same in itertools.groupby(each)
        if offset >= 0
    ]  # fmt: skip
    return max(runs, default=0), repeated


@pytest.mark.parametrize("seed", range(3))
def test_figures_are_those_of_plain_python_in_batches_of_any_size(seed: int) -> None:
    rows = random_rows(seed)
    assert counted(rows) == expected(rows)
    assert counted(*(rows[at : at + 37] for at in range(0, len(rows), 37))) == expected(rows)


def test_parts_of_a_capture_are_a_bound_together() -> None:
    rows = random_rows(5)
    whole, parts = StandingReads(), [StandingReads(), StandingReads()]
    for number, part in enumerate(parts):
        part.add(batch_of(rows[number::2]))
        whole.merge(part.state())
    alone = [part.figures() for part in parts]
    assert whole.figures()["empty_beyond"] >= sum(each["empty_beyond"] for each in alone)
    both = {(row["connection_id"], row["partition"], row["topic"] or row["topic_id"]) for row in rows[::2]}
    assert whole.figures()["repeated_reads"] >= sum(each["repeated_reads"] for each in alone)
    assert whole.figures()["repeated_reads"] <= sum(each["repeated_reads"] for each in alone) + len(both)
    assert set(StandingReads().figures().values()) == {0}


@pytest.mark.parametrize("seed", range(5))
def test_deliveries_of_the_first_offset_count_in_any_order(seed: int) -> None:
    """Tasks send what they counted in any order; the bound still holds."""
    dice = random.Random(seed)
    rows = [fetch(at, 40 + at % 7, 10) for at in range(70)]
    whole = StandingReads()
    for _ in range(4):
        part = StandingReads()
        part.add(batch_of(dice.sample(rows, len(rows))))
        whole.merge(part.state())
    assert whole.figures()["repeated_reads"] >= whole.figures()["repeated_beyond_start"] >= 4 * 10 - 1


def test_one_half_after_the_other_counts_what_the_whole_does() -> None:
    rows = [fetch(at, 40, 10) for at in range(8)]
    first, second = StandingReads(), StandingReads()
    first.add(batch_of(rows[:4]))
    second.add(batch_of(rows[4:]))
    first.merge(second.state())
    assert first.figures() == {"empty_beyond": 0, "repeated_reads": 7, "repeated_beyond_start": 7}


def test_a_capture_does_not_know_where_its_readers_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, found = random_rows(7), []
    for seed in (b"\0" * 8, b"\1" * 8):
        monkeypatch.setattr("os.urandom", lambda size, seed=seed: seed)
        reads = StandingReads()
        reads.add(batch_of(rows))
        assert tuple(reads.figures().values())[:2] == expected(rows)
        found.append(reads.state()[1])
    assert found[0] != found[1]
    assert sorted(found[0]) == sorted(found[1])


def test_more_readers_than_are_followed_are_left_to_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stuck_reads, "_READERS", 8)
    rows = [fetch(at, 40, 10, partition=at) for at in range(9)]
    assert counted(rows[:8]) == (0, 0)
    assert counted(rows) == (float("inf"), float("inf"))
    state = StandingReads()
    state.add(batch_of(rows))
    merged = StandingReads()
    merged.merge(state.state())
    assert merged.figures() == state.figures()
