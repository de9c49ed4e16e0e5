"""Captures of one folder may be hours apart: the time between them was not recorded, and proves nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from tests.findings.scripted import find
from tests.short_run import some

SECOND = 10**6
"""Times are microseconds; how long something took is in nanoseconds."""
AT = {"broker_address": "10.0.0.1", "broker_port": 9092, "client_id": "shop", "client_address": "10.0.0.2"}


def _capture(first: float, last: float) -> dict[str, Any]:
    return {"first_time": int(first * SECOND), "last_time": int(last * SECOND)}


def _call(
    number: int, since: float, until: float | None, connection: int, api: str = "Fetch"
) -> dict[str, Any]:
    row = {
        "call_id": number,
        "connection_id": connection,
        "api_name": api,
        "request_time": int(since * SECOND),
    }
    if until is None:
        return {**AT, **row, "caller": "client", "status": "unanswered", "reason": "open_at_end"}
    end = int(until * SECOND)
    took = (end - int(since * SECOND)) * 1000
    return {
        **AT, **row, "caller": "client", "status": "answered", "response_time": end, "response_end_time": end,
        "latency_ns": took, "total_ns": took, "broker_ns": took, "queue_wait_ns": 0, "deliberate_wait_ns": 0,
        "wait": "none", "queued_behind_wait": "none", "retransmissions": 0,
    }  # fmt: skip


def _stalls(captures: Sequence[dict[str, Any]], open_since: float) -> list[tuple[float | None, int]]:
    """Answers every half second of two captures of 10 s; two calls are still open when the first one ends."""
    calls = [
        _call(
            number,
            capture["first_time"] / SECOND + number * 0.5,
            capture["first_time"] / SECOND + number * 0.5 + 0.01,
            1,
        )
        for capture in captures
        for number in range(19)
        if capture is not captures[0] or 100 + number * 0.5 < open_since
    ]
    for number, call in enumerate(calls):
        call["call_id"] = number
    calls += [_call(900, open_since, None, 2, "Metadata"), _call(901, open_since, None, 3, "Metadata")]
    answered = [call for call in calls if call["status"] == "answered"]
    found = find("broker_stalled", {"captures": captures, "api_calls": calls, "latencies": answered})
    return [(each.value and round(each.value, 2), each.calls) for each in found]


def test_nobody_waits_for_a_broker_between_two_captures() -> None:
    assert _stalls([_capture(100, 110), _capture(5000, 5010)], 109.2) == []


def test_a_broker_that_stands_still_when_a_capture_ends_is_found_whatever_came_later() -> None:
    # The last answer comes at 105.01, where the capture ends at 110.
    alone = _stalls([_capture(100, 110)], 105.1)
    assert alone == [(4.99, 2)]
    assert _stalls([_capture(100, 110), _capture(5000, 5010)], 105.1) == alone


def test_whoever_is_answered_meanwhile_is_another_connection(request: pytest.FixtureRequest) -> None:
    """Every Produce that waits 1 s or longer, and whether others were answered: by a look at all pairs."""
    for seed in some(request.config, range(40), 10):
        rng = random.Random(seed)
        calls, at = [], 100.0
        for number in range(24):
            at += rng.choice((0.0, 0.05, 0.25))
            slow = rng.random() < 0.3
            row = _call(
                number,
                at,
                at + (rng.choice((0.5, 0.75, 1.25)) if slow else 0.05),
                rng.randint(1, 3),
                "Produce",
            )
            calls.append({**row, "acks": -1 if slow else 1, "topics": [f"orders {number}"]})
        held = [each for each in calls if each["acks"] == -1]
        alone = [
            each["call_id"]
            for each in held
            if any(
                each["connection_id"] != other["connection_id"]
                and each["request_time"] + SECOND // 10
                <= other["response_end_time"]
                <= each["response_end_time"] - SECOND // 10
                for other in calls
            )
        ]
        found = find("replication_slow", {"api_calls": calls, "latencies": calls})
        shown = sorted(call for each in found if "answered others" in each.text for call in each.call_ids)
        assert shown == (alone if len(alone) >= 2 else []), (shown, alone)


@pytest.mark.parametrize(
    ("closed_at", "on", "number"), [(None, 5, 1), (104.2, 6, 0), (104.2, 5, 1), (108.0, 6, 1), (90.0, 6, 1)]
)
def test_a_follower_that_fetches_nothing_is_slow_unless_it_connects_again(
    closed_at: float | None, on: int, number: int
) -> None:
    """A fetch each second until 104 and from 112 on: its connection was closed as the gap began, or later."""
    seconds = [*range(100, 105), *range(112, 116)]
    fetches = [_call(n, at, at + 0.1, 5 if at < 110 else on) for n, at in enumerate(seconds)]
    replica = {"caller": "replica", "client_address": "10.0.0.3"}
    rows = [
        {
            **AT,
            "connection_id": each,
            "broker_bytes": 90,
            "first_time": 99 * SECOND,
            "last_time": 115 * SECOND,
        }
        for each in (5, 6)
    ]
    rows[0]["close_time"] = None if closed_at is None else int(closed_at * SECOND)
    found = find("replication_slow", {"api_calls": [f | replica for f in fetches], "connections": rows})
    assert [each.subject for each in found] == ["10.0.0.3"] * number
    assert [each.value for each in found] == pytest.approx([7.9] * number)


@pytest.mark.parametrize(
    ("usual", "last", "blames"),
    [
        (0.002, 5.9, "network"),  # written 0.1 s after the answer before, as always
        (0.002, 0.004, "client"),  # written when the process ran again
        (0.002, 3.0, "client"),  # an application that sets timestamps, or a clock that was set
        (0.09, 5.98, "client"),  # linger.ms: a record may have waited in a process that stopped
    ],
)
def test_a_client_that_wrote_a_record_as_its_silence_began_was_not_heard(
    usual: float, last: float, blames: str
) -> None:
    """A Produce every 0.1 s, and one pause of 6 s; how old the record of each is when it comes."""
    times = [100 + n / 10 for n in range(60)] + [111.9 + n / 10 for n in range(20)]
    calls = [_call(n, at, at + 0.001, 5, "Produce") for n, at in enumerate(times)]
    ages = [last if n == 60 else usual for n in range(80)]
    batches = [
        {
            "call_id": n, "connection_id": 5, "api_name": "Produce", "client_id": "shop", "topic": "orders",
            "partition": 0, "timestamp_type": "create_time", "max_timestamp": int((at - old) * SECOND),
        }
        for n, (at, old) in enumerate(zip(times, ages, strict=True))
    ]  # fmt: skip
    connection = {**AT, "connection_id": 5, "calls": 80, "ending": "open"}
    connection |= {"first_time": 99 * SECOND, "last_time": 120 * SECOND}
    (found,) = find(
        "client_silent", {"api_calls": calls, "record_batches": batches, "connections": [connection]}
    )
    assert (found.subject, found.blames) == ("shop", blames)
    assert found.value == pytest.approx(6, abs=0.01)
    assert ("the client ran" in found.text) == (blames == "network")


@pytest.mark.parametrize(("gone_at", "took", "number"), [(104.0, 1.2, 0), (160.0, 1.2, 1), (104.0, 3.1, 1)])
def test_what_waits_while_a_follower_shuts_down_is_its_restart(
    gone_at: float, took: float, number: int
) -> None:
    """Writes wait until the controller takes the other broker, which ends all connections, out of the set."""
    written = {"acks": -1, "topics": ["orders"]}
    calls = [{**_call(n, 100 + n, 100 + n + took, 1, "Produce"), **written} for n in (1, 2)]
    calls += [_call(n, 90 + n / 4, 90 + n / 4 + 0.001, 2, "Metadata") for n in range(10, 90)]
    other = {**AT, "broker_address": "10.0.0.9", "connection_id": 9, "broker_bytes": 90}
    other |= {"first_time": 50 * SECOND, "last_time": int(gone_at * SECOND), "closed_by": "broker"}
    tables = {
        "api_calls": calls,
        "latencies": calls,
        "connections": [{**other, "close_time": other["last_time"]}],
    }
    found = find("replication_slow", tables)
    assert len(found) == number
    ended = ["10.0.0.9:9092 ended its connections then." in each.text for each in found]
    assert ended == [gone_at == 104.0] * number
