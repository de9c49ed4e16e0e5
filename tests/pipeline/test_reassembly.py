"""TCP as it is: late, twice, overlapping, wrapped, begun again on the same ports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.compare import analyzed_packets, assert_calls, assert_scene, content, in_order
from tests.traffic import damage, groups, messages, scenes
from tests.traffic.records import batch
from tests.traffic.tcp import MILLISECOND, Endpoint, Packet, Scene

TRANSPORT = ("client_out_of_order", "broker_out_of_order", "client_retransmitted_bytes",
             "broker_retransmitted_bytes", "client_packets", "broker_packets")  # fmt: skip


def has_payload(packet: Packet) -> bool:
    return bool(packet.payload)


def busy_scene(mss: int = 100, client_isn: int = 1_000, broker_isn: int = 4_000_000_000) -> Scene:
    calls = [*scenes.vocabulary()[4:20], messages.fetch(11, 99, {"big": {0: batch([b"z" * 1_000] * 5)}})]
    return scenes.one_by_one(calls, mss=mss, client_isn=client_isn, broker_isn=broker_isn)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("distance", [2, 5, 8])
def test_packets_out_of_order(distance: int, seed: int, tmp_path: Path) -> None:
    """Also responses that are recorded before their requests; the first call is in order."""
    scene = busy_scene()
    packets = scene.packets()
    packets = [*packets[:8], *damage.reorder(packets[8:], distance, seed)]
    tables = analyzed_packets(tmp_path, packets)
    assert_calls(tables, scene.calls, packets, without=["request_time", "latency_ns"])
    assert not {row["name"] for row in tables["anomalies"]} & {
        "frame_torn",
        "framing_lost",
        "undecodable_response",
    }


def test_every_data_packet_sent_twice(tmp_path: Path) -> None:
    scene = busy_scene()
    # A retransmission takes its time: what comes again at once is the same packet, captured twice.
    packets = damage.duplicate(damage.slowed(scene.packets(), 5000), has_payload, later=2)
    tables = assert_scene(tmp_path, scene, packets)
    row = tables["connections"][0]
    for side, name in ((True, "client"), (False, "broker")):
        once = sum(len(packet.payload) for packet in scene.packets() if packet.from_client == side)
        assert row[f"{name}_bytes"] == once
        assert row[f"{name}_retransmitted_bytes"] == once


@pytest.mark.parametrize("extra", [1, 30, 100, 250])
def test_segments_that_overlap(extra: int, tmp_path: Path) -> None:
    scene = busy_scene()
    assert_scene(tmp_path, scene, damage.overlap(scene.packets(), extra))


def test_first_copy_of_a_byte_counts(tmp_path: Path) -> None:
    scene = busy_scene()
    packets = scene.packets()
    twice = damage.duplicate(packets, has_payload, later=1)
    seen: set[tuple[bool, int]] = set()
    changed = []
    for index, packet in enumerate(twice):
        key = (packet.from_client, packet.offset)
        if not packet.payload:
            changed.append(packet)
            continue
        if key in seen:
            changed.append(damage.corrupt(twice, index, len(packet.payload) // 2)[index])
        else:
            changed.append(packet)
        seen.add(key)
    tables = analyzed_packets(tmp_path, changed)
    assert_calls(tables, scene.calls, changed)


@pytest.mark.parametrize("before", [0, 1, 5, 99, 100, 101, 700])
def test_sequence_numbers_wrap(before: int, tmp_path: Path) -> None:
    isn = (2**32 - 1 - before) % 2**32
    plain = busy_scene()
    scene = busy_scene(client_isn=isn, broker_isn=(isn - 17) % 2**32)
    assert any(packet.seq < 1_000 for packet in scene.packets())
    tables = assert_scene(tmp_path, scene)
    made, expected = content(tables), content(analyzed_packets(tmp_path, plain.packets()))
    for row in (*made["connections"], *expected["connections"]):
        assert {row.pop("client_isn"), row.pop("broker_isn")} != {None}
    assert made == expected


def test_wrapping_out_of_order(tmp_path: Path) -> None:
    scene = busy_scene(client_isn=2**32 - 400, broker_isn=2**32 - 900)
    packets = damage.reorder(scene.packets(), 6, seed=4)
    tables = analyzed_packets(tmp_path, packets)
    assert_calls(tables, scene.calls, packets, without=["request_time", "latency_ns"])


def test_ipv6_out_of_order_and_twice(tmp_path: Path) -> None:
    scene = scenes.two_clients("fd00::")
    packets = damage.reorder(damage.duplicate(scene.packets(), has_payload), 3, seed=9)
    tables = analyzed_packets(tmp_path, packets)
    assert_calls(tables, scene.calls, packets, without=["request_time", "latency_ns"])


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "left_open"])
def test_ports_used_again_are_another_connection(closed: bool, tmp_path: Path) -> None:
    client, broker = Endpoint("10.1.0.7", 50_000), Endpoint("10.1.0.92", 9092)
    scene = Scene()
    for number in range(3):
        script = scene.connection(
            client, broker, client_isn=1_000 + number * 70_000, broker_isn=9_000 * number
        )
        start = number * 100 * MILLISECOND
        script.open(at=start)
        for step in range(3):
            exchange = groups.heartbeat(3, 10 * number + step, f"group-{number}")
            at = start + (10 + step * 10) * MILLISECOND
            script.call(exchange, at=at, answer_at=at + MILLISECOND)
        if closed:
            script.close(at=start + 90 * MILLISECOND)
    tables = assert_scene(tmp_path, scene)
    assert len(tables["connections"]) == 3
    assert [row["ending"] for row in tables["connections"]] == (
        ["fin"] * 3 if closed else ["reused", "reused", "open"]
    )
    ids = [row["connection_id"] for row in in_order(tables["api_calls"])]
    assert [ids.count(number) for number in sorted(set(ids))] == [3, 3, 3]


def test_connection_that_begins_with_data(tmp_path: Path) -> None:
    scene = scenes.one_by_one(scenes.vocabulary()[4:12], handshake=False)
    tables = assert_scene(tmp_path, scene)
    assert tables["connections"][0]["handshake"] is False
    assert tables["connections"][0]["role_source"] == "content"


def test_keep_alives_and_bare_acks_say_nothing(tmp_path: Path) -> None:
    """A keep-alive repeats the last byte's sequence number, with one byte or none."""
    from dataclasses import replace

    scene = busy_scene()
    packets = []
    for packet in scene.packets():
        packets.append(packet)
        if packet.payload:
            back = (packet.seq + len(packet.payload) - 1) % 2**32
            packets.append(replace(packet, seq=back, payload=b"", offset=0))
            packets.append(replace(packet, seq=back, payload=b"\0", offset=packet.end - 1))
    tables = analyzed_packets(tmp_path, packets)
    assert_calls(tables, scene.calls, packets)
