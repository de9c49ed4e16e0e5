"""Records that wait for seconds: in a producer that gathers them, and at the broker for fetch.min.bytes.

The rows are like those of a producer with linger.ms=2500, and of a reader with fetch.min.bytes=100000.
"""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.findings.finding import Finding
from tests.findings.scripted import find, find_worth_asking

RULE = "delivery_delayed"
SECOND = 10**6
Row = dict[str, Any]


def _call(number: int, moment_s: float, took_s: float, api: str, **more: Any) -> Row:
    who = {"connection_id": 1, "client_id": "shop", "client_address": "10.0.0.1", "caller": "client"}
    times = {"request_time": int(moment_s * SECOND), "response_end_time": int((moment_s + took_s) * SECOND)}
    there = {"broker_address": "10.0.0.2", "broker_port": 9092, "status": "answered", "api_name": api}
    return {"call_id": number, **who, **times, **there, "latency_ns": int(took_s * 1e9), **more}


def _written(
    every_s: float = 3.0, span_s: float = 2.4, took_s: float = 0.01, count: int = 5, **more: Any
) -> dict[str, list[Row]]:
    """A producer that sends a batch every so often, whose records were made within so long."""
    tables: dict[str, list[Row]] = {"api_calls": [], "record_batches": []}
    for number in range(1, count + 1):
        moment = 100 + number * every_s
        tables["api_calls"].append(_call(number, moment, took_s, "Produce", **more))
        made = {
            "first_timestamp": int((moment - span_s) * SECOND),
            "max_timestamp": int(moment * SECOND),
            "timestamp_type": "create_time",
        }
        batch = {"call_id": number, "connection_id": 1, "api_name": "Produce", "client_id": "shop"}
        tables["record_batches"].append({**batch, "topic": "orders", "partition": 0, **made})
    return tables


def _read(
    took_s: float = 4.0, count: int = 5, least: int = 100_000, wait_ms: int = 4000, records: int = 8
) -> dict[str, list[Row]]:
    asked = {
        "min_bytes": least,
        "max_wait_ms": wait_ms,
        "record_count": records,
        "record_bytes": 90 * records,
    }
    return {
        "api_calls": [
            _call(number, 10 + 5 * number, took_s, "Fetch", **asked) for number in range(1, count + 1)
        ]
    }


def _found(rows: dict[str, list[Row]]) -> list[Finding]:
    return find(RULE, rows)


def test_records_that_gather_in_a_producer_for_seconds_are_noted() -> None:
    (found,) = _found(_written())
    assert (found.subject, found.severity, found.blames, found.calls) == ("shop", "info", "client", 4)
    assert found.value == pytest.approx(2.4)
    assert "4 of 5 batches" in found.text and "linger.ms" in found.advice


def test_records_that_wait_at_the_broker_for_more_bytes_are_noted() -> None:
    (found,) = _found(_read())
    assert (found.subject, found.severity, found.blames, found.calls) == ("shop", "info", "client", 5)
    assert found.value == pytest.approx(4)
    assert "720 bytes or fewer of fetch.min.bytes=100000" in found.text


@pytest.mark.parametrize(
    "rows",
    [
        _written(every_s=0.4, span_s=0.3),  # sooner
        _written(every_s=0.1),  # records made long before: the application set their timestamps
        _written(took_s=1.5),  # requests are slow: records wait for these
        _written(throttle_time_ms=900),
        _written(count=3),  # the first batch has none before it
        _read(took_s=0.4, wait_ms=500),  # sooner
        _read(took_s=1.2),  # the bytes were there
        _read(least=1),
        _read(count=2),
        _read(records=0),
    ],
    ids=["sooner", "timestamps", "slow", "throttled", "few", "short", "enough", "any", "twice", "empty"],
)
def test_records_that_come_soon_or_wait_for_something_else_are_left_in_peace(
    rows: dict[str, list[Row]],
) -> None:
    assert _found(rows) == []


def test_the_rule_is_asked_only_where_records_may_wait() -> None:
    for rows in (_written(every_s=0.4, span_s=0.3), _read(least=1), _read(wait_ms=500), _read(records=0)):
        assert RULE not in find_worth_asking(rows)
    assert RULE in find_worth_asking(_written()) & find_worth_asking(_read())


def test_timestamps_far_apart_raise_nothing() -> None:
    """Messages may have any timestamps."""
    rows = _written()
    for number, row in enumerate(rows["record_batches"]):
        row["first_timestamp"] = (-1) ** number * 250_000 * 366 * 86_400 * SECOND
        row["max_timestamp"] = -row["first_timestamp"]
    assert _found(rows) == []
