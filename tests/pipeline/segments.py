"""Recorded captures as TCP segments that can be taken out, cut and added to, without kwsniff's help."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from scapy.utils import RawPcapNgReader, RawPcapReader

from tests.traffic.files import Frame

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
_LINK_BYTES = {1: 14, 101: 0, 113: 16, 276: 20}
NOTHING = bytes(12) + b"\x88\xb5" + bytes(46)
"""An Ethernet frame of an experimental type: takes the place of a packet."""


@dataclass(frozen=True)
class Segment:
    """One TCP segment; `head` is all in front of its TCP header."""

    time_ns: int
    frame: int
    head: bytes
    ip_at: int
    tcp: bytes
    payload: bytes
    ends: tuple[bytes, bytes]

    @cached_property
    def fields(self) -> tuple[int, ...]:
        return struct.unpack_from(">HHIIBB", self.tcp)

    @property
    def seq(self) -> int:
        return self.fields[2]

    @property
    def ack(self) -> int:
        return self.fields[3]

    @property
    def flags(self) -> int:
        return self.fields[5]

    @property
    def end(self) -> int:
        """The number behind it."""
        more = bool(self.flags & SYN) + bool(self.flags & FIN)
        return (self.seq + len(self.payload) + more) % 2**32

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """What it acknowledges selectively (RFC 2018 3)."""
        options = self.tcp[20:]
        while options and options[0]:
            size = options[1] if options[0] > 1 and len(options) > 1 else 1
            if options[0] == 5:
                edges = struct.unpack(f">{(size - 2) // 4}I", options[2:size])
                return list(zip(edges[::2], edges[1::2], strict=True))
            options = options[max(size, 1) :]
        return []

    def packet(self) -> bytes:
        head = bytearray(self.head)
        size = len(head) - self.ip_at + len(self.tcp) + len(self.payload)
        if head[self.ip_at] >> 4 == 4:
            struct.pack_into(">H", head, self.ip_at + 2, size)
        else:
            struct.pack_into(">H", head, self.ip_at + 4, size - 40)
        return bytes(head) + self.tcp + self.payload

    def again(self, payload: bytes, seq: int, flags: int | None = None) -> Segment:
        """The same with other payload at another number."""
        tcp = bytearray(self.tcp)
        struct.pack_into(">I", tcp, 4, seq % 2**32)
        if flags is not None:
            tcp[13] = flags
        return replace(self, tcp=bytes(tcp), payload=payload)

    def acknowledging(self, ack: int, *blocks: tuple[int, int]) -> Segment:
        """The same with this acknowledgement, and with these selective ones instead of its options."""
        edges = [edge % 2**32 for block in blocks for edge in block]
        options = struct.pack(f">BBBB{len(edges)}I", 1, 1, 5, 2 + 4 * len(edges), *edges) if blocks else b""
        tcp = bytearray(self.tcp[:20] + options)
        struct.pack_into(">I", tcp, 8, ack % 2**32)
        tcp[12] = len(tcp) // 4 << 4
        return replace(self, tcp=bytes(tcp))

    def bare(self, seq: int, ack: int, flags: int, payload: bytes = b"", window: int = 512) -> Segment:
        """Another one from the same sender, without options."""
        ports = struct.unpack_from(">HH", self.tcp)
        tcp = struct.pack(">HHIIBBHHH", *ports, seq % 2**32, ack % 2**32, 0x50, flags, window, 0, 0)
        return replace(self, tcp=tcp, payload=payload)


def ahead(to: int, since: int) -> int:
    """How far `to` is ahead of `since` (RFC 9293 3.4)."""
    return (to - since + 2**31) % 2**32 - 2**31


def read(path: Path) -> tuple[int, list[Segment]]:
    """The link type and the TCP segments of a capture, without those cut by a snaplen and fragments."""
    link, found = 1, []
    for number, (number_link, time_ns, data) in enumerate(_packets(path), 1):
        link = number_link
        segment = _dissect(link, time_ns, number, data)
        if segment is not None:
            found.append(segment)
    return link, found


def _packets(path: Path) -> Iterator[tuple[int, int, bytes]]:
    reader: Any
    with RawPcapReader(str(path)) as reader:
        if type(reader) is RawPcapNgReader:
            meta: Any
            for data, meta in reader:
                ticks = (meta.tshigh or 0) << 32 | (meta.tslow or 0)
                yield meta.linktype, ticks * 10**9 // meta.tsresol, data
            return
        for data, meta in reader:
            yield reader.linktype, meta.sec * 10**9 + meta.usec * (1 if reader.nano else 1000), data


def _dissect(link: int, time_ns: int, number: int, data: bytes) -> Segment | None:
    at = _LINK_BYTES[link]
    if len(data) < at + 40:
        return None
    if data[at] >> 4 == 4:
        total, word, protocol = (
            int.from_bytes(data[at + 2 : at + 4]),
            int.from_bytes(data[at + 6 : at + 8]),
            data[at + 9],
        )
        tcp_at, source, target = (
            at + 4 * (data[at] & 15),
            data[at + 12 : at + 16],
            data[at + 16 : at + 20],
        )
        if word & 0x3FFF:
            return None
    elif data[at] >> 4 == 6:
        total, protocol = 40 + int.from_bytes(data[at + 4 : at + 6]), data[at + 6]
        tcp_at, source, target = at + 40, data[at + 8 : at + 24], data[at + 24 : at + 40]
    else:
        return None
    if protocol != 6 or len(data) < at + total:
        return None
    payload_at = tcp_at + 4 * (data[tcp_at + 12] >> 4)
    ends = source + data[tcp_at : tcp_at + 2], target + data[tcp_at + 2 : tcp_at + 4]
    return Segment(
        time_ns, number, data[:tcp_at], at, data[tcp_at:payload_at], data[payload_at : at + total], ends
    )


def frames_of(segments: Iterable[Segment]) -> list[Frame]:
    """As a file has them; numbers that are left free are taken by frames that are not IP."""
    out: list[Frame] = []
    for segment in segments:
        while len(out) + 1 < segment.frame:
            out.append(Frame(segment.time_ns, NOTHING, len(NOTHING)))
        data = segment.packet()
        out.append(Frame(segment.time_ns, data, len(data)))
    return out


def conversations(segments: Iterable[Segment]) -> list[list[Segment]]:
    """The segments of each connection; a SYN under the same addresses and ports begins another."""
    known: dict[frozenset[bytes], list[Segment]] = {}
    out = []
    for segment in segments:
        key = frozenset(segment.ends)
        opens = segment.flags & (SYN | ACK) == SYN and not any(
            other.seq == segment.seq for other in known.get(key, ())
        )
        if key not in known or opens:
            known[key] = []
            out.append(known[key])
        known[key].append(segment)
    return out
