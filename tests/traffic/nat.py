"""A recorded capture with what a second tap behind NAT would have added."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.pipeline.segments import ACK, SYN, Segment, conversations, frames_of, read
from tests.traffic.files import pcap


def with_nat_twin(path: Path, *, later_ns: int = 40_000) -> bytes:
    """Every conversation a second time, under another client address, this much later."""
    link, segments = read(path)
    twice = [*segments]
    for talk in conversations(segments):
        twice += _moved(talk, later_ns)
    twice.sort(key=lambda segment: segment.time_ns)
    numbered = (replace(segment, frame=number) for number, segment in enumerate(twice, 1))
    return pcap(frames_of(numbered), link, nanoseconds=True)


def without_twin(path: Path) -> bytes:
    """The TCP segments of the capture alone, as `with_nat_twin` has them."""
    link, segments = read(path)
    numbered = (replace(segment, frame=number) for number, segment in enumerate(segments, 1))
    return pcap(frames_of(numbered), link, nanoseconds=True)


def _moved(talk: list[Segment], later_ns: int) -> list[Segment]:
    client = next((s.ends[0] for s in talk if s.flags & (SYN | ACK) == SYN), talk[0].ends[0])
    return [*_renamed(talk, client, later_ns)]


def _renamed(talk: list[Segment], client: bytes, later_ns: int) -> Iterator[Segment]:
    """IPv4: the client's address becomes one of 198.18.0.0/15 (RFC 2544)."""
    for segment in talk:
        at = segment.ip_at + (12 if segment.ends[0] == client else 16)
        head = segment.head[:at] + bytes([198, 18]) + segment.head[at + 2 : at + 4] + segment.head[at + 4 :]
        yield replace(segment, head=head, time_ns=segment.time_ns + later_ns)
