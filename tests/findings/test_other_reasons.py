"""What looks like a fault of one party, and has another reason: tables made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.findings.scripted import Rows, find
from tests.findings.test_new_symptoms import SECOND, Row, commits, subjects, told

Tables = dict[str, Rows]


def waiting(number: int, seconds: float, api: str, wait_s: float, **more: Any) -> tuple[Row, Row]:
    """A call that a broker answers after so long, and its latency."""
    ends = round((seconds + wait_s) * SECOND)
    call = told(number, seconds, api, response_time=ends, response_end_time=ends, **more)
    parts = {"total_ns": round(wait_s * 1e9), "broker_ns": round(wait_s * 1e9), "queue_wait_ns": 0}
    given = {"wait": "none", "queued_behind_wait": "none", "retransmissions": 0}
    return call, told(number, seconds, api, **{**parts, **given, **more})


def tables_of(*calls: tuple[Row, Row], nodes: int = 3) -> Tables:
    quick = [waiting(900 + n, at, "Metadata", 0.001) for n, at in enumerate((0, 1, 30, 31))]
    brokers = [
        {"node_id": node, "cluster_id": "c", "host": "10.0.0.1", "port": 9092} for node in range(nodes)
    ]
    every = [*quick, *calls]
    return {"api_calls": [a for a, _ in every], "latencies": [b for _, b in every], "brokers": brokers}


STORED = [waiting(1, 10, "OffsetCommit", 5), waiting(2, 10.1, "OffsetCommit", 5, connection_id=2)]


def stalls(tables: Tables) -> int:
    ports = {row["connection_id"] for row in tables["api_calls"]}
    connections = [
        told(0, 0, "", connection_id=number, first_time=0, last_time=99 * SECOND, protocol="kafka")
        for number in ports
    ]
    return len(subjects("broker_stalled", {**tables, "connections": connections}))


def test_commits_that_wait_for_copies_are_no_stall_of_the_coordinator() -> None:
    assert stalls(tables_of(*STORED)) == 0


def test_in_a_cluster_of_one_broker_they_wait_for_nobody_else() -> None:
    assert stalls(tables_of(*STORED, nodes=1)) == 1


@pytest.mark.parametrize(("connection", "found"), [(1, 0), (3, 1)])
def test_a_call_that_needs_no_copies_shows_a_stall_unless_it_stands_in_line(
    connection: int, found: int
) -> None:
    """The heartbeat waits as long: behind the commit on its connection, or on one of its own."""
    beat = waiting(3, 10.2, "Heartbeat", 4.8, connection_id=connection)
    assert stalls(tables_of(*STORED, beat)) == found


def read(latency_ms: float, every_s: float, behind: int = 9) -> Tables:
    """A member that falls behind; its fetches bring 2,000 bytes each."""
    took = round(latency_ms * 1e6)
    calls, parts = [], []
    for number in range(60):
        call = told(number, number * every_s, "Fetch", latency_ns=took, max_wait_ms=500, record_bytes=2000)
        calls.append(call)
        parts.append({**call, "topic": "orders", "partition": 0, "requested_offset": number, "lag": behind})
    lags: list[Row] = []
    for number in range(12):
        call = told(100 + number, number * every_s * 5, "OffsetCommit", group_id="billing")
        calls.append(call)
        lags.append(
            {**call, "topic": "orders", "partition": 0, "lag": 20 + number * 20, "committed_offset": number}
        )
    return {"api_calls": calls, "partitions": parts, "commits": lags}


@pytest.mark.parametrize(
    ("every_s", "behind", "owner"),
    [(0.5, 9, "configuration"), (1.0, 9, "client"), (0.5, 0, "client")],  # a fetch takes 0.41 s
)
def test_a_member_that_always_waits_for_fetches_is_not_slow_itself(
    every_s: float, behind: int, owner: str
) -> None:
    """One that has fetched all there is waits for producers."""
    tables = read(410, every_s, behind)
    assert [blames for _, blames, _ in subjects("lag_grows", tables)] == [owner]


def test_rejected_commits_are_repeated_for_that_reason() -> None:
    """A hundred in 10 s; the topic of one of their partitions is gone."""
    assert subjects("commit_storm", commits(100, 0.1, 0)) != []
    assert subjects("commit_storm", commits(100, 0.1, 0, error_code=3)) == []


def restarted(times: int, positions: int = 1, committed: bool = False) -> Tables:
    """A member that begins so often; each time it reads 10 records from where it begins."""
    calls, parts, members = [], [], []
    for number in range(times):
        begins = number * 10.0
        first = (number % positions) * 100
        call = told(number, begins + 1, "Fetch", connection_id=number, record_bytes=500)
        row = {**call, "topic": "orders", "partition": 0, "requested_offset": first, "last_offset": first + 9}
        calls += [call, told(100 + number, begins + 5, "LeaveGroup", connection_id=number)]
        parts.append(row)
        members.append({
            "group_id": "g", "kind": "classic", "member_id": f"m{number}", "client_id": "billing",
            "left_how": "left", "joined_time": round(begins * SECOND),
            "last_time": round((begins + 5) * SECOND),
        })  # fmt: skip
    done = [told(700, 3, "OffsetCommit", group_id="g", topic="orders", partition=0, committed_offset=10)]
    return {"api_calls": calls, "partitions": parts, "members": members, "commits": done if committed else []}


def test_a_group_that_never_commits_reads_the_same_again() -> None:
    (found,) = find("consumer_stuck", restarted(4))
    assert (found.subject, found.severity, found.calls) == ("orders-0", "warning", 4)
    assert "group g commits no offsets" in found.text


@pytest.mark.parametrize("tables", [restarted(2), restarted(4, positions=2), restarted(4, committed=True)])
def test_a_group_that_begins_elsewhere_or_seldom_or_commits_does_not(tables: Tables) -> None:
    assert find("consumer_stuck", tables) == []


def cut(snaplen: int, **more: Any) -> Tables:
    """Most bytes are missing; a broker does not answer two clients for 5 s at the end."""
    waits = [
        told(n, 90, "Metadata", f"c{n}", connection_id=n, status="unanswered", reason="open_at_end")
        for n in (1, 2)
    ]
    for row in waits:
        row["response_time"] = row["response_end_time"] = None
    early = [told(10 + n, n, "Metadata") for n in range(5)]
    connections = [
        told(0, 0, "", connection_id=n, capture="one.pcap", first_time=0, last_time=99 * SECOND,
             protocol="kafka", client_bytes=100, broker_bytes=100,
             client_missing_bytes=900, broker_missing_bytes=0)
        for n in (1, 2)
    ]  # fmt: skip
    captures = {"capture": "one.pcap", "first_time": 0, "last_time": 99 * SECOND, "tcp_payload_bytes": 400}
    sizes = ("response_not_captured", "response_only", "torn_frames", "lost_framing")
    captures |= {
        **dict.fromkeys((f"{each}_bytes" for each in sizes), 0),
        "truncated": False,
        "damaged": False,
    }
    return {
        "api_calls": [*early, *waits], "connections": connections,
        "captures": [{**captures, "snaplen": snaplen, **more}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("snaplen", "more", "found"),
    [
        (128, {}, 1),  # every packet is there, cut
        (262_144, {}, 0),  # packets are missing: answers, perhaps
        (128, {"dropped_by_kernel": 7}, 0),
        (128, {"response_not_captured_bytes": 90}, 0),
    ],
)
def test_a_short_snaplen_hides_no_answer(snaplen: int, more: Row, found: int) -> None:
    assert len(subjects("broker_stalled", cut(snaplen, **more))) == found
