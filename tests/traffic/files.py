"""Capture files written by hand: pcap (as libpcap writes it) and pcapng (as its Internet draft has it)."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.traffic.links import LINKS, PLAIN, IpStyle, Link
from tests.traffic.tcp import Packet
from tests.traffic.truth import Clock, microseconds


@dataclass(frozen=True, slots=True)
class Frame:
    """One captured frame; ``data`` may be shorter than ``length``, the size it had on the wire."""

    time_ns: int
    data: bytes
    length: int


def frames(
    packets: Iterable[Packet], link: Link = LINKS["ethernet"], style: IpStyle = PLAIN, snaplen: int = 262_144
) -> list[Frame]:
    out = []
    for packet in packets:
        data = link.frame(packet, style)
        out.append(Frame(packet.time_ns, data[:snaplen], len(data)))
    return out


def pcap(
    rows: Iterable[Frame],
    link: int = 1,
    *,
    big: bool = False,
    nanoseconds: bool = False,
    snaplen: int = 262_144,
) -> bytes:
    """The classic format, magic a1b2c3d4 (µs) or a1b23c4d (ns)."""
    order = ">" if big else "<"
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, link)]
    for row in rows:
        seconds, rest = divmod(row.time_ns, 10**9)
        part = rest if nanoseconds else rest // 1000
        out += [struct.pack(order + "IIII", seconds, part, len(row.data), row.length), row.data]
    return b"".join(out)


@dataclass(frozen=True, slots=True)
class Resolution:
    """if_tsresol and if_tsoffset of an interface."""

    code: int | None = None  # None: option absent, microseconds
    offset_s: int = 0

    @property
    def per_second(self) -> int:
        if self.code is None:
            return 10**6
        return 1 << (self.code & 0x7F) if self.code & 0x80 else int(10**self.code)

    def ticks(self, time_ns: int) -> int:
        return (time_ns - self.offset_s * 10**9) * self.per_second // 10**9

    def clock(self, time_ns: int) -> int:
        """The time that is left after one way into the file and back."""
        return self.ticks(time_ns) * 10**9 // self.per_second + self.offset_s * 10**9


def option(order: str, code: int, value: bytes) -> bytes:
    """One option of a block."""
    return struct.pack(order + "HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def block(order: str, kind: int, body: bytes) -> bytes:
    """One block, padded."""
    body += b"\0" * (-len(body) % 4)
    total = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + total + body + total


def pcapng(
    rows: Sequence[Frame],
    link: int = 1,
    *,
    big: bool = False,
    resolutions: Sequence[Resolution] = (Resolution(),),
    simple: bool = False,
    noise: bool = False,
    custom: bool = False,
    snaplen: int = 0,
) -> bytes:
    """One section. Frames go round the interfaces, one per entry of ``resolutions``. ``simple`` writes simple
    packet blocks (no time); ``noise`` puts blocks between the packets that a reader must step over;
    ``custom`` does so with custom blocks, which Wireshark counts as frames."""
    order = ">" if big else "<"
    end = struct.pack(order + "HH", 0, 0)
    out = [block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for index, resolution in enumerate(resolutions):
        options = option(order, 2, f"eth{index}".encode())
        if resolution.code is not None:
            options += option(order, 9, bytes([resolution.code]))
        if resolution.offset_s:
            options += option(order, 14, struct.pack(order + "q", resolution.offset_s))
        out.append(block(order, 1, struct.pack(order + "HHI", link, 0, snaplen) + options + end))
    for index, row in enumerate(rows):
        if noise:
            out += _noise(order, index)
        if custom:
            out.append(block(order, 0x0BAD, struct.pack(order + "I", 32_473) + b"custom data"))
        if simple:
            out.append(block(order, 3, struct.pack(order + "I", row.length) + row.data))
            continue
        interface = index % len(resolutions)
        ticks = resolutions[interface].ticks(row.time_ns)
        head = struct.pack(
            order + "IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(row.data), row.length
        )
        data = row.data + b"\0" * (-len(row.data) % 4)
        options = option(order, 2, struct.pack(order + "I", 1)) + end if noise else b""
        out.append(block(order, 6, head + data + options))
    if noise:
        counters = option(order, 4, struct.pack(order + "Q", len(rows)))
        counters += option(order, 5, struct.pack(order + "Q", 0)) + end
        out.append(block(order, 5, struct.pack(order + "III", 0, 0, 0) + counters))
    return b"".join(out)


def _noise(order: str, index: int) -> list[bytes]:
    """Blocks that hold no packet: names, secrets, and one of an unknown type."""
    name = b"\x0a\x01\x00\x5cbroker-1\0"
    record = struct.pack(order + "HH", 1, len(name)) + name + b"\0" * (-len(name) % 4)
    names = block(order, 4, record + struct.pack(order + "HH", 0, 0))
    secrets = block(order, 0x0A, struct.pack(order + "II", 0x544C534B, 4) + b"none")
    unknown = block(order, 0x0000F00D, bytes(index % 9))
    return [[names], [secrets, secrets], [unknown], []][index % 4]


@dataclass(frozen=True, slots=True)
class Format:
    """A way to write a capture and what it leaves of the times."""

    write: Callable[[Sequence[Frame], int], bytes]
    clock: Clock = microseconds
    timed: bool = True


def exact(time_ns: int) -> int:
    return time_ns


_HALF_MICRO = Resolution(0x80 | 21)
_SHIFTED = Resolution(9, offset_s=1_600_000_000)

FORMATS: Mapping[str, Format] = {
    "pcap_us_little": Format(pcap),
    "pcap_us_big": Format(lambda rows, link: pcap(rows, link, big=True)),
    "pcap_ns_little": Format(lambda rows, link: pcap(rows, link, nanoseconds=True), exact),
    "pcap_ns_big": Format(lambda rows, link: pcap(rows, link, big=True, nanoseconds=True), exact),
    "pcapng_little": Format(pcapng),
    "pcapng_big": Format(lambda rows, link: pcapng(rows, link, big=True)),
    "pcapng_ns": Format(lambda rows, link: pcapng(rows, link, resolutions=[Resolution(9)]), exact),
    "pcapng_binary_resolution": Format(
        lambda rows, link: pcapng(rows, link, resolutions=[_HALF_MICRO]), _HALF_MICRO.clock
    ),
    "pcapng_time_offset": Format(lambda rows, link: pcapng(rows, link, resolutions=[_SHIFTED]), exact),
    "pcapng_three_interfaces": Format(
        lambda rows, link: pcapng(rows, link, resolutions=[Resolution(9), Resolution(9), _SHIFTED]), exact
    ),
    "pcapng_other_blocks": Format(lambda rows, link: pcapng(rows, link, noise=True)),
    "pcapng_other_blocks_big": Format(lambda rows, link: pcapng(rows, link, noise=True, big=True)),
    "pcapng_simple_packets": Format(lambda rows, link: pcapng(rows, link, simple=True), timed=False),
    "pcapng_two_sections": Format(
        lambda rows, link: (
            pcapng(rows[: len(rows) // 2], link) + pcapng(rows[len(rows) // 2 :], link, big=True)
        )
    ),
}


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def read_frames(data: bytes) -> tuple[int, list[Frame]]:
    """Link type and frames of a classic little-endian pcap, in micro- or nanoseconds."""
    magic, link = struct.unpack_from("<I", data)[0], struct.unpack_from("<I", data, 20)[0]
    unit = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}[magic]
    found = []
    at = 24
    while at < len(data):
        seconds, part, size, length = struct.unpack_from("<IIII", data, at)
        found.append(Frame(seconds * 10**9 + part * unit, data[at + 16 : at + 16 + size], length))
        at += 16 + size
    return link, found
