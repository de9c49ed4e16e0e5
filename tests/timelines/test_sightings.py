"""Which of several places counts, and which connections are one conversation: arithmetic by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kwsniff.timelines.duplicates.sightings import count_calls, pair_sightings

PLACES = {"client.pcap": 0, "broker.pcap": 1}
TOP = 1 << 32


def row(number: int, capture: str = "client.pcap", **changed: Any) -> dict[str, Any]:
    """A connection of 1,000 bytes each way, whose numbers begin at 5,000 and 7,000."""
    return {
        "connection_id": number,
        "capture": capture,
        "calls": 10,
        "client_isn": 5_000,
        "broker_isn": 7_000,
        "client_bytes": 1_000,
        "broker_bytes": 1_000,
        "client_missing_bytes": 0,
        "broker_missing_bytes": 0,
        **changed,
    }


def pairs(*rows: dict[str, Any], calls: dict[int, int] | None = None) -> list[tuple[int, int]]:
    found = pair_sightings(rows, PLACES, {0: 100, 1: 100} if calls is None else calls)
    return [(first["connection_id"], other["connection_id"]) for first, other in found]


@pytest.mark.parametrize(
    ("calls", "counts"),
    [({0: 100, 1: 90}, 1), ({0: 90, 1: 100}, 2), ({0: 100, 1: 100}, 1), ({}, 1)],
)
def test_the_place_with_more_calls_counts_and_of_equal_ones_the_first(
    calls: dict[int, int], counts: int
) -> None:
    assert pairs(row(1), row(2, "broker.pcap"), calls=calls) == [(counts, 3 - counts)]


@pytest.mark.parametrize(("more", "counts"), [(109, 1), (110, 1), (111, 2)])
def test_another_place_counts_that_saw_more_than_a_tenth_more(more: int, counts: int) -> None:
    rows = row(1, calls=100), row(2, "broker.pcap", calls=more)
    assert pairs(*rows, calls={0: 1_000, 1: 10}) == [(counts, 3 - counts)]


def test_calls_of_a_conversation_are_added_up() -> None:
    """Two parts of 60 calls at one place are more than 100 at the other."""
    later = {"client_isn": 5_500, "broker_isn": 7_500}
    rows = row(1, calls=100, client_bytes=2_000, broker_bytes=2_000), row(2, "broker.pcap", calls=60)
    assert pairs(*rows, row(3, "broker.pcap", calls=60, **later), calls={0: 1_000, 1: 10}) == [(2, 1)]


@pytest.mark.parametrize(
    ("client", "broker", "is_one"),
    [
        (5_000, 7_000, True),
        (6_000, 7_000, True),  # begins where the first one ends
        (6_001, 7_000, False),
        (4_000, 7_000, True),  # ends where the first one begins
        (3_999, 7_000, False),
        (5_000, 9_000, False),  # one direction has nothing in common
        (None, 7_000, True),  # one direction is unknown
        (None, 9_000, False),
        (None, None, False),  # nothing is known
    ],
)
def test_numbers_of_both_directions_have_to_be_in_common(
    client: int | None, broker: int | None, is_one: bool
) -> None:
    other = row(2, "broker.pcap", client_isn=client, broker_isn=broker)
    assert pairs(row(1), other) == ([(1, 2)] if is_one else [])


@pytest.mark.parametrize(("length", "is_one"), [(499, False), (500, True)])
def test_each_connection_has_its_own_length(length: int, is_one: bool) -> None:
    """The first ends 500 behind its beginning, where the other begins; the other is longer."""
    first = row(1, client_bytes=length - 100, client_missing_bytes=100)
    other = row(2, "broker.pcap", client_isn=5_500, client_bytes=3_000)
    assert pairs(first, other) == ([(1, 2)] if is_one else [])


def test_numbers_go_round() -> None:
    first, other = row(1, client_isn=TOP - 100), row(2, "broker.pcap", client_isn=200)
    assert pairs(first, other) == [(1, 2)]
    assert pairs(other, first, calls={0: 1, 1: 2}) == [(2, 1)]


def test_two_connections_of_one_place_are_two() -> None:
    assert pairs(row(1), row(2)) == []


def test_calls_are_added_up_by_place() -> None:
    batches = [
        pa.RecordBatch.from_pydict({"capture": names, "calls": pa.array(calls, pa.int64())})
        for names, calls in (
            (["client.pcap", "broker.pcap", "client.pcap"], [5, 7, None]),
            (["client.pcap", "elsewhere.pcap"], [6, 100]),
        )
    ]
    assert count_calls(batches, PLACES) == {0: 111, 1: 7}
