"""Messages that wait in the queue of a link, beside the sender: their acknowledgements come later and later.

The rows are like those of a reader whose line carries 25 kB/s.
"""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.findings.finding import Finding
from tests.findings.scripted import find, find_worth_asking

SECOND = 10**6
ENDS = {
    "client_id": "branch",
    "client_address": "10.0.0.7",
    "broker_address": "10.0.0.1",
    "broker_port": 9092,
}


def _tables(
    count: int = 4, stalled_s: float = 2.0, total_s: float = 2.5, cause: str = "link_queue", **more: Any
) -> dict[str, list[dict[str, Any]]]:
    """So many responses of 50 kB, each of which takes so long and waits so long."""
    tables: dict[str, list[dict[str, Any]]] = {"api_calls": [], "latencies": [], "stalls": []}
    for number in range(1, count + 1):
        at = {"run_id": "run", "connection_id": 1, "call_id": number}
        took = {"total_ns": int(total_s * 1e9), "response_transmission_ns": 2 * 10**9, "retransmissions": 0}
        call = {**at, **ENDS, "caller": "client", "status": "answered", "api_name": "Fetch"}
        begin = number * 10 * SECOND
        tables["api_calls"].append({**call, "response_bytes": 50_000, "request_time": begin})
        tables["latencies"].append({**at, **ENDS, **took, "request_time": begin, **more})
        half = {**at, "cause": cause, "direction": "to_client", "duration_ns": int(stalled_s * 5e8)}
        tables["stalls"] += [{**half, "start_time": begin}, {**half, "start_time": begin + SECOND}]
    connection = {
        "run_id": "run",
        "connection_id": 1,
        **ENDS,
        "round_trip_ns": 17_000_000,
        "protocol": "kafka",
    }
    return {**tables, "connections": [{**connection, "capture_point": "broker"}]}


def _found(**what: Any) -> list[Finding]:
    return find("link_full", _tables(**what))


def test_responses_that_wait_in_the_queue_of_a_link_show_that_it_is_full() -> None:
    (found,) = _found()
    assert (found.subject, found.blames, found.calls, found.value) == ("branch", "network", 4, 2000)
    assert "4 messages to branch waited up to 2.0 s in its queue, at 25.0 kB/s" in found.text
    assert "17 ms without it" in found.text


@pytest.mark.parametrize(
    "what",
    [
        {"count": 2},
        {"stalled_s": 0.4},
        {"total_s": 5},  # most of their time they wait for something else
        {"cause": "congestion_window"},
        {"retransmissions": 1},
    ],
    ids=["seldom", "short", "elsewhere", "window", "lost"],
)
def test_messages_that_wait_seldom_or_for_something_else_do_not(what: dict[str, Any]) -> None:
    assert _found(**what) == []


def test_the_rule_is_asked_where_messages_wait_for_a_link() -> None:
    assert "link_full" in find_worth_asking(_tables())
    assert "link_full" not in find_worth_asking(_tables(cause="congestion_window"))
