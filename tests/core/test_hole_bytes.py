"""Bytes of holes are found in packets of another place, whatever else these hold."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from kwsniff.core.capture.hole_bytes import HoleBytes, way
from kwsniff.core.capture.packet_offsets import endpoint_number
from kwsniff.errors import CaptureError
from tests.house.tree import ROOT
from tests.pipeline.segments import Segment, frames_of, read
from tests.traffic.files import pcap

PATH = ROOT / "captures" / "clocks" / "near" / "client.pcap"
ALWAYS = -(1 << 63), (1 << 63) - 1


def number(end: bytes) -> int:
    return endpoint_number(bytes(10) + b"\xff\xff" + end[:4], int.from_bytes(end[4:]))


def way_of(segment: Segment) -> int:
    return way(*map(number, segment.ends))


def signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def wanted(segment: Segment, seq: int, num: int, times: tuple[int, int] = ALWAYS) -> bytes:
    return struct.pack("=5q", signed(way_of(segment)), seq % 2**32, num, *times)


def found(segments: list[Segment], told: bytes, asked: bytes = b"", most: int = 10_000) -> HoleBytes:
    search = HoleBytes(told, asked, most)
    search.open_capture()
    search.feed(pcap(frames_of(segments), 1, nanoseconds=True))
    return search


def pieces_of(search: HoleBytes) -> list[tuple[int, int, bytes]]:
    pieces, data, _ = search.found()
    rows = struct.iter_unpack("=6q", pieces)
    return [(which, begin, data[at : at + num]) for which, begin, num, at, _, _ in rows]


@pytest.fixture(name="segment")
def one_segment() -> Segment:
    return next(each for each in read(PATH)[1] if len(each.payload) > 40)


def moved(segment: Segment, seq: int) -> Segment:
    return replace(segment.again(segment.payload, seq), frame=1)


@pytest.mark.parametrize("seq", [0, 1000, 2**31 - 5, 2**32 - 1, 2**32 - 20])
@pytest.mark.parametrize(("begin", "num"), [(0, 40), (5, 10), (-7, 20), (30, 4000), (-50, 4000)])
def test_a_hole_gets_what_a_segment_has_of_it(segment: Segment, seq: int, begin: int, num: int) -> None:
    search = found([moved(segment, seq)], wanted(segment, seq + begin, num))
    payload = segment.payload[max(begin, 0) : begin + num]
    assert pieces_of(search) == [(0, max(-begin, 0), payload)]


@pytest.mark.parametrize(("begin", "num"), [(-20, 20), (5000, 10)])
def test_what_lies_beside_is_left(segment: Segment, begin: int, num: int) -> None:
    assert pieces_of(found([moved(segment, 7)], wanted(segment, 7 + begin, num))) == []


def test_a_segment_fills_several_holes_around_zero(segment: Segment) -> None:
    seq = 2**32 - 10
    told = [wanted(segment, seq + at, 3) for at in (2, 9, 20)]
    told.sort(key=lambda row: struct.unpack("=5q", row))
    rows = pieces_of(found([moved(segment, seq)], b"".join(told)))
    assert sorted(data for _, _, data in rows) == sorted(segment.payload[at : at + 3] for at in (2, 9, 20))


def test_other_times_are_of_another_connection(segment: Segment) -> None:
    early = segment.time_ns - 1
    assert pieces_of(found([moved(segment, 7)], wanted(segment, 7, 10, (0, early)))) == []
    assert pieces_of(found([moved(segment, 7)], wanted(segment, 7, 10, (0, early + 1))))


def test_memory_is_bounded(segment: Segment) -> None:
    search = found([moved(segment, 7)], wanted(segment, 7, 40), most=20)
    assert search.is_full
    assert pieces_of(search) == []


def test_the_highest_acknowledgement_is_told(segment: Segment) -> None:
    back = way(*map(number, segment.ends[::-1]))
    acks = [2**32 - 3, 5, 2**32 - 9]
    segments = [replace(segment.acknowledging(ack), frame=n) for n, ack in enumerate(acks, 1)]
    told = found(segments, b"", struct.pack("=Q", back)).found()[2]
    assert struct.unpack("=3Q", told) == (back, 1, 5)


def test_what_is_not_a_capture_raises(tmp_path: Path) -> None:
    search = HoleBytes(b"", b"", 10)
    with pytest.raises(ValueError, match="no capture is open"):
        search.feed(b"")
    search.open_capture()
    with pytest.raises(CaptureError):
        search.feed(bytes(100))
