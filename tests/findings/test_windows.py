"""A window that fills: also in a response that its client cut off, of which no latency is known."""

from __future__ import annotations

from typing import Any

import pytest

from tests.findings.scripted import find

SECOND = 10**6


@pytest.mark.parametrize(
    ("reason", "waited_s", "number"), [("cut_off_by_client", 8, 1), ("cut_off_by_client", 2, 0), (None, 8, 0)]
)
def test_a_response_that_is_cut_off_was_limited_by_the_window(
    reason: str | None, waited_s: int, number: int
) -> None:
    """The client closes 10 s after its request; the response waited for room in the window."""
    at = {"run_id": "run", "connection_id": 1, "call_id": 1}
    ends = {
        "client_id": "far",
        "client_address": "10.0.0.7",
        "broker_address": "10.0.0.1",
        "broker_port": 9092,
    }
    call: dict[str, Any] = {**at, **ends, "caller": "client", "status": "answered", "reason": reason}
    call |= {"api_name": "Fetch", "request_time": 0}
    stall = {**at, "cause": "receiver_window", "direction": "to_client", "start_time": SECOND}
    stall |= {"duration_ns": waited_s * 10**9, "bytes": 2896}
    connection = {**at, **ends, "round_trip_ns": 60_000_000, "last_time": 11 * SECOND}
    connection |= {"close_time": 10 * SECOND, "protocol": "kafka"}
    found = find("window_limited", {"api_calls": [call], "stalls": [stall], "connections": [connection]})
    assert len(found) == number
    assert ["80 % of their time" in each.text for each in found] == [True] * number
