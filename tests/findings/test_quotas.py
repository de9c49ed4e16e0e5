"""Which quota a throttled client has reached: nobody has one of a few bytes per second."""

from __future__ import annotations

from typing import Any

import pytest

from tests.findings.scripted import find

SECOND = 10**6


def asked(number: int, api: str, record_bytes: int | None, throttled_ms: int) -> dict[str, Any]:
    time = number * SECOND
    row = {"call_id": number, "connection_id": 1, "client_id": "report", "caller": "client", "api_name": api}
    row |= {"client_address": "10.0.0.7", "broker_address": "10.0.0.1", "broker_port": 9092}
    row |= {"status": "answered", "throttle_time_ms": throttled_ms, "record_bytes": record_bytes}
    return row | {"request_time": time, "response_time": time + 900, "response_end_time": time + 900}


@pytest.mark.parametrize(
    ("api", "record_bytes", "quota"),
    [
        ("Fetch", 0, "request_percentage"),
        ("Fetch", 300, "request_percentage"),
        ("Fetch", 5_000, "consumer_byte_rate"),
        ("Fetch", None, "consumer_byte_rate"),
        ("Produce", 200, "request_percentage"),
        ("Produce", 9_000, "producer_byte_rate"),
        ("Metadata", None, "request_percentage"),
        ("CreateTopics", None, "controller_mutation_rate"),
    ],
)
def test_the_quota_is_one_of_requests_where_few_bytes_move(
    api: str, record_bytes: int | None, quota: str
) -> None:
    calls = [asked(number, api, record_bytes, 200 * (number % 2)) for number in range(10)]
    capture = {"capture": "one.pcap", "first_time": 0, "last_time": 99 * SECOND}
    (finding,) = find("throttled", {"api_calls": calls, "captures": [capture]})
    assert f"A quota ({quota}) limits report" in finding.text
    assert f"Raise {quota}" in finding.advice
    assert finding.advice.count("request_percentage") == 1
    assert finding.value == 1000


@pytest.mark.parametrize(("throttled_ms", "stalls"), [(5000, 0), (0, 1)])
def test_calls_on_a_connection_that_a_quota_mutes_do_not_wait_for_the_broker(
    throttled_ms: int, stalls: int
) -> None:
    """KIP-219: the broker answers with the time for which it then reads nothing from the connection."""
    first = asked(1, "CreateTopics", None, throttled_ms)
    open_ = {"status": "unanswered", "reason": "open_at_end", "throttle_time_ms": None}
    open_ |= {"response_time": None, "response_end_time": None}
    later = [{**asked(number, "CreateTopics", None, 0), **open_} for number in (2, 3)]
    answered = {"total_ns": 900_000, "broker_ns": 900_000, "queue_wait_ns": 0, "wait": "none"}
    answered |= {"deliberate_wait_ns": 0, "queued_behind_wait": "none", "retransmissions": 0}
    capture = {"capture": "one.pcap", "first_time": 0, "last_time": 6 * SECOND}
    calls = {"api_calls": [first, *later], "latencies": [{**first, **answered}], "captures": [capture]}
    alone = {"node_id": 1, "host": "10.0.0.1", "port": 9092}  # it waits for no other controller
    found = find("broker_stalled", {**calls, "brokers": [alone]})
    assert len(found) == stalls
