"""Captures with holes: what is whole is found, what is not is said to be missing, nothing is invented."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pipeline.compare import Tables, analyzed_packets, decoded, in_order, written
from tests.pipeline.running import rows_of_bytes
from tests.traffic import damage, files, groups, messages, scenes
from tests.traffic.records import batch
from tests.traffic.tcp import MILLISECOND, Packet, Scene
from tests.traffic.truth import TrueCall, frame_of, microseconds, truth


def long_scene(calls: int = 40, mss: int = 200) -> Scene:
    """Three connections, heartbeats and fetches of several segments."""
    scene = Scene()
    for number in range(3):
        script = scene.connection(mss=mss)
        script.open()
        for step in range(calls):
            client_id = f"client-{number}"
            if step % 3:
                records = {"orders": {0: batch([bytes([65 + step % 26]) * 300])}}
                exchange = messages.fetch(11, 100 * number + step, records, client_id=client_id)
            else:
                exchange = groups.heartbeat(3, 100 * number + step, "g", client_id=client_id)
            at = (step + 1) * 10 * MILLISECOND + number * 100_000
            script.call(exchange, at=at, answer_at=at + 2 * MILLISECOND)
        script.close(at=2_000 * MILLISECOND)
    return scene


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["client_port"], row["correlation_id"], row["api_key"], row["api_version"], row["client_id"]


def assert_nothing_invented(tables: Tables, scene: Scene, packets: Sequence[Packet]) -> Counter[str]:
    """Every row is a call of the script, at most once, and says of it only what the packets show."""
    true: dict[tuple[Any, ...], TrueCall] = {
        (row.call.client.port, row.call.exchange.correlation_id, row.call.exchange.api_key,
         row.call.exchange.version, row.call.exchange.client_id): row
        for row in truth(scene.calls, packets)
    }  # fmt: skip
    by_id = {(row[0], row[1]): value for row, value in true.items()}
    seen: set[tuple[object, ...]] = set()
    statuses: Counter[str] = Counter()
    for row in tables["api_calls"]:
        statuses[row["status"]] += 1
        if row["status"] == "response_only":
            assert (row["client_port"], row["correlation_id"]) in by_id
            assert row["api_key"] is None
            continue
        want = true[key(row)]
        assert key(row) not in seen
        seen.add(key(row))
        if row["status"] == "answered" and row["reason"] is None:
            assert want.request is not None
            assert want.response is not None
            assert row["response_bytes"] == want.response.size
            assert row["error_code"] == want.error_code
            assert [row["request_frame"], row["response_end_frame"]] == [
                want.request.first_frame, want.response.last_frame,
            ]  # fmt: skip
        elif row["status"] == "unanswered":
            # "The broker did not answer" may only be said where its answer is not in the packets.
            assert want.response is None or want.request is None
        if row["status"] not in ("answered", "no_response_expected"):
            assert row["reason"] is not None
        if row["latency_ns"] is not None:
            assert row["latency_ns"] == shown_latency(want, packets)
    return statuses


def shown_latency(row: TrueCall, packets: Sequence[Packet]) -> int | None:
    """From the first byte of the request to the last of the response, if both are in the capture."""
    call = row.call
    if call.response is None:
        return None
    first = frame_of(packets, call.connection, from_client=True, byte=call.request.start)
    last = frame_of(packets, call.connection, from_client=False, byte=call.response.end - 1)
    if first is None or last is None:
        return None
    return microseconds(packets[last].time_ns) - microseconds(packets[first].time_ns)


def whole_calls(scene: Scene, packets: Sequence[Packet]) -> int:
    return sum(row.request is not None and row.response is not None for row in truth(scene.calls, packets))


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("share", [0.005, 0.02, 0.1])
def test_lost_packets(share: float, seed: int, tmp_path: Path) -> None:
    scene = long_scene()
    packets = damage.drop_share(scene.packets(), share, seed)
    tables = analyzed_packets(tmp_path, packets)
    statuses = assert_nothing_invented(tables, scene, packets)
    whole = whole_calls(scene, packets)
    assert statuses["answered"] >= whole * (0.95 if share < 0.05 else 0.75)
    missing = sum(row["client_missing_bytes"] + row["broker_missing_bytes"] for row in tables["connections"])
    lost = sum(len(p.payload) for p in scene.packets()) - sum(len(p.payload) for p in packets)
    assert (missing > 0) == (lost > 0)


@pytest.mark.parametrize("seed", [108, 117, 137, 138])
def test_holes_in_both_directions_are_not_blamed_on_the_broker(seed: int, tmp_path: Path) -> None:
    scene = long_scene(mss=60)
    packets = damage.drop_share(scene.packets(), 0.03, seed)
    assert_nothing_invented(analyzed_packets(tmp_path, packets), scene, packets)


def test_capture_that_began_between_a_request_and_its_short_answer(tmp_path: Path) -> None:
    """The first frame of the broker is an ApiVersions refusal of 20 bytes."""
    scene = scenes.one_by_one(scenes.vocabulary(), mss=50)
    packets = damage.start_late(scene.packets(), 5)
    assert_nothing_invented(analyzed_packets(tmp_path, packets), scene, packets)


def test_one_lost_response_is_not_blamed_on_the_broker(tmp_path: Path) -> None:
    scene = long_scene(calls=12)
    target = scene.scripts[0].calls[6]  # a heartbeat: one packet each way
    assert target.response is not None
    packets = [
        packet
        for packet in scene.packets()
        if packet.connection
        or packet.from_client
        or packet.offset != target.response.start
        or not packet.payload
    ]
    tables = analyzed_packets(tmp_path, packets)
    statuses = assert_nothing_invented(tables, scene, packets)
    assert statuses == {"answered": 35, "response_not_captured": 1}
    (row,) = (row for row in tables["api_calls"] if row["status"] != "answered")
    assert (row["correlation_id"], row["reason"]) == (target.exchange.correlation_id, "segment_not_captured")


def test_lost_request_leaves_its_response_alone(tmp_path: Path) -> None:
    scene = long_scene(calls=12)
    target = scene.scripts[1].calls[3]
    packets = [
        packet
        for packet in scene.packets()
        if packet.connection != 1
        or not packet.from_client
        or packet.offset != target.request.start
        or not packet.payload
    ]
    tables = analyzed_packets(tmp_path, packets)
    statuses = assert_nothing_invented(tables, scene, packets)
    assert statuses["answered"] == 35
    assert {row["correlation_id"] for row in tables["api_calls"] if row["status"] == "response_only"} <= {103}


def test_a_response_alone_says_nothing_of_its_request(tmp_path: Path) -> None:
    packets = scenes.one_by_one([messages.metadata(9, number, ["orders"]) for number in (1, 2, 3)]).packets()
    asked = [packet for packet in packets if packet.from_client and packet.payload]
    rows = analyzed_packets(tmp_path, [packet for packet in packets if packet is not asked[1]])["api_calls"]
    (row,) = [row for row in rows if row["status"] == "response_only"]
    names = ("timeout_ms", "max_bytes", "min_bytes", "max_wait_ms", "rack_id", "acks", "group_id")
    assert {name: row[name] for name in names} == dict.fromkeys(names)


@pytest.mark.parametrize("start", [1, 2, 3, 10, 11, 12, 13, 14, 50, 51, 52, 53])
def test_capture_that_began_later(start: int, tmp_path: Path) -> None:
    scene = long_scene()
    packets = damage.start_late(scene.packets(), start * 3 + 1)
    tables = analyzed_packets(tmp_path, packets)
    statuses = assert_nothing_invented(tables, scene, packets)
    assert statuses["answered"] >= whole_calls(scene, packets) - 6
    assert {row["client_port"] for row in tables["api_calls"]} == {50_000, 50_001, 50_002}


@pytest.mark.parametrize("from_client", [True, False], ids=["requests_only", "responses_only"])
def test_one_direction_only(from_client: bool, tmp_path: Path) -> None:
    scene = long_scene()
    packets = damage.one_direction(scene.packets(), from_client=from_client)
    tables = analyzed_packets(tmp_path, packets)
    statuses = assert_nothing_invented(tables, scene, packets)
    assert statuses["answered"] == statuses["unanswered"] == 0
    if from_client:
        rows = in_order(tables["api_calls"])
        assert len(rows) == len(scene.calls)
        assert {row["status"] for row in rows} == {"response_not_captured"}


@pytest.mark.parametrize("snaplen", [66, 80, 96, 128, 200])
def test_cut_packets(snaplen: int, tmp_path: Path) -> None:
    """66 bytes are the headers alone; a heartbeat fits into 128, a fetch response into none of these."""
    scene = long_scene(mss=1448)
    packets = scene.packets()
    path = written(tmp_path / "cut.pcap", files.frames(packets, snaplen=snaplen))
    tables = decoded(path)
    assert tables["captures"][0]["packets"] == len(packets)
    for row in tables["api_calls"]:
        if row["status"] == "response_only":
            continue
        match = [call for call in scene.calls if call.exchange.correlation_id == row["correlation_id"]]
        assert len(match) == 1
        assert (row["api_key"], row["api_version"]) == (match[0].exchange.api_key, match[0].exchange.version)
        assert row["status"] in {"answered", "response_not_captured"}
    if snaplen >= 128:
        beats = [
            row for row in tables["api_calls"] if row["api_name"] == "Heartbeat" and row["error_code"] == 0
        ]
        assert len(beats) == 42
    if snaplen == 66:
        assert tables["api_calls"] == []


@pytest.mark.parametrize("seed", range(6))
def test_flipped_bits_in_payloads(seed: int, tmp_path: Path) -> None:
    """Damage changes what a message says, but the calls of other connections stay as they are."""
    scene = long_scene()
    packets = scene.packets()
    dice = random.Random(seed)
    hurt = [index for index, packet in enumerate(packets) if packet.connection == 0 and packet.payload]
    for index in dice.sample(hurt, 8):
        packets = damage.corrupt(
            packets, index, dice.randrange(len(packets[index].payload)), dice.randint(1, 255)
        )
    tables = analyzed_packets(tmp_path, packets)
    others = [row for row in tables["api_calls"] if row["client_port"] != 50_000]
    assert Counter(row["status"] for row in others) == {"answered": 80}
    assert len([row for row in tables["api_calls"] if row["client_port"] == 50_000]) <= 60


SMALL = files.pcap(files.frames(scenes.two_clients().packets()))
SMALL_NG = files.pcapng(files.frames(scenes.two_clients().packets()), noise=True)


@pytest.mark.slow
@given(
    flips=st.lists(st.tuples(st.integers(24, len(SMALL) - 1), st.integers(0, 255)), min_size=1, max_size=30),
    cut=st.integers(0, 60),
    ng=st.booleans(),
)
@settings(max_examples=300)
def test_damaged_files_never_raise(flips: list[tuple[int, int]], cut: int, ng: bool) -> None:
    """Behind the magic number anything may happen to the bytes: rows or anomalies, no exception, no crash."""
    data = bytearray(SMALL_NG if ng else SMALL)
    for at, value in flips:
        data[(at if at < len(data) else at % len(data)) + (40 if ng and at < 40 else 0)] = value
    tables = rows_of_bytes(bytes(data[: len(data) - cut]))
    assert len(tables["api_calls"]) <= 30
