"""Long polls that a client ends, members that fetch no more, brokers that stand still for a moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kwsniff.findings.finding import Finding
from tests.findings.opened import SECOND, call, judge, kafka
from tests.findings.scripted import find
from tests.findings.test_stretches import _call, _capture

AT = {"broker_address": "10.0.0.1", "broker_port": 9092, "client_id": "shop", "client_address": "10.0.0.7"}


def _cut(lasted: Sequence[float], *, wait_ms: int = 8000, stays: bool = True) -> list[Finding]:
    """One long poll after the other; the client closes its connection after so many seconds."""
    connections, calls, at = [], [], 2.0
    for number, seconds in enumerate(lasted, 1):
        end = {"ending": "fin", "closed_by": "client", "close_time": int((at + seconds) * SECOND)}
        connections.append(kafka(number, at - 0.1, at + seconds, **end))
        calls.append(call(number, at, None, max_wait_ms=wait_ms, reason="connection_closed"))
        at += seconds + 0.2
    if stays:
        connections.append(kafka(90, 1, at + 5))
    return judge("timeout_too_short", connections, api_calls=calls)


def test_long_polls_that_end_before_their_time_are_given_up() -> None:
    (finding,) = _cut([3, 3.02, 3.1])
    assert (finding.calls, finding.subject) == (3, "shop")
    assert "3020 ms after each, although it lets the broker wait 8000 ms" in finding.text


@pytest.mark.parametrize(
    "more",
    [
        {"lasted": [3, 3]},
        {"lasted": [3, 3, 3], "stays": False},
        {"lasted": [3, 3, 3], "wait_ms": 3000},
        {"lasted": [1, 3, 7]},
    ],
    ids=["twice", "the client ends", "their time is over", "at random"],
)
def test_clients_that_leave_may_end_long_polls(more: dict[str, Any]) -> None:
    assert _cut(**more) == []


def _member(
    *, fetched_until: float = 5, beats: int = 6, records: int = 10, other: float | None = None, **last: Any
) -> list[Finding]:
    """A member that beats every 3 s; producers write from second 6 on; another reader fetches at `other`."""

    def made(number: int, at: float, api: str, **more: Any) -> dict[str, Any]:
        return call(number, at, at + 0.01, connection_id=1, api_name=api, error_code=0, **more)

    fetches = [made(n, n * 0.5, "Fetch") for n in range(1, int(fetched_until * 2))]
    heartbeats = [made(100 + n, fetched_until + n * 3, "Heartbeat", group_id="audit") for n in range(beats)]
    writes = [made(200 + n, 6 + n * 0.1, "Produce", client_id="till", record_count=1) for n in range(records)]
    others = [] if other is None else [made(300, other, "Fetch", client_id="b")]
    if last:
        fetches.append({**made(400, fetched_until, "Fetch"), **last})
    calls = [*fetches, *heartbeats, *writes, *others]
    parts = [
        {**row, "topic": "orders", "partition": 0, "time": row["request_time"]}
        for row in [*fetches, *writes, *others]
    ]
    return judge("consumer_stuck", [kafka(1, 0, 50)], api_calls=calls, partitions=parts)


def test_a_member_that_beats_but_fetches_no_more_is_stuck() -> None:
    (finding,) = _member()
    assert (finding.subject, finding.blames, finding.severity) == ("orders-0", "client", "warning")
    # The last fetch is at 4.5 s, the last heartbeat at 20 s.
    assert finding.value == pytest.approx(15.5)
    assert "no Fetch for 15.5 s, while producers wrote 10 records" in finding.text


@pytest.mark.parametrize(
    "more",
    [
        {"records": 9},
        {"beats": 3},
        {"other": 7.0},
        {"status": "unanswered", "reason": "open_at_end", "response_time": None, "response_end_time": None},
        {"api_name": "JoinGroup"},
    ],
    ids=["few records", "6.5 s", "another one reads", "a long poll waits", "it joins again"],
)
def test_a_member_may_have_nothing_to_fetch(more: dict[str, Any]) -> None:
    assert _member(**more) == []


def _paused(took: Sequence[float], usual: float = 0.002, count: int = 90) -> list[Finding]:
    """`count` calls of one kind that take `usual` seconds, with these in between."""
    seconds = [usual] * count
    seconds[10 : 10 + len(took) * 7 : 7] = took
    calls = [_call(n, n * 1.5, n * 1.5 + each, 1, "Heartbeat") for n, each in enumerate(seconds)]
    connection = {
        **AT, "connection_id": 1, "protocol": "kafka", "capture_point": "broker", "first_time": 0,
        "last_time": 200 * SECOND,
    }  # fmt: skip
    tables = {
        "api_calls": calls,
        "latencies": calls,
        "connections": [connection],
        "captures": [_capture(0, 200)],
    }
    return find("broker_slow", tables)


def test_a_broker_that_stands_still_again_and_again_is_slow() -> None:
    (finding,) = _paused([0.9, 1.2, 0.95])
    assert (finding.calls, finding.call_ids) == (3, [17, 24, 10])
    assert "3 calls (Heartbeat) took up to 1200 ms, and most of their kind less than 10 ms" in finding.text


@pytest.mark.parametrize(
    ("took", "usual"),
    [([1.5, 1.6], 0.002), ([0.9, 0.9, 0.9], 0.002), ([0.19] * 12, 0.002), ([1.2] * 3, 0.011)],
    ids=["twice", "2.7 s together", "shorter pauses", "all take long"],
)
def test_a_pause_or_two_are_not(took: Sequence[float], usual: float) -> None:
    found = _paused(took, usual)
    assert [each for each in found if "pauses repeatedly" in each.text] == []
