"""Calls that a full link may have held up: none that the rule counts is left out."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pytest

from kwsniff.findings.prefilter import queues
from kwsniff.findings.prefilter.queues import Queues

MS = 1_000_000
Connection = tuple[str, int, int | None, str]
Call = tuple[str, int, int | None]


def _coded(values: Sequence[str]) -> pa.Array:
    return pa.array(values, pa.string()).dictionary_encode()


def _taken(connections: Sequence[Connection], calls: Sequence[Call]) -> Queues:
    """Connections: broker, port, round trip in ms, capture point; calls: broker, port, network time in ms."""
    found = Queues()
    if calls:
        hosts, ports, took = zip(*calls, strict=True)
        batch = {
            "broker_address": _coded(hosts),
            "broker_port": pa.array(ports, pa.int32()),
            "network_ns": pa.array([each and each * MS for each in took], pa.int64()),
        }
        found.add_calls(pa.RecordBatch.from_pydict(batch))
    if connections:
        hosts, ports, trips, points = zip(*connections, strict=True)
        batch = {
            "broker_address": _coded(hosts),
            "broker_port": pa.array(ports, pa.int32()),
            "broker_round_trip_ns": pa.array([each and each * MS for each in trips], pa.int64()),
            "capture_point": _coded(points),
        }
        found.add_connections(pa.RecordBatch.from_pydict(batch))
    return found


def test_calls_are_compared_with_the_shortest_trip_of_all_connections() -> None:
    """One opened while the queue was full: its own handshake took as long as its calls."""
    connections: list[Connection] = [("a", 9092, 120, "client"), ("a", 9092, 1, "client")]
    assert _taken(connections, [("a", 9092, 130)] * 12).greatest() == 12
    assert _taken(connections[:1], [("a", 9092, 130)] * 12).greatest() == 0


@pytest.mark.parametrize(
    ("trip", "took", "counts"),
    [(1, 49, 0), (1, 51, 1), (1, 60_000, 1), (80, 150, 0), (80, 160, 1), (None, 99, 0)],
)
def test_a_call_counts_from_50_ms_and_twice_the_trip_on(trip: int | None, took: int, counts: int) -> None:
    assert _taken([("a", 9092, trip, "client")], [("a", 9092, took)]).greatest() == counts


def test_each_broker_counts_for_itself() -> None:
    connections: list[Connection] = [
        ("a", 9092, 1, "client"),
        ("a", 9093, 100, "client"),
        ("b", 9092, 1, "client"),
    ]
    calls: list[Call] = [
        ("a", 9092, 90),
        ("a", 9093, 90),
        ("b", 9092, 90),
        ("b", 9092, 90),
        ("b", 9092, None),
    ]
    assert _taken(connections, calls).greatest() == 2


@pytest.mark.parametrize("point", ["broker", "same_machine"])
def test_a_capture_at_the_broker_shows_no_way(point: str) -> None:
    assert _taken([("a", 9092, 0, point)], [("a", 9092, 90)]).greatest() == 0


def test_merged_parts_are_the_whole() -> None:
    near: list[Connection] = [("a", 9092, 1, "client")]
    far: list[Connection] = [("a", 9092, 100, "client")]
    calls: list[Call] = [("a", 9092, 110)] * 7
    one, other = _taken(far, calls), _taken(near, calls)
    one.merge(json.loads(json.dumps(other.state())))
    assert one.greatest() == _taken([*near, *far], calls * 2).greatest() == 14


def test_too_many_brokers_leave_it_to_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "_MOST_BROKERS", 2)
    connections: list[Connection] = [(name, 9092, 1, "client") for name in "abc"]
    assert _taken(connections[:2], []).greatest() == 0
    assert _taken(connections, []).greatest() == float("inf")
