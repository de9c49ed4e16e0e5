"""Each symptom in tables made by hand, with other numbers, and its healthy neighbour without a finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.findings.scripted import Rows, find

SECOND = 1_000_000
Row = dict[str, Any]


def told(number: int, seconds: float, api: str, client: str = "billing", **more: Any) -> Row:
    """A call of `client`, answered within a millisecond."""
    moment = round(seconds * SECOND)
    return {
        "call_id": number, "connection_id": 1, "client_id": client, "client_address": "10.0.0.7",
        "broker_address": "10.0.0.1", "broker_port": 9092, "caller": "client", "api_name": api,
        "status": "answered", "request_time": moment, "response_time": moment + 1000,
        "response_end_time": moment + 1000, "time": moment, "error_code": 0, **more,
    }  # fmt: skip


def subjects(name: str, tables: Mapping[str, Rows]) -> list[tuple[str, str, int]]:
    connection = told(1, 0, "", first_time=0, last_time=99 * SECOND, protocol="kafka")
    capture = {"capture": "one.pcap", "first_time": 0, "last_time": 99 * SECOND}
    rows = {"connections": [connection], "captures": [capture], **tables}
    return [(each.subject, each.blames, each.calls) for each in find(name, rows)]


def in_line(
    count: int, wait_s: float, front: str = "long_poll", api: str = "OffsetCommit"
) -> dict[str, Rows]:
    """`count` calls, each behind a Fetch of its own."""
    calls, parts = [], []
    for number in range(count):
        at = number * 2.0
        fetch, short = 2 * number + 1, 2 * number + 2
        calls += [told(fetch, at, "Fetch", max_wait_ms=1500), told(short, at + 0.1, api)]
        wait = round(wait_s * 1e9)
        parts.append(
            told(short, at + 0.1, api, total_ns=wait + 10**6, queue_wait_ns=wait, queued_behind=fetch,
                 queued_behind_wait=front)
        )  # fmt: skip
    return {"api_calls": calls, "latencies": parts}


@pytest.mark.parametrize(("count", "wait_s", "api"), [(8, 0.4, "OffsetCommit"), (30, 0.15, "Heartbeat")])
def test_calls_behind_a_long_poll_wait_in_line(count: int, wait_s: float, api: str) -> None:
    found = subjects("waits_in_line", in_line(count, wait_s, api=api))
    assert found == [("billing", "client", count)]


@pytest.mark.parametrize(
    ("count", "wait_s", "front", "api"),
    [
        (7, 0.9, "long_poll", "OffsetCommit"),
        (30, 0.05, "long_poll", "OffsetCommit"),
        (30, 0.9, "none", "OffsetCommit"),
        (30, 0.9, "replicas", "Produce"),
        (30, 0.9, "long_poll", "Fetch"),
    ],
)
def test_calls_behind_others_for_a_reason_do_not(count: int, wait_s: float, front: str, api: str) -> None:
    assert subjects("waits_in_line", in_line(count, wait_s, front, api)) == []


def commits(count: int, every_s: float, step: int, **more: Any) -> dict[str, Rows]:
    calls = [told(n, n * every_s, "OffsetCommit", group_id="g", **more) for n in range(count)]
    rows = [
        {**row, "topic": "orders", "partition": 0, "committed_offset": step * n}
        for n, row in enumerate(calls)
    ]
    return {"api_calls": calls, "commits": rows}


@pytest.mark.parametrize(("count", "every_s", "step"), [(300, 0.002, 1), (60, 0.05, 2), (60, 0.2, 0)])
def test_a_client_that_commits_each_record_or_the_same_offsets_storms(
    count: int, every_s: float, step: int
) -> None:
    assert [each[:2] for each in subjects("commit_storm", commits(count, every_s, step))] == [
        ("billing", "client")
    ]


@pytest.mark.parametrize(
    ("count", "every_s", "step", "more"),
    [
        (40, 0.02, 1, {}),
        (300, 0.02, 500, {}),
        (60, 1.0, 1, {}),
        (300, 0.02, 1, {"transactional_id": "till"}),
    ],
)
def test_a_client_that_commits_for_many_records_or_seldom_does_not(
    count: int, every_s: float, step: int, more: Row
) -> None:
    assert subjects("commit_storm", commits(count, every_s, step, **more)) == []


def refused(times: Sequence[float], code: int, api: str, **more: Any) -> dict[str, Rows]:
    calls = [told(n, at, api, error_code=code, **more) for n, at in enumerate(times)]
    return {"api_calls": calls, "error_codes": [{**row, "error_name": f"E{code}"} for row in calls]}


@pytest.mark.parametrize(("code", "api"), [(15, "FindCoordinator"), (14, "JoinGroup"), (16, "OffsetFetch")])
@pytest.mark.parametrize(("last", "is_found"), [(12, True), (7, True), (4, False)])
def test_a_coordinator_is_missing_until_it_works(code: int, api: str, last: int, is_found: bool) -> None:
    named: Row = {} if api == "FindCoordinator" else {"group_id": "audit"}
    tables = refused([each / 2 for each in range(2 * last)], code, api, **named)
    later = told(999, last, "Heartbeat", group_id="audit")
    tables = {**tables, "api_calls": [*tables["api_calls"], later]}
    assert [each[0] for each in subjects("coordinator_missing", tables)] == ["audit"] * is_found


@pytest.mark.parametrize(
    ("code", "named", "lacked"),
    [
        (14, {}, "got no producer id"),
        (15, {}, "had no coordinator"),
        (14, {"transactional_id": "till-7"}, "had no coordinator"),
    ],
)
def test_an_idempotent_producer_needs_an_id_and_no_coordinator(code: int, named: Row, lacked: str) -> None:
    (finding,) = find("coordinator_missing", refused(range(9), code, "InitProducerId", **named))
    assert f" {lacked} for 8.0 s" in finding.text


def moves(brokers: Sequence[int]) -> dict[str, Rows]:
    """A write to each leader in turn, after the one before refused it."""
    calls: list[Row] = []
    for number, broker in enumerate(brokers):
        for part, code in enumerate((0, 6)):
            place: Row = {"broker_address": f"10.0.0.{broker}", "topic": "orders", "partition": 0}
            calls.append(told(2 * number + part, number + part / 2, "Produce", error_code=code, **place))
    return {
        "api_calls": calls,
        "partitions": calls,
        "error_codes": [row for row in calls if row["error_code"]],
    }


@pytest.mark.parametrize("brokers", [[1, 2, 1, 2], [3, 1, 3, 1, 2, 3]])
def test_a_leader_that_moves_back_and_forth_flaps(brokers: Sequence[int]) -> None:
    assert subjects("leader_flaps", moves(brokers)) == [("orders-0", "broker", len(brokers))]


@pytest.mark.parametrize("brokers", [[1], [1, 2], [1, 2, 3, 1], [1, 1, 1, 1, 1, 1]])
def test_a_leader_that_moves_once_or_in_a_rolling_restart_does_not(brokers: Sequence[int]) -> None:
    assert subjects("leader_flaps", moves(brokers)) == []


def test_a_client_that_a_broker_serves_after_each_refusal_knows_the_leader() -> None:
    tables = moves([1, 2] * 6)
    assert subjects("stale_leader", tables) == []
    only = {"api_calls": tables["error_codes"], "error_codes": tables["error_codes"]}
    assert subjects("stale_leader", only) == [("billing", "client", 12)]


@pytest.mark.parametrize(
    ("times", "is_found"), [(range(12), True), (range(0, 20, 3), True), (range(4), False)]
)
def test_a_partition_without_a_leader_is_offline(times: Sequence[int], is_found: bool) -> None:
    tables = refused(times, 5, "Metadata", topic="orders", partition=1)
    assert subjects("offline_partition", tables) == [("orders-1", "broker", len(times))] * is_found


def test_a_topic_that_is_being_created_is_not_offline() -> None:
    assert subjects("offline_partition", refused(range(12), 5, "Metadata", topic="orders")) == []


@pytest.mark.parametrize(("code", "owner"), [(70, "configuration"), (71, "client")])
def test_sessions_that_are_lost_again_and_again_are_named(code: int, owner: str) -> None:
    found = subjects("fetch_sessions_lost", refused(range(9), code, "Fetch", session_id=5))
    assert found == [("10.0.0.1:9092", owner, 9)]


def test_one_lost_session_of_each_reader_is_routine() -> None:
    calls = [row for n in range(9) for row in refused([n], 70, "Fetch")["api_calls"]]
    calls = [{**row, "call_id": n, "client_id": f"reader-{n}"} for n, row in enumerate(calls)]
    assert subjects("fetch_sessions_lost", {"api_calls": calls, "error_codes": calls}) == []


@pytest.mark.parametrize(
    ("before", "delay", "was_member", "is_found"),
    [
        (3, 12, True, True),
        (1, 6, True, True),
        (3, 3, True, False),
        (None, 12, True, False),
        (3, 12, False, False),
    ],
)
def test_a_member_that_joins_late_delays_the_group(
    before: int | None, delay: int, was_member: bool, is_found: bool
) -> None:
    begin = 20 * SECOND
    group = {
        "group_id": "audit", "kind": "classic", "generation_before": before, "generation": 4,
        "first_member": "a-1", "last_member": "b-2", "member_count": 2, "begin_time": begin,
        "first_join_time": begin, "last_join_time": begin + delay * SECOND,
        "end_time": begin + delay * SECOND, "duration_ns": delay * 10**9,
    }  # fmt: skip
    calls = [told(1, 20, "JoinGroup", "a", group_id="audit", latency_ns=delay * 10**9)]
    if was_member:
        calls.append(told(2, 3, "Heartbeat", "b", group_id="audit", member_id="b-2"))
    found = subjects("rebalance_slow", {"groups": [group], "api_calls": calls})
    assert found == [("audit", "client", 1)] * is_found


def test_a_member_that_joins_late_delays_a_rebalance_whose_end_is_not_in_the_capture() -> None:
    group = {
        "group_id": "audit", "kind": "classic", "generation_before": 3, "first_member": "a-1",
        "last_member": "b-2", "member_count": 2, "begin_time": 20 * SECOND, "first_join_time": 20 * SECOND,
        "last_join_time": 32 * SECOND,
    }  # fmt: skip
    calls = [
        told(1, 20, "JoinGroup", "a", group_id="audit", latency_ns=12 * 10**9),
        told(2, 3, "Heartbeat", "b", group_id="audit", member_id="b-2"),
    ]
    found = subjects("rebalance_slow", {"groups": [group], "api_calls": calls})
    assert found == [("audit", "client", 1)]


def test_a_member_without_a_common_assignor_is_refused() -> None:
    tables = refused([1, 2], 23, "JoinGroup", group_id="audit")
    assert subjects("mixed_assignors", tables) == [("audit", "configuration", 2)]


def dropped(silences: Sequence[int], survived: int = 0) -> dict[str, Rows]:
    """Connections that die when the client speaks after a silence; one that survived one."""
    calls, connections, events = [], [], []
    for number, silence in enumerate(silences, 1):
        place: Row = {"connection_id": number}
        calls.append(told(10 * number, 1, "Metadata", **place))
        calls.append(told(10 * number + 1, 1 + silence, "Metadata", **place, status="unanswered"))
        connections.append(
            told(0, 0, "", **place, first_time=0, last_time=90 * SECOND, broker_bytes=99,
                 client_unacknowledged_bytes=40, client_retransmitted_bytes=80, protocol="kafka")
        )  # fmt: skip
        event = {**place, "kind": "retransmission", "sender": "client"}
        events += [{**event, "time": (2 + silence + n) * SECOND} for n in range(2)]
    calls += [told(900, 1, "Metadata", connection_id=9), told(901, 1 + survived, "Metadata", connection_id=9)]
    return {"api_calls": calls, "connections": connections, "tcp_events": events}


@pytest.mark.parametrize(
    ("silences", "survived", "is_found"),
    [
        ([60, 60], 20, True),
        ([9, 30, 31], 4, True),
        ([60], 20, False),
        ([60, 60], 70, False),
        ([2, 2], 0, False),
    ],
)
def test_flows_that_die_after_a_silence_were_dropped(
    silences: Sequence[int], survived: int, is_found: bool
) -> None:
    found = subjects("idle_dropped", dropped(silences, survived))
    assert found == [("billing", "network", len(silences))] * is_found


def led(moved: int, kept: int, copies: int = 2, *, in_sync: bool = True) -> dict[str, Rows]:
    """Partitions whose preferred leader is broker 1: broker 2 leads `moved` of them."""
    rows = [
        {
            "topic": "orders", "partition": number, "leader": 2 if number < moved else 1, "leader_epoch": 3,
            "replica_nodes": [1, 2][:copies], "isr_nodes": [1, 2][:copies] if in_sync else [2],
            "first_time": SECOND, "last_time": 2 * SECOND, "first_call_id": 7, "last_call_id": 7,
        }
        for number in range(moved + kept)
    ]  # fmt: skip
    return {"leaders": rows}


@pytest.mark.parametrize(("moved", "kept"), [(3, 0), (3, 26), (40, 300)])
def test_leaders_that_are_not_the_preferred_ones_are_skewed(moved: int, kept: int) -> None:
    assert subjects("leaders_skewed", led(moved, kept)) == [("broker 1", "configuration", 1)]


@pytest.mark.parametrize(("moved", "kept"), [(2, 0), (3, 27), (10, 90)])
def test_up_to_a_tenth_of_the_leaders_may_be_others(moved: int, kept: int) -> None:
    assert subjects("leaders_skewed", led(moved, kept)) == []


def test_leaders_stay_elsewhere_while_the_preferred_one_is_not_in_sync() -> None:
    assert subjects("leaders_skewed", led(9, 0, in_sync=False)) == []


def test_an_election_counts_and_not_the_leader_before_it() -> None:
    before = led(9, 0)["leaders"]
    after = [{**row, "leader_epoch": 4} for row in led(0, 9)["leaders"]]
    assert subjects("leaders_skewed", {"leaders": [*after, *before]}) == []
