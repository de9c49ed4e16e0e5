"""`frame` and `stream` choose calls by the numbers that Wireshark shows."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kwsniff
from kwsniff.errors import UsageError
from tests.traffic.files import pcap, read_frames

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
NAMES = ("three_brokers", "first_steps", "group_classic", "killed_broker", "kafkajs")


class Segment(NamedTuple):
    """What tshark says of a packet."""

    stream: int
    source_port: int
    payload: int
    address: str


def segments(capture: Path) -> Mapping[int, Segment]:
    fields = ("frame.number", "tcp.stream", "tcp.srcport", "tcp.len", "ip.src")
    command = ["tshark", "-r", str(capture), "-Y", "tcp", "-T", "fields", "-E", "occurrence=l"]
    command += [each for field in fields for each in ("-e", field)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = (line.split("\t") for line in done.stdout.splitlines())
    return {
        int(frame): Segment(int(stream), int(port), int(size), address)
        for frame, stream, port, size, address in rows
    }


def chosen(capture: Path, where: str) -> set[int]:
    return set(kwsniff.analyze(capture, tables=["api_calls"], where=where).api_calls["call_id"].to_pylist())


def has(call: Mapping[str, Any], frame: int, seen: Mapping[int, Segment]) -> bool:
    """Whether a packet is one of a call, by hand."""
    packet = seen[frame]
    first = call["request_frame"] or call["response_frame"]
    if first is None or seen[first].stream != packet.stream:
        return False
    asks = (packet.address, packet.source_port) == (call["client_address"], call["client_port"])
    begin, end = ("request_frame", "request_end_frame") if asks else ("response_frame", "response_end_frame")
    if not packet.payload:
        begin, end = "request_frame", "response_end_frame"
    return None not in (call[begin], call[end]) and call[begin] <= frame <= call[end]


@needs_tshark
@pytest.mark.parametrize("name", NAMES)
def test_tshark_says_whose_packets_they_are(name: str) -> None:
    (capture,) = (CAPTURES / name).glob("capture.pcap*")
    seen = segments(capture)
    calls = kwsniff.analyze(capture, tables=["api_calls"]).api_calls.to_pylist()
    some = random.Random(name)
    streams = sorted({packet.stream for packet in seen.values()})
    for stream in some.sample(streams, 2):
        expected = {
            call["call_id"]
            for call in calls
            if seen[call["request_frame"] or call["response_frame"]].stream == stream
        }
        assert chosen(capture, f"stream = {stream}") == expected
    for frame in some.sample(sorted(seen), 6):
        assert chosen(capture, f"frame = {frame}") == {
            call["call_id"] for call in calls if has(call, frame, seen)
        }


@needs_tshark
def test_a_stream_that_has_the_ports_of_an_earlier_one_is_another(tmp_path: Path) -> None:
    """The recording, and the same packets an hour later with other sequence numbers."""
    from scapy.layers.inet import TCP
    from scapy.utils import rdpcap, wrpcap

    packets = rdpcap(str(CAPTURES / "first_steps" / "capture.pcap"))
    again = [packet.copy() for packet in packets]
    for packet in again:
        packet.time += 3600
        packet[TCP].seq = (packet[TCP].seq + 123_456_789) % 2**32
        if packet[TCP].ack:
            packet[TCP].ack = (packet[TCP].ack + 123_456_789) % 2**32
    capture = tmp_path / "twice.pcap"
    wrpcap(str(capture), [*packets, *again])
    seen = segments(capture)
    calls = kwsniff.analyze(capture, tables=["api_calls"]).api_calls.to_pylist()
    streams = {seen[call["request_frame"]].stream for call in calls}
    assert len(streams) == 2 * len({seen[c["request_frame"]].stream for c in calls[: len(calls) // 2]})
    for stream in sorted(streams):
        expected = {call["call_id"] for call in calls if seen[call["request_frame"]].stream == stream}
        assert chosen(capture, f"stream = {stream}") == expected


def test_numbers_count_in_each_file(tmp_path: Path) -> None:
    _, frames = read_frames((CAPTURES / "first_steps" / "capture.pcap").read_bytes())
    half = len(frames) // 2
    for name, some in (("a.pcap", frames[:half]), ("b.pcap", frames[half:])):
        (tmp_path / name).write_bytes(pcap(some))
    calls = kwsniff.analyze(tmp_path, tables=["api_calls"]).api_calls.to_pylist()
    frame = next(c["request_frame"] for c in reversed(calls) if c["capture"].endswith("b.pcap"))
    in_both = chosen(tmp_path, f"frame = {frame}")
    in_second = chosen(tmp_path, f"frame = {frame} and capture like '%b.pcap'")
    assert in_second < in_both or in_second == in_both
    assert in_second == {
        c["call_id"] for c in calls if c["capture"].endswith("b.pcap") and c["request_frame"] == frame
    }


def test_other_conditions_go_with_them() -> None:
    capture = CAPTURES / "three_brokers" / "capture.pcap"
    calls = kwsniff.analyze(capture, tables=["api_calls"]).api_calls.to_pylist()
    frames = sorted({call["request_frame"] for call in calls})[:3]
    listed = chosen(capture, f"frame in ({', '.join(map(str, frames))})")
    assert listed == {call["call_id"] for call in calls if call["request_frame"] in frames}
    assert chosen(capture, f"frame != {frames[0]}") == {
        call["call_id"] for call in calls if call["request_frame"] != frames[0]
    }
    assert chosen(capture, f"frame = {frames[0]} and api_key = 77") == set()
    assert chosen(capture, "frame = 999999999 or stream = 999999999") == set()


def test_a_folder_of_tables_has_no_packets(tmp_path: Path) -> None:
    kwsniff.analyze(CAPTURES / "first_steps" / "capture.pcap", output=tmp_path / "out")
    with pytest.raises(UsageError, match="frame and stream number packets of capture files"):
        kwsniff.open(tmp_path / "out", where="frame = 1").api_calls  # noqa: B018
