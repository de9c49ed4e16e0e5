"""Whether retention reaches a group before the group has caught up: speeds of both, by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwsniff.findings.finding import Finding
from tests.findings.conftest import FindingsOf
from tests.findings.scripted import find
from tests.house.tree import ROOT

SECOND = 1_000_000
INCIDENTS = ROOT / "captures" / "incidents"


def _found(
    *,
    begins: int,
    read: int,
    written: int,
    deleted: int,
    lag: int = 500,
    start: Callable[[int], int | None] | None = None,
) -> list[Finding]:
    """A commit each second for 12 s. The log starts `begins` offsets before the group, and moves by `deleted`
    each second; `start` says otherwise."""
    commits: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    moved = start or (lambda second: 5000 + deleted * second)
    for second in range(13):
        at = {"call_id": second, "topic": "orders", "partition": 0, "time": second * SECOND}
        position, end = 5000 + begins + read * second, 5000 + begins + lag + written * second
        offsets = {"committed_offset": position, "high_watermark": end, "lag": end - position}
        commits.append({**at, **offsets, "group_id": "billing"})
        parts.append(
            {
                **at,
                "call_id": 100 + second,
                "api_name": "Produce",
                "error_code": 0,
                "log_start_offset": moved(second),
            }
        )
    calls = [
        {**each, "connection_id": 1, "client_id": "b-1", "client_address": "10.0.0.7", "caller": "client",
         "broker_address": "10.0.0.1", "broker_port": 9092, "api_name": "OffsetCommit", "status": "answered"}
        for each in commits
    ]  # fmt: skip
    connection = {"connection_id": 1, "client_address": "10.0.0.7", "protocol": "kafka", "first_time": 0}
    tables = {"commits": commits, "partitions": parts, "api_calls": calls, "connections": [connection]}
    return find("retention_overtakes", tables)


def test_retention_that_moves_faster_than_a_group_reaches_it() -> None:
    """At 12 s 1000 - 12 * 30 = 640 offsets are between them, which become 30 fewer each second: 21.3 s."""
    (found,) = _found(begins=1000, read=10, written=40, deleted=40)
    assert found.subject == "billing"
    assert found.value == pytest.approx(640 / 30)
    assert found.expected is None
    assert "640 offsets are between" in found.text
    assert found.text.endswith("At these rates it never catches up.")


def test_a_group_that_catches_up_before_is_safe() -> None:
    """The lag is 600 - 12 * 20 = 360 and takes 18 s at 20 per second; the edge needs 640 / 30 = 21 s."""
    assert _found(begins=1000, read=30, written=10, deleted=60, lag=600) == []
    (found,) = _found(begins=1000, read=30, written=10, deleted=60, lag=800)
    assert found.value == pytest.approx(640 / 30)
    assert found.expected == pytest.approx((800 - 12 * 20) / 20)
    assert found.text.endswith("it needs 28 s to catch up.")


def test_a_group_that_is_faster_than_retention_is_safe() -> None:
    assert _found(begins=1000, read=40, written=40, deleted=30) == []
    assert _found(begins=1000, read=40, written=40, deleted=40) == []


def test_a_log_start_that_stands_still_or_is_unknown_reaches_nobody() -> None:
    assert _found(begins=1000, read=10, written=40, deleted=0) == []
    assert _found(begins=1000, read=10, written=40, deleted=0, start=lambda _: None) == []
    # deleted once, by hand
    assert _found(begins=1000, read=10, written=40, deleted=0, start=lambda at: 5000 + 300 * (at > 3)) == []


def test_a_group_that_deletes_what_it_has_read_is_safe() -> None:
    """As Kafka Streams does: the log start follows the commits."""
    assert _found(begins=0, read=10, written=40, deleted=0, start=lambda at: 5000 + 10 * max(at - 1, 0)) == []


def test_the_forecast_of_the_recording_is_that_of_its_offsets(findings_of: FindingsOf) -> None:
    """The last commit is 2783 at 66.255 s, the first 2436 at 55.455 s; Produce responses show the log start
    at 250 from 54.711 s on, and at 950 at the end. tshark has the same commits."""
    rows = findings_of(INCIDENTS / "retention_overtakes" / "broker.pcap")
    (row,) = (row for row in rows if row["finding"] == "retention_overtakes")
    edge, read = (950 - 250) / (66.255 - 54.711), (2783 - 2436) / (66.255 - 55.455)
    assert row["value"] == pytest.approx((2783 - 950) / (edge - read), rel=0.001)
    assert row["confidence"] == "likely"


def test_nothing_is_said_of_a_group_that_is_late_and_quick(findings_of: FindingsOf) -> None:
    rows = findings_of(INCIDENTS / "healthy_late_group" / "broker.pcap")
    assert "retention_overtakes" not in [row["finding"] for row in rows]
