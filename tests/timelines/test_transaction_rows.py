"""Rows of transactions, call by call and by hand: edges of their time, what is added up, and who fences."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.timelines import transactions
from kwsniff.timelines.transactions import ADD_PARTITIONS, END, INIT, PRODUCE, Call, Transactions

S = 1_000_000
FENCED, GONE = 47, 48


def call(role: str, begin: int, **changed: Any) -> Call:
    """Of the producer shop at one address, answered 5 microseconds later."""
    given: dict[str, Any] = {
        "transactional_id": "pay",
        "producer_id": 7,
        "producer_epoch": 0,
        "client_address": "10.0.0.1",
        "client_id": "shop",
        "end": begin + 5,
        "error_code": 0,
        "committed": None,
        "topics": None,
        "partition_count": None,
        "group_id": None,
        "record_count": None,
        "record_bytes": None,
        "capture": "x.pcap",
        **changed,
    }
    return Call(role=role, begin=begin, **given)


def rows(*calls: Call) -> list[dict[str, Any]]:
    followed = Transactions({FENCED: "INVALID_PRODUCER_EPOCH", 3: "UNKNOWN_TOPIC_OR_PARTITION"})
    for each in calls:
        followed.add_call(each)
    followed.finish()
    return followed.rows


def test_what_calls_have_is_added_up() -> None:
    (row,) = rows(
        call(INIT, 0, timeout_ms=30_000),
        call(ADD_PARTITIONS, 10, partition_count=2, topics=["orders"]),
        call(ADD_PARTITIONS, 20, partition_count=3, topics=["carts", "orders"]),
        call(PRODUCE, 30, partition_count=4, topics=["orders"], record_count=10, record_bytes=1000),
        call(
            PRODUCE, 40, partition_count=1, topics=["clicks"], record_count=5, record_bytes=700, error_code=3
        ),
        call("add_offsets", 50, group_id="billing", error_code=16),
        call(END, 60, committed=True),
    )
    assert row["topics"] == ["orders", "carts", "clicks"]
    assert row["partition_count"] == 5
    assert (row["record_count"], row["record_bytes"]) == (15, 1700)
    assert (row["error_count"], row["error_code"]) == (2, 3)
    assert row["error_name"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert (row["group_id"], row["timeout_ms"], row["outcome"]) == ("billing", 30_000, "committed")
    # From the first call to the response of the last, in nanoseconds.
    assert (row["begin_time"], row["end_time"], row["duration_ns"]) == (10_000, 65_000, 55_000)
    assert row["calls"] == 6


def test_without_partitions_that_were_added_those_of_the_largest_produce_count() -> None:
    (row,) = rows(*(call(PRODUCE, begin, partition_count=count) for begin, count in ((1, 2), (2, 4), (3, 3))))
    assert row["partition_count"] == 4


@pytest.mark.parametrize(("committed", "outcome"), [(True, "committed"), (False, "aborted")])
def test_an_end_says_how(committed: bool, outcome: str) -> None:
    (row,) = rows(call(PRODUCE, 1), call(END, 2, committed=committed))
    assert row["outcome"] == outcome


def test_an_end_alone_has_no_beginning() -> None:
    (row,) = rows(call(END, 100, committed=True))
    assert (row["begin_time"], row["end_time"], row["duration_ns"]) == (None, 105_000, None)


def test_a_clock_that_was_set_back_gives_no_negative_duration() -> None:
    (row,) = rows(call(PRODUCE, 100), call(END, 90, committed=True))
    assert row["duration_ns"] == 0


@pytest.mark.parametrize(
    ("timeout_ms", "after_us", "outcome"),
    [
        (30_000, 30 * S - 1, "fenced"),
        (30_000, 30 * S, "timed_out"),
        (None, 60 * S - 1, "fenced"),
        (None, 60 * S, "timed_out"),
    ],
)
def test_a_transaction_times_out_at_its_timeout_or_at_kafkas(
    timeout_ms: int | None, after_us: int, outcome: str
) -> None:
    """60 s is the default of transaction.timeout.ms."""
    (row,) = rows(
        call(INIT, 0, timeout_ms=timeout_ms),
        call(PRODUCE, 10),
        call(END, 10 + after_us, committed=True, error_code=FENCED),
    )
    assert row["outcome"] == outcome


@pytest.mark.parametrize(("committed", "outcome"), [(True, "timed_out"), (False, "unknown")])
def test_a_commit_that_comes_too_late_timed_out_and_an_abort_did_not(committed: bool, outcome: str) -> None:
    (row,) = rows(
        call(INIT, 0, timeout_ms=1_000),
        call(PRODUCE, 10),
        call(END, 5 * S, committed=committed, error_code=GONE),
    )
    assert row["outcome"] == outcome


def test_the_owner_of_an_id_that_is_fenced_is_no_zombie() -> None:
    """Its transaction ends; a call of the owner before, which lost the id, does not end the new one's."""
    other = {"client_address": "10.0.0.2", "client_id": "shop-2"}
    own = rows(call(INIT, 0), call(PRODUCE, 10), call(PRODUCE, 20, error_code=FENCED))
    assert [row["outcome"] for row in own] == ["fenced"]
    # After a commit, too: the refused call is of the next transaction.
    again = rows(
        call(INIT, 0), call(PRODUCE, 10), call(END, 20, committed=True), call(PRODUCE, 30, error_code=FENCED)
    )
    assert [(row["outcome"], row["calls"]) for row in again] == [("committed", 2), ("fenced", 1)]
    # A fenced producer that never asked for the id itself: begins and ends one of its own.
    (first, second) = rows(
        call(INIT, 0),
        call(PRODUCE, 10),
        call(INIT, 20, **other),
        call(PRODUCE, 30, **other),
        call(PRODUCE, 40, error_code=FENCED),
        call(END, 50, committed=True, **other),
    )
    assert (first["outcome"], first["error_count"], first["client_id"]) == ("fenced", 1, "shop")
    assert (second["outcome"], second["error_count"], second["client_id"]) == ("committed", 0, "shop-2")


def test_a_call_behind_an_end_begins_the_next_transaction() -> None:
    (first, second) = rows(
        call(PRODUCE, 10, record_count=1),
        call(END, 20, committed=True),
        call(PRODUCE, 30, record_count=2),
        call(PRODUCE, 15, record_count=4),  # its row came late
        call(END, 40, committed=False),
    )
    assert (first["record_count"], first["outcome"]) == (5, "committed")
    assert (second["record_count"], second["outcome"]) == (2, "aborted")


@pytest.mark.parametrize("number", [2, 3, 4])
def test_the_bounds_are_exact(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(transactions, "MOST_PRODUCERS", 3)
    monkeypatch.setattr(transactions, "MOST_TOPICS", 3)
    followed = Transactions({})
    for each in range(number):
        followed.add_call(call(PRODUCE, each, transactional_id=f"id-{each}"))
    assert followed.forgotten == max(number - 3, 0)
    (row,) = rows(call(PRODUCE, 1, topics=[f"t{each}" for each in range(number)]))
    assert len(row["topics"]) == min(number, 3)


def test_the_producer_that_was_idle_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "MOST_PRODUCERS", 2)
    followed = Transactions({})
    for begin, name in enumerate(["a", "b", "a", "c"]):
        followed.add_call(call(PRODUCE, begin, transactional_id=name))
    assert [row["transactional_id"] for row in followed.rows] == ["b"]
