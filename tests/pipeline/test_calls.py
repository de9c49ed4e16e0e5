"""Every message of the generator, call by call."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.compare import analyzed_packets, assert_scene, decoded, moment
from tests.traffic import groups, messages, scenes
from tests.traffic.records import batch
from tests.traffic.tcp import MILLISECOND, Endpoint, Scene


def test_every_message_gives_its_row(tmp_path: Path) -> None:
    scene = scenes.one_by_one(scenes.vocabulary())
    tables = assert_scene(tmp_path, scene)
    assert [row["name"] for row in tables["anomalies"]] == ["api_versions_fallback"]
    assert tables["captures"][0]["packets"] == len(scene.packets())


def test_latencies_are_the_answered_calls(tmp_path: Path) -> None:
    scene = scenes.two_clients()
    tables = assert_scene(tmp_path, scene)
    answered = [row for row in tables["api_calls"] if row["status"] == "answered"]
    assert len(answered) == 9
    assert {row["call_id"]: row["total_ns"] for row in tables["latencies"]} == {
        row["call_id"]: row["latency_ns"] for row in answered
    }


def test_connections_say_who_talked_how_long(tmp_path: Path) -> None:
    scene = scenes.two_clients()
    packets = scene.packets()
    tables = assert_scene(tmp_path, scene)
    rows = sorted(tables["connections"], key=lambda row: row["client_port"])
    assert [(row["protocol"], row["role_source"], row["handshake"], row["ending"]) for row in rows] == [
        ("kafka", "handshake", True, "fin"),
        ("kafka", "handshake", True, "reset"),
    ]
    assert [row["client_id"] for row in rows] == ["shop-1", "shop-2"]
    assert rows[0]["client_software_name"] == "traffic-lib"
    assert rows[0]["client_software_version"] == "1.2.3"
    assert rows[1]["client_software_name"] is None
    for number, row in enumerate(rows):
        mine = [(at, packet) for at, packet in enumerate(packets, start=1) if packet.connection == number]
        for side, name in ((True, "client"), (False, "broker")):
            sent = [packet for _, packet in mine if packet.from_client == side]
            assert row[f"{name}_packets"] == len(sent)
            assert row[f"{name}_bytes"] == sum(len(packet.payload) for packet in sent)
            assert row[f"{name}_missing_bytes"] == 0
            assert row[f"{name}_retransmitted_bytes"] == 0
        assert [row["first_frame"], row["last_frame"]] == [mine[0][0], mine[-1][0]]
        assert [row["first_time"], row["last_time"]] == [
            moment(mine[0][1].time_ns),
            moment(mine[-1][1].time_ns),
        ]
        assert row["calls"] == 5
        assert row["round_trip_ns"] == 201_000  # SYN to the client's ACK, as the script has it


def test_pipelined_frames_share_segments(tmp_path: Path) -> None:
    scene = scenes.pipelined(depth=5, calls=20)
    packets = scene.packets()
    assert len([packet for packet in packets if packet.payload]) < 30  # they do share
    assert_scene(tmp_path, scene)


@pytest.mark.parametrize("mss", [1, 3, 7, 60, 1448, 65_000])
def test_segment_size_changes_nothing_but_frames(mss: int, tmp_path: Path) -> None:
    assert_scene(tmp_path, scenes.pipelined(depth=4, calls=8, mss=mss))


def test_produce_without_acks_is_not_waited_for(tmp_path: Path) -> None:
    calls = [messages.produce(7, number, scenes.ORDERS, acks=number % 3 - 1) for number in range(12)]
    tables = assert_scene(tmp_path, scenes.one_by_one(calls))
    statuses = [row["status"] for row in tables["api_calls"]]
    assert statuses.count("no_response_expected") == 4
    assert statuses.count("answered") == 8


def test_equal_correlation_ids_are_paired_in_order(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script.open()
    for number in range(4):
        exchange = groups.heartbeat(3, 7, f"group-{number}", error=27 if number == 2 else 0)
        script.call(exchange, at=(number + 1) * MILLISECOND, answer_at=(number + 10) * MILLISECOND)
    tables = assert_scene(tmp_path, scene)
    assert [row["error_code"] for row in tables["api_calls"]] == [0, 0, 27, 0]


@pytest.mark.parametrize("first", [0, -1, 2**31 - 2, -(2**31)])
def test_correlation_ids_may_be_anything(first: int, tmp_path: Path) -> None:
    ids = [(first + step + 2**31) % 2**32 - 2**31 for step in range(5)]
    assert_scene(tmp_path, scenes.one_by_one([groups.heartbeat(4, number, "g") for number in ids]))


def test_topic_ids_get_names_from_answers_seen_later(tmp_path: Path) -> None:
    calls = [
        messages.produce(13, 1, scenes.ORDERS, errors={("orders", 1): 7}),
        messages.fetch(16, 2, {"orders": {0: batch([b"x"])}, "nameless": {0: None}}),
        messages.metadata(12, 3, ["orders"]),
        messages.produce(13, 4, scenes.ORDERS),
    ]
    scene = scenes.one_by_one(calls)
    tables = analyzed_packets(tmp_path, scene.packets())
    rows = {row["correlation_id"]: row for row in tables["api_calls"]}
    assert [rows[number]["topics"] for number in (1, 3, 4)] == [["orders"]] * 3
    assert "orders" in rows[2]["topics"]
    assert "nameless" not in rows[2]["topics"]  # its name is nowhere in the capture
    assert [(row["topic"], row["partition"]) for row in tables["error_codes"]] == [("orders", 1)]
    written = decoded(tmp_path / "capture.pcap", output=tmp_path / "tables")
    assert written == tables
    assert not list((tmp_path / "tables").glob(".*"))


def test_response_that_never_comes_is_unanswered(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script.open()
    script.call(groups.heartbeat(3, 1, "g"), at=MILLISECOND, answer_at=2 * MILLISECOND)
    script.call(groups.heartbeat(3, 2, "g").unanswered(), at=3 * MILLISECOND)
    script.close(at=50 * MILLISECOND)
    tables = assert_scene(tmp_path, scene)
    assert [(row["status"], row["reason"]) for row in tables["api_calls"]] == [
        ("answered", None),
        ("unanswered", "connection_closed"),
    ]


def test_reset_and_end_of_capture_are_different_reasons(tmp_path: Path) -> None:
    for end, reason in ((True, "connection_reset"), (False, "open_at_end")):
        scene = Scene()
        script = scene.connection()
        script.open()
        script.call(groups.heartbeat(3, 2, "g").unanswered(), at=3 * MILLISECOND)
        if end:
            script.reset(at=9 * MILLISECOND)
        tables = assert_scene(tmp_path, scene, without=["status"])
        assert [row["reason"] for row in tables["api_calls"]] == [reason]


@pytest.mark.parametrize("client", ["10.0.0.1", "10.0.9.1"])
@pytest.mark.parametrize("from_client", [True, False])
def test_where_nobody_tells_who_is_who_the_higher_port_is_called_client(
    client: str, from_client: bool, tmp_path: Path
) -> None:
    """docs/tables.md, role: no handshake, nothing that is Kafka; whoever is seen first."""
    scene = Scene()
    script = scene.connection(client=Endpoint(client, 50_001), broker=Endpoint("10.0.5.1", 9092))
    script.write(b"nothing that anybody knows", 0, from_client=from_client)
    script.write(b"nor this", 1 * MILLISECOND, from_client=not from_client)
    (row,) = analyzed_packets(tmp_path, scene.packets())["connections"]
    assert (row["role_source"], row["client_port"], row["broker_port"]) == ("unknown", 50_001, 9092)
    assert (row["client_bytes"], row["broker_bytes"]) == ((26, 8) if from_client else (8, 26))
