"""Connections that are given up: too many, or silent for too long; the others are unharmed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.compare import analyzed_packets
from tests.traffic import groups
from tests.traffic.tcp import MILLISECOND, Endpoint, Scene

SECOND = 1_000 * MILLISECOND


def three_connections(apart: int) -> Scene:
    """Each asks once when it is opened; the first one asks again, last of all."""
    scene = Scene()
    scripts = [
        scene.connection(Endpoint(f"10.9.0.{n}", 50_000 + n), Endpoint("10.9.1.1", 9092)) for n in range(3)
    ]
    for number, script in enumerate(scripts):
        at = number * apart
        script.open(at)
        script.call(groups.heartbeat(3, 1, "g"), at=at + MILLISECOND, answer_at=at + 2 * MILLISECOND)
    at = 3 * apart
    scripts[0].call(groups.heartbeat(3, 2, "g"), at=at, answer_at=at + MILLISECOND)
    return scene


def test_connection_that_was_silent_too_long_is_given_up(tmp_path: Path) -> None:
    tables = analyzed_packets(tmp_path, three_connections(10 * SECOND).packets(), limits={"idle_seconds": 15})
    evicted = [row["client_port"] for row in tables["connections"] if row["ending"] == "evicted"]
    assert evicted == [50_000, 50_001]
    names = [row["name"] for row in tables["anomalies"]]
    assert names.count("connection_evicted") == 2
    answered = sorted((r["client_port"], r["correlation_id"]) for r in tables["api_calls"])
    assert answered == [(50_000, 1), (50_000, 2), (50_001, 1), (50_002, 1)]
    assert {r["status"] for r in tables["api_calls"]} == {"answered"}


def test_connection_that_goes_on_after_a_long_silence_begins_anew(tmp_path: Path) -> None:
    """With no other connection whose packets could tell the time."""
    scene = Scene()
    script = scene.connection(Endpoint("10.9.0.1", 50_000), Endpoint("10.9.1.1", 9092))
    script.open(0)
    script.call(groups.heartbeat(3, 1, "g"), at=SECOND, answer_at=2 * SECOND)
    script.call(groups.heartbeat(3, 2, "g"), at=20 * SECOND, answer_at=21 * SECOND)
    script.call(groups.heartbeat(3, 3, "g"), at=22 * SECOND, answer_at=23 * SECOND)
    tables = analyzed_packets(tmp_path, scene.packets(), limits={"idle_seconds": 15})
    assert [(row["ending"], row["calls"]) for row in tables["connections"]] == [("evicted", 1), ("open", 2)]
    assert [row["name"] for row in tables["anomalies"]] == ["connection_evicted"]
    assert [(row["correlation_id"], row["status"]) for row in tables["api_calls"]] == [
        (number, "answered") for number in (1, 2, 3)
    ]


def test_nothing_is_given_up_within_the_time(tmp_path: Path) -> None:
    tables = analyzed_packets(tmp_path, three_connections(10 * SECOND).packets(), limits={"idle_seconds": 31})
    assert {row["ending"] for row in tables["connections"]} == {"open"}
    assert tables["anomalies"] == []


def test_too_many_connections_cost_the_most_silent_one(tmp_path: Path) -> None:
    tables = analyzed_packets(tmp_path, three_connections(SECOND).packets(), limits={"connections": 2})
    evicted = [row["client_port"] for row in tables["connections"] if row["ending"] == "evicted"]
    assert evicted == [50_000, 50_001]
    assert [row["name"] for row in tables["anomalies"]].count("connection_evicted") == 2
    assert len(tables["api_calls"]) == 4


def test_who_spoke_last_is_not_the_most_silent_one(tmp_path: Path) -> None:
    """Two are known at a time; the first goes on before the third comes."""
    scene = three_connections(10 * SECOND)
    later = scene.scripts[2]
    scene.scripts[0].call(groups.heartbeat(3, 3, "g"), at=31 * SECOND, answer_at=32 * SECOND)
    scene.scripts[2] = scene.connection(Endpoint("10.9.0.2", 50_002), later.broker)
    del scene.scripts[3:]
    scene.scripts[2].open(40 * SECOND)
    tables = analyzed_packets(tmp_path, scene.packets(), limits={"connections": 2})
    ends = {row["client_port"]: row["ending"] for row in tables["connections"]}
    assert ends == {50_000: "open", 50_001: "evicted", 50_002: "open"}


def test_connections_that_were_given_up_leave_room_for_others(tmp_path: Path) -> None:
    scene = Scene()
    for number in range(4):
        script = scene.connection(Endpoint("10.9.0.7", 50_000 + number), Endpoint("10.9.1.1", 9092))
        at = (number // 2) * 100 * SECOND + number * MILLISECOND
        script.open(at)
        script.call(groups.heartbeat(3, 1, "g"), at=at + SECOND, answer_at=at + 2 * SECOND)
    limits = {"connections": 2, "idle_seconds": 15}
    tables = analyzed_packets(tmp_path, scene.packets(), limits=limits)
    assert [row["ending"] for row in tables["connections"]] == ["evicted", "evicted", "open", "open"]


def closed(scene: Scene, port: int, at: int, *, late: int = 0) -> None:
    """Asks once and closes; its client sends more so much later."""
    script = scene.connection(Endpoint("10.9.0.1", port), Endpoint("10.9.1.1", 9092))
    script.open(at)
    script.call(groups.heartbeat(3, 1, "g"), at=at + MILLISECOND, answer_at=at + 2 * MILLISECOND)
    script.close(at + SECOND)
    if late:
        script.write(b"late", at + SECOND + late, from_client=True)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(("late", "connections"), [(239, 1), (241, 2), (3_600, 2)])
def test_what_comes_long_after_the_end_is_another_connection(
    tmp_path: Path, late: int, connections: int, alone: bool
) -> None:
    """Others, whose packets tell the time, make no difference."""
    scene = Scene()
    closed(scene, 50_000, 0, late=late * SECOND)
    if not alone:
        for number in range(1, 100):
            closed(scene, 50_000 + number, number * 40 * SECOND)
    tables = analyzed_packets(tmp_path, scene.packets())
    rows = [row for row in tables["connections"] if row["client_port"] == 50_000]
    assert [row["ending"] for row in rows] == ["fin", "open"][:connections]
    anomalies = {
        row["name"] for row in tables["anomalies"] if row["connection_id"] == rows[0]["connection_id"]
    }
    assert ("data_after_end" in anomalies) == (connections == 1)


def test_connections_that_have_ended_go_before_those_that_have_not(tmp_path: Path) -> None:
    scene = Scene()
    silent = scene.connection(Endpoint("10.9.0.2", 40_000), Endpoint("10.9.1.1", 9092))
    silent.open(0)
    silent.call(groups.heartbeat(3, 1, "g"), at=MILLISECOND, answer_at=100 * SECOND)
    for number in range(20):
        closed(scene, 50_000 + number, (2 + 2 * number) * SECOND)
    tables = analyzed_packets(tmp_path, scene.packets(), limits={"connections": 2})
    assert {row["ending"] for row in tables["connections"]} == {"fin", "open"}
    assert tables["anomalies"] == []
    assert [row["status"] for row in tables["api_calls"]] == ["answered"] * 21
