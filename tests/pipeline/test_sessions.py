"""Fetch sessions (KIP-227): which partitions an incremental fetch really asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.compare import analyzed_packets, in_order
from tests.traffic import damage, messages, scenes
from tests.traffic.exchange import Exchange
from tests.traffic.records import batch

DATA = batch([b"news"])


def conversation(version: int) -> list[Exchange]:
    """One session: opened with three partitions, one forgotten, one added; then a full fetch without one."""
    return [
        messages.fetch(version, 1, {"a": {0: b"", 1: b""}, "b": {7: b""}}, session=(0, 0), opened=77),
        messages.fetch(version, 2, {}, session=(77, 1), opened=77, news={"a": {1: DATA}}),
        messages.fetch(version, 3, {"a": {1: b""}}, session=(77, 2), opened=77, forgotten={"b": [7]}),
        messages.fetch(version, 4, {"c": {3: b""}}, session=(77, 3), opened=77),
        messages.fetch(version, 5, {}, session=(77, 4), opened=77),
        messages.fetch(version, 6, {"a": {0: b""}}, session=(77, -1), opened=0),
    ]


ASKED = [
    ({"a", "b"}, 3), ({"a", "b"}, 3), ({"a"}, 2), ({"a", "c"}, 3), ({"a", "c"}, 3), ({"a"}, 1),
]  # fmt: skip


@pytest.mark.parametrize("version", [7, 11, 12, 16])
def test_incremental_fetches_ask_for_the_whole_session(version: int, tmp_path: Path) -> None:
    names = messages.metadata(12, 0, ["a", "b", "c"])
    scene = scenes.one_by_one([names, *conversation(version)])
    rows = in_order(analyzed_packets(tmp_path, scene.packets())["api_calls"])[1:]
    assert [(set(row["topics"]), row["partition_count"]) for row in rows] == ASKED
    assert [row["session_id"] for row in rows] == [77] * 6


def test_session_whose_beginning_was_not_captured_is_not_guessed_at(tmp_path: Path) -> None:
    scene = scenes.one_by_one(conversation(11))
    first = scene.calls[1].request.start
    packets = [
        packet
        for packet in scene.packets()
        if packet.offset >= (first if packet.from_client else scene.calls[1].response.start)  # type: ignore[union-attr]
        and packet.payload
    ]
    rows = in_order(analyzed_packets(tmp_path, packets)["api_calls"])
    assert [row["correlation_id"] for row in rows] == [2, 3, 4, 5, 6]
    assert [row["partition_count"] for row in rows] == [None, None, None, None, 1]


def test_lost_request_ends_what_is_known_of_the_session(tmp_path: Path) -> None:
    """What the lost request changed is not known, so neither is what the later ones ask for."""
    scene = scenes.one_by_one(conversation(11))
    lost = scene.calls[2].request.start
    packets = damage.drop(
        scene.packets(),
        {i for i, p in enumerate(scene.packets()) if p.from_client and p.offset == lost and p.payload},
    )
    rows = {row["correlation_id"]: row for row in analyzed_packets(tmp_path, packets)["api_calls"]}
    assert rows[2]["partition_count"] == 3
    assert [rows[number]["partition_count"] for number in (4, 5)] == [None, None]
    assert rows[6]["partition_count"] == 1


def test_refused_session_is_none(tmp_path: Path) -> None:
    calls = [
        messages.fetch(11, 1, {"a": {0: b""}}, session=(0, 0), opened=0),
        messages.fetch(11, 2, {}, session=(5, 1), error=70, news={}),
    ]
    rows = in_order(analyzed_packets(tmp_path, scenes.one_by_one(calls).packets())["api_calls"])
    assert [row["partition_count"] for row in rows] == [1, None]
