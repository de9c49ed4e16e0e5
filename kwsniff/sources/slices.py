"""Selected packets of captures as one pcapng file, with unchanged bytes, link types and times.

    section | (secrets) | interface, packet, packet, interface, ...

The core's reader finds the records; a packet keeps its interface's time unit, and gets a comment with its
content. Source: draft-ietf-opsawg-pcapng.
"""

import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Final, NamedTuple

from kwsniff.core.capture.packet_offsets import PacketPlaces
from kwsniff.sources.files import CaptureFile

SECTION, INTERFACE, OLD_PACKET, SIMPLE_PACKET, ENHANCED_PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_SECRETS: Final = 10
_TLS_KEY_LOG: Final = 0x544C534B
_COMMENT: Final = 1
_RESOLUTION, _FRAME_CHECK, _TIME_OFFSET = 9, 13, 14
_SWAPPED: Final = {
    (INTERFACE, 8): "Q", (INTERFACE, 10): "I", (INTERFACE, _TIME_OFFSET): "q",
    (ENHANCED_PACKET, 2): "I", (ENHANCED_PACKET, 4): "Q", (ENHANCED_PACKET, 5): "Q",
    (ENHANCED_PACKET, 6): "I",
}  # fmt: skip
"""Options with a number, which is converted from the capture's byte order."""
_PLACE: Final = struct.Struct("=8q")
_BLOCK: Final = struct.Struct("=3q")
_SYN: Final = 2
_SIMPLE_HEADER, _ENHANCED_HEADER = 12, 28
_LARGEST: Final = (1 << 63) - 1
_FRAGMENTS: Final = 256
"""Maximum distance in packets from a datagram's first fragments to the one that completes it."""


class Place(NamedTuple):
    """A packet, from PacketPlaces."""

    offset: int
    size: int
    frame: int
    connection: int
    sender: int
    payload: int
    flags: int
    time: int


@dataclass(slots=True)
class Wanted:
    """The selected packets of one capture."""

    everything: bool = False
    connections: set[int] = field(default_factory=set)
    frames: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """Connection and sender (0: both) -> first and last frames."""
    times: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """Connection -> first and last times of all its packets."""
    single: set[int] = field(default_factory=set)
    """Single frames."""
    handshakes: bool = False
    comments: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Frame -> its comment."""

    @property
    def is_empty(self) -> bool:
        """Whether no packet can match."""
        return not (self.everything or self.connections or self.single)


class _Chooser:
    """Decides for packets in order whether they are selected."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._frames = {key: _merge(spans) for key, spans in wanted.frames.items()}
        self._times = {key: _merge(spans) for key, spans in wanted.times.items()}
        self._any = _merge(
            (first - _FRAGMENTS, last) for spans in wanted.frames.values() for first, last in spans
        )
        self._greeting: set[int] = set()

    def takes(self, place: Place) -> bool:
        wanted, connection = self._wanted, place.connection
        if wanted.everything or place.frame in wanted.single:
            return True
        if not connection:  # a fragment
            return _lies_in(place.frame, self._any)
        return (
            (wanted.handshakes and self._greets(place))
            or _lies_in(place.frame, self._frames.get((connection, 0), ()))
            or (
                bool(place.payload)
                and _lies_in(place.frame, self._frames.get((connection, place.sender), ()))
            )
            or _lies_in(place.time, self._times.get(connection, ()))
        )

    def _greets(self, place: Place) -> bool:
        """SYN, SYN-ACK, and the next packet."""
        if place.flags & _SYN:
            self._greeting.add(place.connection)
            return True
        if place.connection in self._greeting:
            self._greeting.discard(place.connection)
            return True
        return False


def _merge(spans: Iterable[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return merged


def _lies_in(number: int, spans: Sequence[tuple[int, int]]) -> bool:
    at = bisect_right(spans, (number, _LARGEST))
    return at > 0 and number <= spans[at - 1][1]


class SliceWriter:
    """Writes a pcapng file, capture by capture."""

    def __init__(self, out: IO[bytes]) -> None:
        self.packets = 0
        self.timeless = 0
        """Packets without a time in the capture that had to be written as of 1970-01-01."""
        self.frame = 0
        """Number of the current packet in its capture."""
        self._out = out
        self._interfaces: dict[bytes, int] = {}
        self._snaplen = 0
        """Of the first interface."""
        section = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + _option(4, b"kwsniff slice") + bytes(4)
        out.write(make_block(SECTION, section))

    def add_secrets(self, data: bytes) -> None:
        """Writes a key log (SSLKEYLOGFILE) for the following packets."""
        self._out.write(secrets_block(data))

    def interface(self, body: bytes) -> int:
        """The number of an interface, which is written once."""
        if body not in self._interfaces:
            if not self._interfaces:
                (self._snaplen,) = struct.unpack_from("<I", body, 4)
            self._interfaces[body] = len(self._interfaces)
            self._out.write(make_block(INTERFACE, body))
        return self._interfaces[body]

    def packet(self, interface: int, ticks: int | None, data: bytes, length: int, options: bytes) -> int:
        """Writes a packet; `ticks` in its interface's unit, None without a time. Returns the size of what is
        before the packet's bytes."""
        self.packets += 1
        if ticks is None and not options and self._fits_simple(interface, len(data), length):
            self._out.write(make_block(SIMPLE_PACKET, struct.pack("<I", length) + data))
            return _SIMPLE_HEADER
        if ticks is None:
            self.timeless += 1
            ticks = 0
        head = struct.pack("<IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(data), length)
        body = head + data + bytes(-len(data) % 4) + (options + bytes(4) if options else b"")
        self._out.write(make_block(ENHANCED_PACKET, body))
        return _ENHANCED_HEADER

    def _fits_simple(self, interface: int, size: int, length: int) -> bool:
        """Whether a Simple Packet Block can say this: it has the first interface, and no size but that."""
        return interface == 0 and size == min(length, self._snaplen or length)


def copy_packets(
    name: str,
    wanted: Wanted,
    out: SliceWriter,
    *,
    since: int | None,
    until: int | None,
    secrets: bool = False,
) -> None:
    """Copies the selected packets of one capture; with `secrets`, also its secrets blocks.

    Raises CaptureError for a file that is not a capture."""
    numbers = struct.pack(f"={len(wanted.connections)}q", *wanted.connections)
    every = wanted.everything or bool(wanted.single)
    places = PacketPlaces(None if every else numbers, since=since, until=until)
    chooser, reader = _Chooser(wanted), _Reader(out)
    rest = bytearray()
    with CaptureFile(name) as capture:
        for buffer in capture.readable():
            rest += buffer
            used, packets, blocks = places.feed(rest)
            for place in _in_order(packets, blocks):
                if len(place) == _BLOCK.size // 8:
                    offset, size, kind = place
                    reader.take_block(kind, bytes(rest[offset : offset + size]), secrets=secrets)
                elif chooser.takes(packet := Place(*place)):
                    out.frame = packet.frame
                    record = bytes(rest[packet.offset : packet.offset + packet.size])
                    reader.take_packet(record, wanted.comments.get(packet.frame, ()))
            del rest[:used]
            if places.stopped:
                break


def _in_order(packets: bytes, blocks: bytes) -> Iterator[tuple[int, ...]]:
    others = [*_BLOCK.iter_unpack(blocks)]
    if not others:
        yield from _PLACE.iter_unpack(packets)
    else:
        yield from sorted((*others, *_PLACE.iter_unpack(packets)))


class _Reader:
    """The records of one capture, as the packets of a slice."""

    def __init__(self, out: SliceWriter) -> None:
        self._out = out
        self._order = "<"
        self._blocks = True
        self._header = 16
        self._bodies: list[bytes] = []
        """Interfaces of the section, as written."""

    def take_block(self, kind: int, data: bytes, *, secrets: bool) -> None:
        if kind == SECTION and data[:4] == b"\x0a\x0d\x0d\x0a":
            self._order = "<" if data[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
            self._bodies = []
        elif kind == SECTION:
            self._take_file_header(data)
        elif kind == INTERFACE:
            link, _, snaplen = struct.unpack_from(self._order + "HHI", data, 8)
            options = _options(INTERFACE, data[16:-4], self._order)
            self._bodies.append(
                struct.pack("<HHI", link, 0, snaplen) + options + (bytes(4) if options else b"")
            )
        elif secrets:
            what, size = struct.unpack_from(self._order + "II", data, 8)
            if what == _TLS_KEY_LOG:
                self._out.add_secrets(data[16 : 16 + size])

    def take_packet(self, data: bytes, comments: Sequence[str]) -> None:
        options = b"".join(_option(_COMMENT, text.encode("utf-8", "replace")) for text in comments)
        order, ticks = self._order, None
        if not self._blocks:
            seconds, fraction, size, length = struct.unpack_from(order + "IIII", data)
            number, at = 0, self._header
            # A fraction of more than a second tells no time.
            ticks = seconds * self._unit + fraction if fraction < self._unit else None
        else:
            (kind,) = struct.unpack_from(order + "I", data)
            if kind == SIMPLE_PACKET:
                (length,) = struct.unpack_from(order + "I", data, 8)
                number, ticks, at, size = 0, None, _SIMPLE_HEADER, min(length, len(data) - 16)
                (snaplen,) = struct.unpack_from("<I", self._bodies[0], 4) if self._bodies else (0,)
                size = min(size, snaplen) if snaplen else size
            elif kind in (ENHANCED_PACKET, OLD_PACKET):
                layout = "IIIII" if kind == ENHANCED_PACKET else "HxxIIII"
                number, high, low, size, length = struct.unpack_from(order + layout, data, 8)
                ticks, at = high << 32 | low, _ENHANCED_HEADER
            else:
                return
            if number >= len(self._bodies):
                return
            if kind == ENHANCED_PACKET:
                options = _options(kind, data[28 + size + -size % 4 : -4], order) + options
        size = min(size, len(data) - at)
        self._out.packet(
            self._out.interface(self._bodies[number]), ticks, data[at : at + size], max(length, size), options
        )

    def _take_file_header(self, data: bytes) -> None:
        self._order = ">" if data[0] == 0xA1 else "<"
        magic, _, _, _, _, snaplen, link = struct.unpack_from(self._order + "IHHiIII", data)
        self._blocks = False
        self._header = 24 if magic == 0xA1B2CD34 else 16
        nanoseconds = magic == 0xA1B23C4D
        self._unit = 10**9 if nanoseconds else 10**6
        options = _option(_RESOLUTION, b"\x09") if nanoseconds else b""
        if link & 0x0400_0000:  # length of the frame check sequence in 16-bit words
            options += _option(_FRAME_CHECK, bytes([(link >> 28) * 2]))
        body = struct.pack("<HHI", link & 0xFFFF, 0, snaplen) + options + (bytes(4) if options else b"")
        self._bodies = [body]


def _options(kind: int, data: bytes, order: str) -> bytes:
    """Options unchanged, numbers in little-endian; without the end-of-options marker."""
    out, at = b"", 0
    while at + 4 <= len(data):
        code, size = struct.unpack_from(order + "HH", data, at)
        value = data[at + 4 : at + 4 + size]
        if code == 0 or len(value) < size:
            break
        form = _SWAPPED.get((kind, code))
        if form and order == ">" and size == struct.calcsize(form):
            value = struct.pack("<" + form, *struct.unpack(">" + form, value))
        out += _option(code, value)
        at += 4 + size + -size % 4
    return out


def secrets_block(data: bytes) -> bytes:
    """A key log (SSLKEYLOGFILE) as a Decryption Secrets Block."""
    return make_block(_SECRETS, struct.pack("<II", _TLS_KEY_LOG, len(data)) + data)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value[:65_535])) + value[:65_535] + bytes(-len(value[:65_535]) % 4)


def make_block(kind: int, body: bytes) -> bytes:
    """A block of pcapng, in little-endian order."""
    body += bytes(-len(body) % 4)
    total = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + total + body + total
