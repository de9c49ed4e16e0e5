"""tshark with the plugin shows of every packet what the tables say."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import kwsniff
from kwsniff.cli.main import run
from tests.traffic.files import pcap, read_frames
from tests.wireshark.seen import ALONE, FIELDS, PLUGIN, needs_tshark, read_packets, shown, told

CAPTURES = Path(__file__).parents[2] / "captures"
RECORDINGS = sorted(
    str(path.relative_to(CAPTURES))
    for path in CAPTURES.rglob("*.pcap*")
    if path.suffix in (".pcap", ".pcapng")
)
STEPS = CAPTURES / "first_steps" / "capture.pcap"
FINDING = FIELDS.index("kwsniff.finding")

pytestmark = [needs_tshark, pytest.mark.sample_tests(6)]


def indexed(folder: Path, *captures: Path) -> tuple[Path, Path]:
    """Folders of tables and of indexes."""
    tables, index = folder / "tables", folder / "index"
    assert run(["analyze", *map(str, captures), "-o", str(tables)]) == 0
    assert run(["wireshark", str(tables), "-o", str(index)]) == 0
    return tables, index


@pytest.mark.sample(4)
@pytest.mark.parametrize("recording", RECORDINGS)
def test_every_packet_has_what_the_tables_say(recording: str, tmp_path: Path) -> None:
    capture = CAPTURES / recording
    if not kwsniff.analyze(capture, tables=["api_calls"]).api_calls.num_rows:
        pytest.skip("no calls")
    tables, index = indexed(tmp_path, capture)
    assert shown(capture, index) == told(tables, read_packets(capture))


def test_a_packet_with_parts_of_several_calls_shows_all(tmp_path: Path) -> None:
    capture = CAPTURES / "field" / "poison_record.pcap"
    calls = kwsniff.analyze(capture, tables=["api_calls"]).api_calls.to_pylist()
    brought = Counter(call["request_frame"] for call in calls)
    frame, number = brought.most_common(1)[0]
    assert number > 1
    _, index = indexed(tmp_path, capture)
    expected = sorted(str(call["call_id"]) for call in calls if call["request_frame"] == frame)
    assert shown(capture, index)[frame][0] == expected


def test_a_long_message_is_at_each_of_its_packets(tmp_path: Path) -> None:
    capture = CAPTURES / "field" / "thin_link.pcap"
    calls = kwsniff.analyze(capture, tables=["api_calls"]).api_calls.to_pylist()
    longest = max(calls, key=lambda call: call["request_end_frame"] - call["request_frame"])
    _, index = indexed(tmp_path, capture)
    begin, end = longest["request_frame"], longest["request_end_frame"]
    of_client = {
        frame
        for frame, packet in read_packets(capture).items()
        if begin <= frame <= end and packet.sender[1] == str(longest["client_port"]) and packet.payload
    }
    assert len(of_client) > 2
    call = str(longest["call_id"])
    found = {frame for frame, row in shown(capture, index).items() if call in row[0]}
    assert {frame for frame in found if begin <= frame <= end} == of_client


@pytest.mark.parametrize("tenths", [1, 5])
def test_latencies_are_filtered_in_seconds(tenths: int, tmp_path: Path) -> None:
    _, index = indexed(tmp_path, STEPS)
    slow = {
        call[f"{side}_frame"]
        for call in kwsniff.analyze(STEPS, tables=["api_calls"]).api_calls.to_pylist()
        for side in ("request", "response")
        if call["latency_ns"] is not None and call["latency_ns"] > tenths * 100_000_000
    }
    assert slow
    found = shown(STEPS, index, "-Y", f"kwsniff.latency > {tenths / 10}")
    assert found.keys() == slow


def test_a_finding_is_a_filter(tmp_path: Path) -> None:
    capture = CAPTURES / "incidents" / "broker_stalled" / "client.pcap"
    tables, index = indexed(tmp_path, capture)
    names = kwsniff.open(tables).findings["finding"].to_pylist()
    assert names
    everything = told(tables, read_packets(capture))
    for name in set(names):
        packets = {frame for frame, row in everything.items() if name in row[FINDING]}
        found = shown(capture, index, "-Y", f'kwsniff.finding == "{name}"')
        assert found.keys() == packets


def test_each_capture_of_a_run_has_its_own_index(tmp_path: Path) -> None:
    """The first request whose response comes two packets later or more is in another file than that."""
    calls = kwsniff.analyze(STEPS, tables=["api_calls"]).api_calls.to_pylist()
    asked = next(
        call["request_frame"] for call in calls if (call["response_frame"] or 0) > call["request_frame"] + 1
    )
    _, frames = read_frames(STEPS.read_bytes())
    parts = [tmp_path / "1.pcap", tmp_path / "2.pcap"]
    parts[0].write_bytes(pcap(frames[:asked]))
    parts[1].write_bytes(pcap(frames[asked:]))
    tables, index = indexed(tmp_path, *parts)
    assert len(list(index.iterdir())) == 2
    rows = {row["call_id"]: row for row in kwsniff.open(tables).api_calls.to_pylist()}
    assert {row["capture"] for row in rows.values()} == {str(part) for part in parts}
    whole = {frame: row[0] for frame, row in told_of(STEPS, tmp_path / "whole").items()}
    first, second = ({frame: row[0] for frame, row in shown(part, index).items()} for part in parts)
    assert first | {frame + asked: calls for frame, calls in second.items()} == whole


def test_a_message_that_lies_in_two_captures_is_in_both(tmp_path: Path) -> None:
    """A response of many packets: in the first file alone, cut in two, in the second file alone."""
    capture = CAPTURES / "field" / "thin_link.pcap"
    calls = kwsniff.analyze(capture, tables=["api_calls"]).api_calls.to_pylist()
    longest = max(calls, key=lambda call: call["request_end_frame"] - call["request_frame"])
    begin, end = longest["request_frame"], longest["request_end_frame"]
    _, frames = read_frames(capture.read_bytes())
    whole = [
        frame
        for frame, row in told_of(capture, tmp_path / "whole").items()
        if str(longest["call_id"]) in row[0]
    ]
    for cut, expected in (
        (begin - 1, whole),
        ((begin + end) // 2, [frame for frame in whole if frame <= begin or frame >= end]),
    ):
        parts = [tmp_path / f"{cut}-1.pcap", tmp_path / f"{cut}-2.pcap"]
        parts[0].write_bytes(pcap(frames[:cut]))
        parts[1].write_bytes(pcap(frames[cut:]))
        _, index = indexed(tmp_path / str(cut), *parts)
        first, second = ({frame: row[0] for frame, row in shown(part, index).items()} for part in parts)
        both = first | {frame + cut: calls for frame, calls in second.items()}
        assert [frame for frame, calls in both.items() if str(longest["call_id"]) in calls] == expected


def told_of(capture: Path, folder: Path) -> dict[int, list[list[str]]]:
    tables, _ = indexed(folder, capture)
    return told(tables, read_packets(capture))


def test_a_packet_of_another_time_is_another_packet(tmp_path: Path) -> None:
    """A capture that begins like another one, and goes on otherwise."""
    _, index = indexed(tmp_path, STEPS)
    _, frames = read_frames(STEPS.read_bytes())
    before = shown(STEPS, index)
    moved = sorted(before)[-1]
    frames[moved - 1] = replace(frames[moved - 1], time_ns=frames[moved - 1].time_ns + 1000)
    other = tmp_path / "other.pcap"
    other.write_bytes(pcap(frames))
    del before[moved]
    assert shown(other, index) == before


def test_a_capture_without_an_index_shows_nothing(tmp_path: Path) -> None:
    _, index = indexed(tmp_path, STEPS)
    assert shown(CAPTURES / "franz_go" / "capture.pcap", index) == {}


def test_two_passes_show_the_same(tmp_path: Path) -> None:
    _, index = indexed(tmp_path, STEPS)
    assert shown(STEPS, index, "-2") == shown(STEPS, index)


def test_damaged_indexes_are_passed_over(tmp_path: Path) -> None:
    _, index = indexed(tmp_path, STEPS)
    (file,) = index.iterdir()
    whole = file.read_bytes()
    command = [
        "tshark",
        "-n",
        "-r",
        str(STEPS),
        "-V",
        "-X",
        f"lua_script:{PLUGIN}",
        "-o",
        f"kwsniff.index:{index}",
    ]
    for damaged in (
        b"",
        whole[:40],
        whole[:-30],
        whole[:-21] + b"x" * 21,
        b"y" + whole[1:],
        whole[:-1] + b"0\n",
    ):
        file.write_bytes(damaged)
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=ALONE)
        assert "Frame 146:" in done.stdout
        assert "Lua Error" not in done.stdout
        assert "kwsniff" not in done.stdout
