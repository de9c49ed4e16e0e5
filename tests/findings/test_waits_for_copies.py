"""Fetches that bring records once their copies are written, and lags behind a quota.

The first rows are those of a partition that moved: its new leader has to wait for the follower's first fetch.
"""

from __future__ import annotations

from tests.findings.scripted import find
from tests.findings.test_holes import _connection
from tests.findings.test_stretches import SECOND, _call

BROKERS = [{"node_id": node, "host": f"10.0.0.{node}", "port": 9092} for node in (1, 2)]
COMMIT = {"connection_id": 1, "client_id": "b-1", "client_address": "10.0.0.7", "caller": "client"}


def _stalls(max_wait_ms: int, acks: int = -1, brokers: int = 2) -> list[int]:
    """Two writes and a fetch wait for a second; all are answered before and after."""
    wait = {"acks": acks, "wait": "replicas_possible" if acks == -1 else "none"}
    calls = [
        _call(1, 1, 1.01, 1, "Metadata"),
        {**_call(2, 2.05, 3.1, 2, "Produce"), **wait},
        {**_call(3, 2.06, 3.1, 3, "Produce"), **wait},
        {**_call(4, 2.0, 3.1, 4), "max_wait_ms": max_wait_ms, "wait": "data", "client_id": "billing-1"},
        _call(5, 3.2, 3.21, 1, "Metadata"),
    ]
    calls = [{"caller": "client", **call} for call in calls]
    latencies = [call for call in calls if "total_ns" in call]
    connections = [_connection(number) for number in range(1, 5)]
    tables = {"api_calls": calls, "latencies": latencies, "connections": connections}
    found = find("broker_stalled", {**tables, "brokers": BROKERS[:brokers]})
    return [each.calls for each in found]


def test_a_fetch_within_its_own_wait_proves_no_stall_where_writes_wait_for_copies() -> None:
    assert _stalls(max_wait_ms=5000) == []
    assert _stalls(max_wait_ms=500) == [3]  # it should have come long ago


def test_a_fetch_within_its_own_wait_counts_where_nothing_waits_for_copies() -> None:
    assert _stalls(max_wait_ms=5000, acks=1) == [3]
    assert _stalls(max_wait_ms=5000, brokers=1) == [3]


def _follows(throttled: str) -> bool:
    """Whether a lag that grows may follow from a quota on the fetches of this client."""
    commits = [
        {"call_id": second, "group_id": "billing", "topic": "orders", "partition": 0, "lag": 10 + 99 * second,
         "high_watermark": 1000 * second + 10, "committed_offset": 900 * second, "time": second * SECOND}
        for second in range(8)
    ]  # fmt: skip
    there = {"broker_address": "10.0.0.1", "broker_port": 9092, "status": "answered"}
    calls = [{**each, **COMMIT, **there, "api_name": "OffsetCommit"} for each in commits]
    fetch = {"call_id": 99, "api_name": "Fetch", "throttle_time_ms": 900, "client_id": throttled}
    connection = {"connection_id": 1, "client_address": "10.0.0.7", "protocol": "kafka", "first_time": 0}
    tables = {
        "commits": commits,
        "api_calls": [*calls, {**COMMIT, **there, **fetch}],
        "connections": [connection],
    }
    (found,) = find("lag_grows", tables)
    return found.may_follow


def test_a_lag_follows_from_a_quota_on_its_own_reader_only() -> None:
    assert _follows("b-1")
    assert not _follows("shop")
