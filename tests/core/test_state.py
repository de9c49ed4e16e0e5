"""The state of an analysis as a value: saved between any two packets, resumed, and nothing is different."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kwsniff.analyzers import resume_analyzer, start_analyzer
from kwsniff.core.analyzer import Analyzer
from kwsniff.core.declared import COLUMNS, ENUMS
from kwsniff.errors import UsageError
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.build import Builder
from tests.pipeline.intrusions import intruded, places
from tests.pipeline.removal import numbered, selective_capture
from tests.pipeline.segments import ahead, conversations, frames_of, read
from tests.pipeline.test_damage import long_scene
from tests.pipeline.test_eviction import closed, three_connections
from tests.traffic import damage, files, groups, scenes
from tests.traffic.tcp import Endpoint, Packet, Scene

CATALOG = load_catalog()
BUILDER = Builder(CATALOG, ENUMS)
RECORD = 16
_CHECK_BYTES = 16
CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("*/capture.pcap"))

Rows = dict[str, list[dict[str, Any]]]


def analyzed_in_parts(
    data: bytes, cuts: Sequence[int], **limits: int
) -> tuple[Rows, dict[str, Any], dict[str, int]]:
    """All rows of a capture whose analysis was saved and resumed at every cut."""
    rows: Rows = {table: [] for table in COLUMNS}

    def take(analyzer: Analyzer) -> None:
        for table in filter(analyzer.rows, COLUMNS):
            rows[table] += BUILDER.build(table, analyzer.drain(table)).to_pylist()

    analyzer = start_analyzer(CATALOG, limits=limits)
    analyzer.open_capture("capture")
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        if start:
            take(analyzer)
            analyzer = resume_analyzer(CATALOG, analyzer.save())
        analyzer.feed(data[start:end])
    facts = analyzer.close_capture()
    analyzer.finish()
    take(analyzer)
    return rows, facts, analyzer.accounting(0)


def packet_ends(data: bytes) -> list[int]:
    """Where every record of a little-endian pcap ends, but the last."""
    ends = [24]
    while ends[-1] < len(data):
        ends.append(ends[-1] + RECORD + int.from_bytes(data[ends[-1] + 8 : ends[-1] + 12], "little"))
    return ends[:-1]


def damaged() -> dict[str, Sequence[Packet]]:
    whole = long_scene(calls=14, mss=200).packets()
    return {
        "whole": whole,
        "lost": damage.drop_share(whole, 0.05, 3),
        "shuffled": damage.reorder(whole, 5, 1),
        "late": damage.start_late(whole, 40),
        "everything": scenes.one_by_one(scenes.vocabulary(), mss=100).packets(),
    }


@pytest.mark.parametrize("name", damaged())
def test_resumed_after_every_packet(name: str) -> None:
    data = files.pcap(files.frames(damaged()[name]))
    cuts = packet_ends(data)
    assert len(cuts) > 50
    assert analyzed_in_parts(data, cuts) == analyzed_in_parts(data, [])


@pytest.mark.sample(3)
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.parent.name)
def test_recorded_captures_resumed_after_many_packets(path: Path) -> None:
    """Half of them, at random: what was begun in one is resumed in the next, and in the one after it."""
    data = path.read_bytes()
    ends = packet_ends(data)
    cuts = sorted(random.Random(path.parent.name).sample(ends, (len(ends) + 1) // 2))
    assert analyzed_in_parts(data, cuts) == analyzed_in_parts(data, [])


@pytest.mark.parametrize("limit", ["reorder_bytes", "reorder_segments", "reorder_bytes_total"])
def test_what_was_held_counts_against_the_limits_when_an_analysis_is_resumed(limit: str) -> None:
    """Requests alone, in pieces of 20 bytes, of which the second one is missing."""
    whole_talk = long_scene(calls=6, mss=20).packets()
    asked = [packet for packet in whole_talk if packet.connection == 0 and packet.from_client]
    lost = [packet for packet in asked if packet.payload][1]
    data = files.pcap(files.frames([packet for packet in asked if packet is not lost]))
    value = {"reorder_bytes": 100, "reorder_segments": 4, "reorder_bytes_total": 500}[limit]
    whole = analyzed_in_parts(data, [], **{limit: value})
    assert "held_limit" in [row["name"] for row in whole[0]["anomalies"]]
    assert analyzed_in_parts(data, packet_ends(data), **{limit: value}) == whole


def test_resumed_with_ranges_that_were_received_behind_a_hole() -> None:
    data = selective_capture(CAPTURES[0].parents[1] / "first_steps" / "capture.pcap")
    whole = analyzed_in_parts(data, [])
    assert "segment_not_captured" in [row["reason"] for row in whole[0]["api_calls"]]
    assert analyzed_in_parts(data, packet_ends(data)) == whole


@pytest.mark.parametrize("is_gainsaid", [True, False])
def test_resumed_behind_a_reset(is_gainsaid: bool) -> None:
    """What comes behind a reset is held until somebody gainsays it, or nobody does."""
    link, segments = read(CAPTURES[0].parents[1] / "first_steps" / "capture.pcap")
    talk = max(map(numbered, conversations(segments)), key=lambda each: len(places(each)))
    found_names: set[str] = set()
    for at in places(talk)[1:9]:
        packets = intruded(talk, at, "RST", of_first=False)
        reset = packets[at + 1]
        if not is_gainsaid:  # the broker is gone, and requests were under way
            packets = [*packets[: at + 2], *(s for s in packets[at + 2 :] if ahead(s.ack, reset.seq) <= 0)]
            packets = [s for n, s in enumerate(packets) if n <= at + 1 or s.ends == reset.ends[::-1]]
        data = files.pcap(frames_of(numbered(packets)), link)
        whole = analyzed_in_parts(data, [])
        found_names |= {row["name"] for row in whole[0]["anomalies"]}
        assert analyzed_in_parts(data, packet_ends(data)) == whole
    assert found_names == {"reset_taken_back" if is_gainsaid else "data_after_end"}


def test_resumed_inside_packets() -> None:
    data = files.pcapng(files.frames(damaged()["lost"]), big=True)
    cuts = sorted(random.Random(5).sample(range(1, len(data)), 60))
    assert analyzed_in_parts(data, cuts) == analyzed_in_parts(data, [])


def test_resumed_with_half_a_datagram() -> None:
    """IP fragments that were waiting are part of the state."""
    (packet,) = [p for p in long_scene(calls=2).packets() if len(p.payload) > 90][:1]
    frame = files.frames([packet])[0]
    ethernet, header, payload = frame.data[:14], bytearray(frame.data[14:34]), frame.data[34:]
    pieces = []
    for start, more in ((0, True), (48, False)):
        piece = payload[start:48] if more else payload[start:]
        header[2:4] = (20 + len(piece)).to_bytes(2, "big")
        header[6:8] = ((start // 8) | (0x2000 if more else 0)).to_bytes(2, "big")
        pieces.append(ethernet + bytes(header) + piece)
    head = files.pcap([])
    records = [bytes(8) + len(p).to_bytes(4, "little") * 2 + p for p in pieces]
    data = head + b"".join(records)
    whole = analyzed_in_parts(data, [])
    assert whole[1]["packets_fragment"] == 1
    assert whole[1]["tcp_payload_bytes"] == len(packet.payload)
    assert analyzed_in_parts(data, packet_ends(data)) == whole


def saved_midway() -> bytes:
    analyzer = start_analyzer(CATALOG)
    analyzer.open_capture("capture")
    data = files.pcap(files.frames(damaged()["lost"]))
    analyzer.feed(data[: len(data) // 2])
    for table in COLUMNS:
        analyzer.drain(table)
    return analyzer.save()


def test_a_state_that_is_none_is_refused() -> None:
    state = saved_midway()
    dice = random.Random(1)
    for bad in (b"", b"\1", b"\1\0KWST", dice.randbytes(200), dice.randbytes(100_000), state + b"\0"):
        with pytest.raises(UsageError, match="not a state of this build"):
            resume_analyzer(CATALOG, bad)


def test_a_state_that_ends_early_is_refused() -> None:
    state = saved_midway()
    for cut in random.Random(2).sample(range(len(state)), 300):
        with pytest.raises(UsageError, match="not a state of this build"):
            resume_analyzer(CATALOG, state[:cut])


@pytest.mark.parametrize(("at", "what"), [(3, "magic"), (7, "version"), (11, "shapes"), (19, "sizes")])
def test_a_state_of_another_build_is_refused(at: int, what: str) -> None:
    """Whole and undamaged: its check is right. `at`: behind the check, in the head."""
    state = saved_midway()
    body = bytearray(state[_CHECK_BYTES:])
    check = hashlib.blake2b(body, digest_size=_CHECK_BYTES).digest()
    assert check == state[:_CHECK_BYTES]
    resume_analyzer(CATALOG, check + bytes(body))
    body[at] ^= 1
    check = hashlib.blake2b(body, digest_size=_CHECK_BYTES).digest()
    with pytest.raises(UsageError, match="not a state of this build"):
        resume_analyzer(CATALOG, check + bytes(body))


def test_results_are_taken_before_the_state() -> None:
    analyzer = start_analyzer(CATALOG)
    analyzer.open_capture("capture")
    analyzer.feed(files.pcap(files.frames(damaged()["whole"])))
    with pytest.raises(UsageError, match="take the tables"):
        analyzer.save()


def idle(idle_seconds: int, data: bytes, *, resumed: bool, bucket: tuple[int, int] = (0, 1)) -> list[str]:
    """How the connections of a capture ended, whose analysis was saved before it was finished, or was not."""
    analyzer = start_analyzer(CATALOG, limits={"idle_seconds": idle_seconds}, bucket=bucket)
    builder = Builder(CATALOG, ENUMS)
    analyzer.open_capture("capture")
    half = packet_ends(data)[-2]
    analyzer.feed(data[:half])
    rows = builder.build("connections", analyzer.drain("connections")).to_pylist()
    for rest in (data[half:], b""):
        if resumed:
            for table in COLUMNS:
                analyzer.drain(table)
            analyzer = resume_analyzer(CATALOG, analyzer.save())
        if rest:
            analyzer.feed(rest)
            analyzer.close_capture()
            rows += builder.build("connections", analyzer.drain("connections")).to_pylist()
    analyzer.finish()
    rows += builder.build("connections", analyzer.drain("connections")).to_pylist()
    return sorted(row["ending"] for row in rows)


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize(
    ("idle_seconds", "ends"), [(15, ["evicted", "evicted", "open", "open"]), (31, ["open"] * 3)]
)
def test_the_idle_clock_goes_on_when_an_analysis_is_resumed(
    idle_seconds: int, ends: list[str], resumed: bool
) -> None:
    """Three connections, 10 s apart; the first asks again after 30 s, last of all."""
    data = files.pcap(files.frames(three_connections(10 * 10**9).packets()))
    assert idle(idle_seconds, data, resumed=resumed) == ends


@pytest.mark.parametrize("resumed", [False, True])
def test_packets_of_other_buckets_tell_the_time_when_an_analysis_is_resumed(resumed: bool) -> None:
    """Two connections in two buckets: one falls silent, the other goes on for 30 s."""
    scene = Scene()
    for port in range(50_000, 50_040):
        script = scene.connection(Endpoint("10.9.0.1", port), Endpoint("10.9.1.1", 9092))
        script.open(0)
    script.call(groups.heartbeat(3, 1, "g"), at=30 * 10**9, answer_at=31 * 10**9)
    data = files.pcap(files.frames(scene.packets()))
    ends = [idle(15, data, resumed=resumed, bucket=(number, 2)) for number in (0, 1)]
    assert sorted(map(set, ends), key=len) == [{"evicted"}, {"evicted", "open"}]
    assert [end for each in ends for end in each].count("open") == 1


def test_connections_that_ended_long_ago_are_not_kept() -> None:
    """One comes and goes every ten seconds."""

    def kept(num: int) -> int:
        scene = Scene()
        for number in range(num):
            closed(scene, 50_000 + number, number * 10 * 10**9)
        analyzer = start_analyzer(CATALOG)
        analyzer.open_capture("capture")
        analyzer.feed(files.pcap(files.frames(scene.packets())))
        for table in COLUMNS:
            analyzer.drain(table)
        return len(analyzer.save())

    assert kept(10) < kept(20) < kept(40)
    assert kept(100) == kept(200) == kept(400)


def test_a_state_without_connections_that_ended_gives_the_rows_of_the_others() -> None:
    """What live asks for: what there would be if the capture ended now."""
    scene = Scene()
    for number in range(20):
        closed(scene, 50_000 + number, number * 10**9)
    asking = scene.connection(Endpoint("10.9.0.2", 40_000), Endpoint("10.9.1.1", 9092))
    asking.open(15 * 10**9)
    asking.call(groups.heartbeat(3, 1, "g"), at=16 * 10**9)
    analyzer = start_analyzer(CATALOG)
    analyzer.open_capture("capture")
    analyzer.feed(files.pcap(files.frames(scene.packets())))
    builder = Builder(CATALOG, ENUMS)
    for table in COLUMNS:
        analyzer.drain(table)
    states = [analyzer.save(ended=ended) for ended in (True, False)]
    assert len(states[0]) - len(states[1]) > 20 * 2000
    found = []
    for state in states:
        resumed = resume_analyzer(CATALOG, state)
        resumed.close_capture()
        resumed.finish()
        found.append({table: builder.build(table, resumed.drain(table)).to_pylist() for table in COLUMNS})
    assert found[0] == found[1]
    assert [row["client_port"] for row in found[1]["connections"]] == [40_000]
    assert [row["status"] for row in found[1]["api_calls"]] == ["unanswered"]
