"""Rows of leaders, response by response and by hand."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.timelines.memory_budget import MemoryBudget
from kwsniff.timelines.metadata.leaders import NEVER, Change, Copies, Leaders, Teller


def teller(number: int) -> Teller:
    """A response at so many microseconds."""
    return Teller(number, "x.pcap", "shop", "10.0.0.9", 9092, number, place=number)


def part(leader: int, epoch: int = 3, replicas: int = 3, in_sync: int = 3) -> dict[str, Any]:
    return {
        "partition_index": 0,
        "leader_id": leader,
        "leader_epoch": epoch,
        "replica_nodes": [*range(replicas)],
        "isr_nodes": [*range(in_sync)],
    }


def followed(*said: tuple[int, dict[str, Any]], topic_id: str | None = None) -> Leaders:
    leaders = Leaders(MemoryBudget())
    for number, each in said:
        topic: dict[str, Any] = {"name": "orders", "partitions": [each]}
        if topic_id is not None:
            topic["topic_id"] = topic_id
        leaders.add_response({"topics": [topic]}, teller(number))
    return leaders


def rows(*said: tuple[int, dict[str, Any]]) -> list[dict[str, Any]]:
    leaders = followed(*said)
    leaders.finish()
    return [each.row() for each in leaders.rows]


def test_a_leader_is_seen_from_the_first_response_to_the_latest() -> None:
    """Responses are counted; one whose row comes late does not make the last one earlier."""
    (row,) = rows((10, part(1)), (40, part(1)), (30, part(1)))
    assert (row["calls"], row["first_call_id"], row["last_call_id"]) == (3, 10, 40)
    assert (row["first_time"], row["last_time"]) == (10_000, 40_000)


def test_replicas_are_those_of_the_last_response_and_in_sync_are_the_fewest() -> None:
    (row,) = rows(*((at, part(1, in_sync=count)) for at, count in ((1, 3), (2, 1), (3, 2))))
    assert (row["replicas"], row["in_sync"], row["isr_nodes"]) == (3, 1, [0])


def test_without_epochs_a_leader_that_returns_has_a_new_row() -> None:
    found = rows(*((at, part(leader, -1)) for at, leader in ((1, 1), (2, 2), (3, 1), (4, 1))))
    assert [(row["leader"], row["calls"], row["leader_epoch"]) for row in found] == [
        (1, 1, None),
        (2, 1, None),
        (1, 2, None),
    ]


def test_a_response_without_ids_is_of_the_topic_that_had_one() -> None:
    leaders = Leaders(MemoryBudget())
    leaders.add_response(
        {"topics": [{"name": "orders", "topic_id": "x" * 22, "partitions": [part(1)]}]}, teller(1)
    )
    leaders.add_response({"topics": [{"name": "orders", "partitions": [part(1)]}]}, teller(2))
    leaders.finish()
    assert [(row.topic_id, row.calls) for row in leaders.rows] == [("x" * 22, 2)]


def test_one_replica_and_more_are_known_since_they_were_first_named() -> None:
    """The least of each, whichever comes first."""
    one = [(30, part(1, replicas=1)), (20, part(1, replicas=1))]
    for order in (one, one[::-1]):
        leaders = followed(*order, (50, part(1, replicas=2)))
        assert leaders.find_copies("orders", 0) == (20, 50)
    assert leaders.find_copies("orders", 1) == (NEVER, NEVER)
    assert followed((60, part(1, replicas=2)), (70, part(1))).find_copies("orders", 0) == (NEVER, 60)


@pytest.mark.parametrize(("place", "known"), [(4, (NEVER, NEVER)), (5, (100, NEVER)), (9, (100, 200))])
def test_changes_are_known_from_their_call_on(place: int, known: tuple[int, int]) -> None:
    copies = Copies([Change(5, "orders", 0, 100, None), Change(9, "orders", 0, 100, 200)])
    copies.go_on(place)
    assert copies.find_copies("orders", 0) == known
