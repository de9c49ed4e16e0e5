"""A distant producer that sends nothing before the last response has come."""

from __future__ import annotations

from typing import Any

import pytest

from tests.findings.scripted import find

US = 10**6


def found(
    count: int = 80,
    *,
    trip_ms: float = 40,
    pause_ms: float = 0.5,
    behind_ms: float = 0,
    records: int = 1,
    record_bytes: int = 100,
    acks: int = -1,
) -> list[tuple[str, bool]]:
    """`pause_ms`: what the client takes itself; `behind_ms`: of the round trip, behind the capture point."""
    where = {"connection_id": 1, "client_id": "edge", "client_address": "10.0.0.7"}
    where |= {"broker_address": "10.0.0.1", "broker_port": 9092, "caller": "client"}
    step, took = round((trip_ms + pause_ms) * 1000), round((trip_ms - behind_ms) * 1000)
    calls: list[dict[str, Any]] = [
        {
            **where,
            "call_id": number,
            "api_name": "Produce",
            "api_key": 0,
            "acks": acks,
            "status": "answered",
            "request_time": number * step,
            "response_time": number * step + took,
            "response_end_time": number * step + took,
            "record_count": records,
            "record_bytes": record_bytes,
        }
        for number in range(count)
    ]
    times = [
        {**where, "call_id": each["call_id"], "request_time": each["request_time"], "total_ns": took * 1000,
         "wait": "none", "api_name": "Produce"}
        for each in calls
    ]  # fmt: skip
    connection = {
        **where,
        "protocol": "kafka",
        "handshake": True,
        "calls": count,
        "first_time": 0,
        "last_time": count * step,
        "round_trip_ns": round(trip_ms * US),
        "client_round_trip_ns": round(behind_ms * US),
        "broker_round_trip_ns": round((trip_ms - behind_ms) * US),
    }
    capture = {"capture": "one.pcap", "first_time": 0, "last_time": 99 * US}
    tables = {"api_calls": calls, "latencies": times, "connections": [connection], "captures": [capture]}
    return [(each.severity, "only after the response" in each.text) for each in find("far_away", tables)]


@pytest.mark.parametrize("behind_ms", [0, 10, 15])
def test_a_client_that_waits_for_each_response_writes_no_faster_than_the_distance(behind_ms: float) -> None:
    assert found(200, behind_ms=behind_ms) == [("info", True)]


@pytest.mark.parametrize(
    "how",
    [
        {"count": 40},
        {"trip_ms": 12, "count": 600},
        {"pause_ms": 20, "count": 200},
        {"records": 40, "count": 200},
        {"record_bytes": 30_000, "count": 200},
    ],
)
def test_a_pause_or_batches_make_the_distance_nobodys_fault(how: dict[str, Any]) -> None:
    assert found(**how) == [("info", False)]
