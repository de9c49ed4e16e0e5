"""Captures that lost packets: every call whose bytes are all there comes out right, none is made up."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.compare import Row, analyzed_packets, decoded, written
from tests.pipeline.opened import wide
from tests.pipeline.test_damage import long_scene
from tests.traffic import damage, scenes
from tests.traffic.files import frames
from tests.traffic.tcp import Packet, Scene
from tests.traffic.truth import TrueCall, truth

SCENES: dict[str, Callable[[], Scene]] = {
    "one_packet_each": lambda: long_scene(calls=80),
    "many_small_segments": lambda: long_scene(calls=80, mss=60),
    "some_segments": lambda: long_scene(calls=80, mss=200),
    "pipelined": lambda: scenes.pipelined(6, 120),
    "every_message": lambda: scenes.one_by_one(scenes.vocabulary()),
    "large": lambda: wide(9000, calls=60),
}


def judge(row: Row | None, want: TrueCall, slack_ns: int) -> str:
    """What became of a call of the script whose bytes are all in the capture."""
    if row is None:
        return "missed"
    expected = "answered" if want.call.exchange.expects_response else "no_response_expected"
    if row["status"] != expected or row["reason"] is not None:
        return "missed"
    assert want.request is not None
    if want.response is not None:
        assert abs(row["latency_ns"] - (want.response.last_ns - want.request.first_ns)) <= slack_ns
        assert row["error_code"] == want.error_code
    return "right"


def outcome(
    folder: Path, scene: Scene, packets: Sequence[Packet], slack_ns: int = 0, **options: Any
) -> Counter[str]:
    """`slack_ns`: by how much a latency may be off."""
    tables = analyzed_packets(folder, packets, **options)
    true = {(t.call.client.port, t.call.exchange.correlation_id): t for t in truth(scene.calls, packets)}
    rows: dict[tuple[int, int], Row] = {}
    for row in tables["api_calls"]:
        key = row["client_port"], row["correlation_id"]
        assert key in true, "a call that never was"
        assert key not in rows, "a call that came out twice"
        rows[key] = row
        want = true[key]
        if row["api_key"] is not None:
            exchange = want.call.exchange
            assert (row["api_key"], row["api_version"]) == (exchange.api_key, exchange.version)
        if row["status"] == "unanswered":
            assert want.request is None or want.response is None, "not the broker's fault"
    counts: Counter[str] = Counter()
    for key, want in true.items():
        if want.request and (want.response or not want.call.exchange.expects_response):
            counts[judge(rows.get(key), want, slack_ns)] += 1
    (capture,) = tables["captures"]
    bins = [capture[name] for name in capture if name.endswith("_bytes") and name != "tcp_payload_bytes"]
    assert sum(bins) == capture["tcp_payload_bytes"]
    return counts


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("share", [0.01, 0.05])
@pytest.mark.parametrize("name", SCENES)
def test_whole_calls_survive_random_loss(name: str, share: float, tmp_path: Path) -> None:
    scene = SCENES[name]()
    packets = scene.packets()
    counts: Counter[str] = Counter()
    for seed in range(6):
        counts += outcome(tmp_path, scene, damage.drop_share(packets, share, seed))
    assert counts["right"] >= 0.99 * counts.total()
    assert counts["right"] > 100


@pytest.mark.sample(1)
@pytest.mark.parametrize("share", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("size", [700, 3000, 9000, 30_000])
def test_no_loss_makes_a_call_come_twice(size: int, share: float, tmp_path: Path) -> None:
    """Responses go by out of step while their requests lie behind holes: `outcome` wants each call once."""
    scene = wide(size, calls=40)
    for seed in range(4):
        outcome(tmp_path, scene, damage.drop_share(scene.packets(), share, seed))


@pytest.mark.parametrize("name", SCENES)
def test_one_direction_is_enough_for_its_half(name: str, tmp_path: Path) -> None:
    scene = SCENES[name]()
    for from_client in (True, False):
        packets = damage.one_direction(scene.packets(), from_client=from_client)
        tables = analyzed_packets(tmp_path, packets)
        statuses = {row["status"] for row in tables["api_calls"]}
        if from_client:
            assert len(tables["api_calls"]) == len(scene.calls)
            assert statuses <= {"response_not_captured", "no_response_expected"}
            reasons = {r["reason"] for r in tables["api_calls"] if r["status"] == "response_not_captured"}
            assert reasons == {"one_direction"}
        else:
            answered = [c for c in scene.calls if c.response is not None]
            assert statuses == {"response_only"}
            assert len(tables["api_calls"]) == len(answered)
            assert {r["reason"] for r in tables["api_calls"]} == {"one_direction"}
            ids = Counter(c.exchange.correlation_id for c in answered)
            assert Counter(r["correlation_id"] for r in tables["api_calls"]) == ids


def topic_id(name: str) -> str:
    """How Kafka prints the id that the script gives a topic: its name, over and over, as sixteen bytes."""
    return urlsafe_b64encode((name * 16).encode()[:16]).decode().rstrip("=")


@pytest.mark.parametrize("snaplen", [96, 128, 256])
@pytest.mark.parametrize("name", ["one_packet_each", "some_segments", "pipelined", "every_message"])
def test_headers_are_enough_for_calls_and_latencies(name: str, snaplen: int, tmp_path: Path) -> None:
    scene = SCENES[name]()
    packets = scene.packets()
    path = written(tmp_path / "cut.pcap", frames(packets, snaplen=snaplen))
    rows = {(r["client_port"], r["correlation_id"]): r for r in decoded(path)["api_calls"]}
    true = {(t.call.client.port, t.call.exchange.correlation_id): t for t in truth(scene.calls, packets)}
    assert set(rows) <= set(true)
    for key, row in rows.items():
        want = true[key]
        assert want.request is not None
        if row["api_key"] is not None:
            assert (row["api_key"], row["api_version"]) == (
                want.call.exchange.api_key,
                want.call.exchange.version,
            )
            assert row["request_bytes"] == want.request.size
        if row["response_bytes"] is not None:
            assert want.response is not None
            assert row["response_bytes"] == want.response.size
        if row["latency_ns"] is not None:
            assert want.response is not None
            assert row["latency_ns"] == want.response.last_ns - want.request.first_ns
        assert row["client_id"] in (None, want.call.exchange.client_id)
        assert row["error_code"] in (None, want.error_code)
        named = set(want.call.exchange.facts.topics or ())
        assert set(row["topics"] or ()) <= named | {topic_id(name) for name in named}
        assert row["status"] != "unanswered" or not want.call.exchange.expects_response
    if name != "pipelined":  # where frames share segments, those behind the first are cut away
        assert set(rows) == set(true)
        assert all(r["latency_ns"] is not None for r in rows.values() if r["status"] == "answered")
