"""Fetch sessions (KIP-227): which partitions an incremental fetch really asks for."""

from __future__ import annotations

import struct
from hashlib import blake2b
from pathlib import Path

import pytest

from kwsniff.analyzers import resume_analyzer, start_analyzer
from kwsniff.core.declared import COLUMNS
from kwsniff.layout.catalog import load_catalog
from tests.pipeline.compare import analyzed_packets, in_order
from tests.pipeline.running import CORE_TABLES, rows_of
from tests.traffic import damage, messages, scenes
from tests.traffic.exchange import Exchange
from tests.traffic.files import frames, pcap
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


@pytest.mark.parametrize("version", [7, 16])
def test_a_partition_that_is_forgotten_is_the_one_that_goes(version: int, tmp_path: Path) -> None:
    """Each in turn, wherever it stands in the session."""
    calls = [
        messages.metadata(12, 0, ["a", "b", "c"]),
        messages.fetch(
            version, 1, {"a": {0: b""}, "b": {0: b"", 1: b""}, "c": {0: b""}}, session=(0, 0), opened=77
        ),
        messages.fetch(version, 2, {}, session=(77, 1), opened=77, forgotten={"a": [0]}),
        messages.fetch(version, 3, {}, session=(77, 2), opened=77, forgotten={"b": [1]}),
        messages.fetch(version, 4, {}, session=(77, 3), opened=77, forgotten={"b": [1]}),  # it is gone
        messages.fetch(version, 5, {}, session=(77, 4), opened=77, forgotten={"c": [0]}),
        messages.fetch(version, 6, {"b": {0: b""}}, session=(77, 5), opened=77),  # named again, not added
    ]
    rows = in_order(analyzed_packets(tmp_path, scenes.one_by_one(calls).packets())["api_calls"])[1:]
    assert [(set(row["topics"]), row["partition_count"]) for row in rows] == [
        ({"a", "b", "c"}, 4), ({"b", "c"}, 3), ({"b", "c"}, 2), ({"b", "c"}, 2), ({"b"}, 1), ({"b"}, 1),
    ]  # fmt: skip


def test_partitions_of_two_topics_are_told_apart_by_their_id(tmp_path: Path) -> None:
    calls = [
        messages.fetch(16, 1, {"a": {0: b""}, "b": {0: b""}}, session=(0, 0), opened=77),
        messages.fetch(16, 2, {}, session=(77, 1), opened=77, forgotten={"b": [0]}),
        messages.metadata(12, 3, ["a", "b"]),
        messages.fetch(16, 4, {}, session=(77, 2), opened=77),
    ]
    rows = in_order(analyzed_packets(tmp_path, scenes.one_by_one(calls).packets())["api_calls"])
    assert [(rows[n]["topics"], rows[n]["partition_count"]) for n in (1, 3)] == [(["a"], 1)] * 2


@pytest.mark.parametrize(("following", "count"), [(1, 1), (0x7FFFFFFF, None), (2, None)])
def test_epochs_go_on_with_1_behind_the_largest(following: int, count: int | None) -> None:
    """FetchMetadata.nextEpoch. Nobody records so many fetches: the epoch is put into a saved state."""
    number = 0x1234_5678
    calls = [
        messages.fetch(11, 1, {"a": {0: b""}}, session=(0, 0), opened=number),
        messages.fetch(11, 2, {}, session=(number, 1), opened=number),
        messages.fetch(11, 3, {}, session=(number, following), opened=number),
    ]
    scene = scenes.one_by_one(calls, handshake=False)
    first = scene.calls[2].request.start
    packets = scene.packets()
    cut = next(at for at, packet in enumerate(packets) if packet.from_client and packet.offset == first)
    analyzer = start_analyzer(load_catalog())
    analyzer.open_capture("capture")
    whole = pcap(frames(packets))
    size = len(pcap(frames(packets[:cut])))
    analyzer.feed(whole[:size])
    for table in COLUMNS:
        analyzer.drain(table)
    state = analyzer.save()
    size_of_check = next(n for n in range(8, 65) if state[:n] == blake2b(state[n:], digest_size=n).digest())
    session = struct.pack("=qq", number, 1)
    body = state[size_of_check:]
    assert body.count(session) == 1
    body = body.replace(session, struct.pack("=qq", number, 0x7FFFFFFF))
    check = blake2b(body, digest_size=size_of_check).digest()
    analyzer = resume_analyzer(load_catalog(), check + body)
    analyzer.feed(whole[size:])
    analyzer.close_capture()
    analyzer.finish()
    (row,) = rows_of({name: analyzer.drain(name) for name in CORE_TABLES})["api_calls"]
    assert (row["correlation_id"], row["partition_count"]) == (3, count)
