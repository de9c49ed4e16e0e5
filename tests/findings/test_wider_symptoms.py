"""Symptoms that show in another way than an error: tables made by hand, and their healthy neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.findings.scripted import Rows, find
from tests.findings.test_new_symptoms import SECOND, Row, dropped, refused, subjects, told


def _fetches(
    epochs: Sequence[int], session: int = 0, every_s: float = 0.5, partitions: int = 100
) -> dict[str, Rows]:
    more: dict[str, Any] = {"session_id": session, "partition_count": partitions}
    return {
        "api_calls": [
            told(number, 1 + number * every_s, "Fetch", session_epoch=epoch, **more)
            for number, epoch in enumerate(epochs, 1)
        ]
    }


@pytest.mark.parametrize(("session", "owner"), [(0, "configuration"), (71, "client")])
def test_a_reader_that_never_keeps_a_session_loses_it_each_time(session: int, owner: str) -> None:
    """Without a session the broker has no room; with a new one each time the client forgets it."""
    found = subjects("fetch_sessions_lost", _fetches([0] * 12, session))
    assert found == [("10.0.0.1:9092", owner, 12)]


@pytest.mark.parametrize(
    ("epochs", "every_s"),
    [
        ([-1] * 40, 0.5),  # it asks for none
        ([0, *range(1, 40)], 0.5),  # one session
        ([0] * 9, 0.5),  # few
        ([0] * 12 + [*range(1, 20)], 0.5),  # most are of a session
        ([0] * 12, 0.1),  # all within a second
    ],
)
def test_a_reader_with_a_session_or_without_the_wish_for_one_is_fine(
    epochs: Sequence[int], every_s: float
) -> None:
    assert subjects("fetch_sessions_lost", _fetches(epochs, every_s=every_s)) == []


def test_a_reader_of_few_partitions_needs_no_session() -> None:
    assert subjects("fetch_sessions_lost", _fetches([0] * 40, partitions=99)) == []


def test_a_coordinator_without_the_assignor_refuses_the_member() -> None:
    """UNSUPPORTED_ASSIGNOR (KIP-848)."""
    tables = refused([1], 112, "ConsumerGroupHeartbeat", group_id="audit")
    assert subjects("mixed_assignors", tables) == [("audit", "configuration", 1)]


@pytest.mark.parametrize(
    ("opened_after", "answered", "is_found"),
    [
        (2.5, True, True),  # a new connection works while the old one waits
        (2.5, False, False),  # nothing works: the path may be dead
        (-2.0, True, False),  # it was open before, and proves nothing about new ones
    ],
)
def test_one_flow_that_dies_while_another_one_opens_was_dropped(
    opened_after: float, answered: bool, is_found: bool
) -> None:
    """The request at 61 s, after 60 s of silence, is sent again at 62 s and 63 s; it is given up at 90 s."""
    tables = dropped([60])
    other: Row = {"connection_id": 5}
    status = "answered" if answered else "unanswered"
    opened = round((61 + opened_after) * SECOND)
    tables["api_calls"] = [*tables["api_calls"], told(500, 70, "Metadata", **other, status=status)]
    tables["connections"] = [
        *tables["connections"],
        told(0, 0, "", **other, first_time=opened, last_time=90 * SECOND, broker_bytes=9, protocol="kafka"),
    ]
    found = subjects("idle_dropped", tables)
    assert found == [("billing", "network", 1)] * is_found


def _given_up(
    delay: float, kind: str = "consumer", *, beats: bool = True, interval: int = 5000
) -> dict[str, Rows]:
    """A member of a group whose coordinator assigns: it takes the new epoch so many seconds late."""
    begin = 20 * SECOND
    late = begin + round(delay * SECOND)
    group = {
        "group_id": "audit", "kind": kind, "generation_before": 3, "generation": 4, "first_member": "a-1",
        "last_member": "b-2", "member_count": 2, "begin_time": begin, "first_join_time": begin,
        "last_join_time": late, "end_time": late, "duration_ns": round(delay * 10**9),
    }  # fmt: skip
    at = [3, *((22, 27) if beats else ())]
    calls = [
        told(number, second, "ConsumerGroupHeartbeat", "b", group_id="audit", member_id="b-2", generation=3)
        for number, second in enumerate(at, 1)
    ]
    member = {"group_id": "audit", "kind": kind, "member_id": "b-2", "heartbeat_interval_ms": interval}
    return {"groups": [group], "api_calls": calls, "members": [member]}


@pytest.mark.parametrize(("delay", "interval"), [(16, 5000), (120, 5000), (8, 1000)])
def test_a_member_that_gives_up_its_partitions_late_delays_the_group(delay: float, interval: int) -> None:
    """Two heartbeat intervals tell it and the one that waits; 5 s more is its own."""
    found = subjects("rebalance_slow", _given_up(delay, interval=interval))
    assert found == [("audit", "client", 2)]


@pytest.mark.parametrize(
    "tables",
    [
        _given_up(14),
        _given_up(8, interval=2000),
        _given_up(40, "share"),
        _given_up(40, beats=False),
    ],
    ids=["as long as heartbeats take", "shorter intervals", "a share group", "it is gone"],
)
def test_a_member_that_gives_them_up_with_its_heartbeats_does_not(tables: dict[str, Rows]) -> None:
    assert subjects("rebalance_slow", tables) == []


@pytest.mark.parametrize(
    ("rack", "nearer", "reason"),
    [
        ("", None, "client.rack is not set"),
        ("a", None, "client.rack is a, which brokers do not follow"),
        ("c", None, "client.rack is c, where no broker is"),
        ("a", 4, "client.rack is a, and the client reads elsewhere although brokers named node 4 as nearer"),
    ],
)
def test_bytes_that_leave_the_rack_have_a_reason(rack: str, nearer: int | None, reason: str) -> None:
    """The leader, in rack b, sends 90 kB; KIP-392 lets it name a replica in the client's rack."""
    fetch = {"response_bytes": 30_000, "rack_id": rack, "topic": "orders", "partition": 0}
    more: dict[str, Any] = {**fetch, "preferred_read_replica": nearer}
    fetches = [told(number, number, "Fetch", **more) for number in (1, 2, 3)]
    near: dict[str, Any] = {**more, "response_bytes": 90_100, "broker_address": "10.0.0.2"}
    own = [told(9, 9, "Fetch", **near)] if not rack else []
    brokers = [
        {"node_id": node, "host": host, "port": 9092, "rack": where}
        for node, host, where in ((3, "10.0.0.1", "b"), (4, "10.0.0.2", "a"))
    ]
    connection = told(1, 0, "", first_time=0, last_time=99 * SECOND, protocol="kafka")
    calls = [*fetches, *own]
    tables = {"connections": [connection], "api_calls": calls, "partitions": calls, "brokers": brokers}
    (each,) = find("cross_rack", tables)
    assert (each.value, each.text.endswith(f": {reason}.")) == (90_000, True)
