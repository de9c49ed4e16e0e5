"""Rows of members, call by call and by hand: how long they are silent, and how they end."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kwsniff.layout.catalog import load_catalog
from kwsniff.timelines.groups import members as members_room
from kwsniff.timelines.groups.members import Call, Members
from kwsniff.timelines.memory_budget import MemoryBudget
from kwsniff.timelines.metadata.topic_names import TopicNames

S = 1_000_000
JOIN, HEARTBEAT, LEAVE, SYNC, EPOCH = 11, 12, 13, 14, 68
UNKNOWN_MEMBER, FENCED_INSTANCE = 25, 82


def text(value: str | None) -> bytes:
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()


def join_request(session_ms: int, rebalance_ms: int = 300_000) -> bytes:
    """JoinGroup 5 without protocols, with the client id before it."""
    head = text("app") + text("g") + struct.pack(">ii", session_ms, rebalance_ms)
    return head + text("") + text(None) + text("consumer") + struct.pack(">i", 0)


def sync_response(partitions: dict[str, list[int]]) -> bytes:
    """SyncGroup 3 with an assignment of the consumer protocol, version 0."""
    inside = struct.pack(">hi", 0, len(partitions))
    for topic, numbers in partitions.items():
        inside += text(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    inside += struct.pack(">i", -1)
    return struct.pack(">ihi", 0, 0, len(inside)) + inside


def call(api_key: int, member: str, begin: int, **changed: Any) -> Call:
    given: dict[str, Any] = {
        "call_id": begin,
        "api_version": {JOIN: 5, SYNC: 3, EPOCH: 0, LEAVE: 1}.get(api_key, 3),
        "group_id": "g",
        "member_id": member,
        "instance": None,
        "client_id": "app",
        "client_address": "10.0.0.1",
        "generation": 1,
        "begin": begin,
        "end": begin + 5,
        "error_code": 0,
        "capture": "x.pcap",
        "request": None,
        "response": None,
        **changed,
    }
    return Call(api_key=api_key, **given)


def rows(*calls: Call) -> dict[str, dict[str, Any]]:
    budget = MemoryBudget()
    followed = Members(TopicNames(budget), load_catalog(), budget)
    for each in calls:
        followed.add_call(each)
    followed.finish()
    assert budget.used == 0
    assert len({row["member_id"] for row in followed.rows}) == len(followed.rows)
    return {row["member_id"]: row for row in followed.rows}


@pytest.mark.parametrize(
    ("silent", "how"), [(10 * S - 1, "open_at_end"), (10 * S, "session_expired"), (11 * S, "session_expired")]
)
def test_who_is_silent_for_its_session_and_has_no_part_in_the_next_generation_expired(
    silent: int, how: str
) -> None:
    """The generation begins with its first join, whoever's row comes first."""
    begin = 5 * S + silent
    found = rows(
        call(JOIN, "a", 1 * S, request=join_request(10_000)),
        call(JOIN, "b", 1 * S, request=join_request(10_000)),
        call(HEARTBEAT, "a", 5 * S),
        call(JOIN, "b", begin + S, generation=2, request=join_request(10_000)),
        call(JOIN, "c", begin, generation=2, request=join_request(10_000)),
    )
    assert (found["a"]["left_how"], found["a"]["last_time"]) == (how, 5 * S * 1000)
    assert found["b"]["left_how"] == found["c"]["left_how"] == "open_at_end"


def test_a_member_of_the_latest_generation_is_there() -> None:
    """However long it was silent before the first join of that generation that the capture has."""
    found = rows(
        call(JOIN, "a", 1 * S, request=join_request(10_000)),
        call(HEARTBEAT, "a", 2 * S, generation=2),
        call(JOIN, "b", 90 * S, generation=2, request=join_request(10_000)),
    )
    assert found["a"]["left_how"] == "open_at_end"


@pytest.mark.parametrize(("error", "how"), [(UNKNOWN_MEMBER, "session_expired"), (FENCED_INSTANCE, "fenced")])
def test_errors_say_how_a_membership_ended(error: int, how: str) -> None:
    """With the response. Who had left before does not end again."""
    found = rows(
        call(JOIN, "a", S),
        call(HEARTBEAT, "a", 5 * S, error_code=error),
        call(HEARTBEAT, "b", 6 * S, error_code=error),
    )
    assert {name: (row["left_how"], row["left_time"]) for name, row in found.items()} == {
        "a": (how, (5 * S + 5) * 1000)
    }


@pytest.mark.parametrize(
    ("who", "how"),
    [
        ({}, "left"),
        ({"client_address": "10.0.0.7"}, "removed"),
        ({"client_id": "kafka-consumer-groups"}, "removed"),
    ],
)
def test_who_leaves_goes_with_the_request_and_who_is_removed_too(who: dict[str, Any], how: str) -> None:
    found = rows(call(JOIN, "a", S), call(LEAVE, "a", 9 * S, generation=None, **who))
    assert (found["a"]["left_how"], found["a"]["left_time"]) == (how, 9 * S * 1000)


def test_what_was_known_of_a_member_stays() -> None:
    found = rows(
        call(JOIN, "a", S, instance="static-1", request=join_request(10_000, 60_000)),
        call(HEARTBEAT, "a", 2 * S),
        call(HEARTBEAT, "a", 3 * S, generation=9, error_code=27),
        call(JOIN, "a", 4 * S, generation=2),
    )["a"]
    assert (found["group_instance_id"], found["generation"]) == ("static-1", 2)
    assert (found["joined_time"], found["last_time"]) == (S * 1000, 4 * S * 1000)
    assert (found["session_timeout_ms"], found["rebalance_timeout_ms"]) == (10_000, 60_000)
    refused = rows(call(JOIN, "a", S), call(HEARTBEAT, "a", 3 * S, generation=9, error_code=27))["a"]
    assert refused["generation"] == 1


def test_partitions_are_counted_over_topics() -> None:
    found = rows(
        call(JOIN, "a", S),
        call(SYNC, "a", 2 * S, response=sync_response({"orders": [0, 1, 5], "carts": [2]})),
    )["a"]
    assert found["partitions"] == ["orders-0", "orders-1", "orders-5", "carts-2"]
    assert found["partition_count"] == 4


def test_epochs_below_nothing_leave_and_nothing_joins() -> None:
    """KIP-848: 0 joins, -1 leaves."""
    found = rows(
        call(EPOCH, "a", S, generation=0),
        call(EPOCH, "a", 2 * S, generation=4),
        call(EPOCH, "a", 3 * S, generation=0),
        call(EPOCH, "b", 4 * S, generation=0),
        call(EPOCH, "b", 5 * S, generation=-1),
    )
    assert {name: (row["left_how"], row["joined_time"]) for name, row in found.items()} == {
        "a": ("open_at_end", S * 1000),
        "b": ("left", 4 * S * 1000),
    }


@pytest.mark.parametrize(("members", "forgotten"), [(2, 0), (3, 0), (4, 1)])
def test_the_bound_of_members_is_exact(monkeypatch: pytest.MonkeyPatch, members: int, forgotten: int) -> None:
    monkeypatch.setattr(members_room, "MOST_MEMBERS_TOTAL", 3)
    budget = MemoryBudget()
    followed = Members(TopicNames(budget), load_catalog(), budget)
    for number in range(members):
        followed.add_call(call(JOIN, f"m{number}", S, group_id=f"g{number}"))
    assert followed.forgotten == forgotten
