"""Captures as one pcapng file without names.

    1. every packet with its headers rewritten and its payload zero          -> packets
       its TCP payload as captured, and where it is                          -> payload, rows
    2. every message with its names replaced                                 -> all packets with its bytes
    3. TCP checksums; then the packets are the output, which ends as the captures do

A byte of payload is written only where the captured one is that of a message at the same place of the stream.
So retransmissions get what the first transmission got, and what no message explains stays zero.
"""

import os
import shutil
import struct
from collections import OrderedDict
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import IO, Final, NamedTuple

import numpy as np

from kwsniff.anonymize.checksums import transport_checksum
from kwsniff.anonymize.packets import Packets, Segment
from kwsniff.sources.slices import ENHANCED_PACKET, SliceWriter, make_block

_SYN: Final = 2
_TCP: Final = 6
_ROW: Final = np.dtype(
    [(name, "<i8") for name in (
        "capture", "frame", "stream", "seq", "flags", "packet", "ip", "tcp", "payload", "size", "whole",
        "kept", "datagram",
    )]
)  # fmt: skip
_MOST_BASES: Final = 65_536
_LEAST_FOUND: Final = 8
_MOST_TRIED: Final = 64
_RESOLUTION, _OFFSET, _FRAME_CHECK = 9, 14, 13
_FLAGS, _DROPPED = 2, 4
_STATISTICS, _DROPPED_BY_SYSTEM, _LEAST_BLOCK = 5, 7, 32

End = tuple[bytes, int]
"""Address of 16 bytes, and port."""


class Place(NamedTuple):
    """Where a message begins: capture and frame of its first byte, and its position in the stream."""

    source: End
    target: End
    connection: int
    direction: int
    capture: int
    frame: int
    offset: int


class RewrittenPackets(SliceWriter):
    """Writes packets with rewritten headers and without payload, and keeps their payload for ``Streams``."""

    def __init__(self, out: IO[bytes], packets: Packets, payload: IO[bytes], rows: IO[bytes]) -> None:
        super().__init__(out)
        self.capture = 0
        """Number of the capture that is read."""
        self._packets = packets
        self._payload = payload
        self._rows = rows
        self._kept = 0
        self._links: list[int] = []
        self.streams: dict[tuple[End, End], int] = {}
        """Source and target -> number."""
        self.blanked = 0
        """Packets without a TCP segment that is understood."""

    def interface(self, body: bytes) -> int:
        """The number of an interface; of its options only those that say how packets are read are kept."""
        number = super().interface(body[:8] + _choose(body[8:], (_RESOLUTION, _OFFSET, _FRAME_CHECK)))
        if number == len(self._links):
            self._links.append(struct.unpack_from("<H", body)[0])
        return number

    def add_secrets(self, data: bytes) -> None:
        """Secrets are never passed on."""

    def packet(self, interface: int, ticks: int | None, data: bytes, length: int, options: bytes) -> int:
        """Writes a packet without names; see SliceWriter."""
        new, segment = self._packets.rewrite(self._links[interface], data)
        kept = _choose(options, (_FLAGS, _DROPPED))
        begin = self._out.tell()
        header = super().packet(interface, ticks, bytes(new), length, kept[:-4] if kept else b"")
        if segment is None:
            self.blanked += 1
        else:
            self._note(segment, begin + header, data)
        return header

    def end(self, dropped: int | None, broken: Container[str]) -> None:
        """Ends the file. `dropped`: packets that the capturing systems lost. `broken`: the file is
        cut off inside a block (truncated), or has one of an impossible size (damaged), like a capture."""
        self._out.seek(0, os.SEEK_END)
        if dropped is not None and self._links:
            counted = struct.pack("<IIIHHQI", 0, 0, 0, _DROPPED_BY_SYSTEM, 8, dropped, 0)
            self._out.write(make_block(_STATISTICS, counted))
        if broken:
            self._out.write(struct.pack("<II", ENHANCED_PACKET, 0 if "damaged" in broken else _LEAST_BLOCK))

    def _note(self, segment: Segment, packet: int, data: bytes) -> None:
        ends = segment.source, segment.target
        stream = self.streams.setdefault(ends, len(self.streams))
        seq = segment.seq + bool(segment.flags & _SYN)
        row = (
            self.capture, self.frame, stream, seq, segment.flags, packet, segment.ip, segment.tcp,
            segment.payload, segment.size, segment.whole, self._kept, segment.datagram,
        )  # fmt: skip
        self._rows.write(struct.pack("<13q", *row))
        self._payload.write(data[segment.payload : segment.payload + segment.size])
        self._kept += segment.size


class Streams:
    """Where the bytes of TCP streams are in the packets, and writes new ones there."""

    def __init__(
        self, packets: IO[bytes], payload: Path, rows: Path, numbers: dict[tuple[End, End], int]
    ) -> None:
        self._packets = packets
        self._payload = payload.open("rb")
        self.numbers = numbers
        self.rows = np.memmap(rows, _ROW, "r") if rows.stat().st_size else np.empty(0, _ROW)
        self._by_frame = self.rows["capture"] << 40 | self.rows["frame"]
        self._opposites = {
            number: numbers[target, source]
            for (source, target), number in numbers.items()
            if (target, source) in numbers
        }
        self._arrange()
        self._bases: OrderedDict[tuple[int, int], int] = OrderedDict()

    def close(self) -> None:
        """Closes the payload."""
        self._payload.close()

    def _arrange(self) -> None:
        """Positions within each stream, from sequence numbers that wrap; rows by stream and position."""
        rows = self.rows
        order = np.argsort(rows["stream"], kind="stable")
        streams = rows["stream"][order]
        steps = np.diff(rows["seq"][order], prepend=0).astype(np.int64).astype(np.uint32).astype(np.int32)
        firsts = np.flatnonzero(np.diff(streams, prepend=-1))
        steps = steps.astype(np.int64)
        steps[firsts] = 0
        positions = np.empty(len(rows), np.int64)
        positions[order] = np.cumsum(steps)
        # Streams are kept apart by their number; positions may be negative within one.
        self.positions = positions
        self._order = np.lexsort((positions, rows["stream"]))
        self._sorted = positions[self._order]
        self._begins = np.searchsorted(rows["stream"][self._order], np.arange(len(self.numbers) + 1))
        self._largest = int(rows["size"].max()) if len(rows) else 0

    def write(self, place: Place, old: bytes, new: bytes) -> tuple[int, int] | None:
        """Writes a message's bytes. Returns its stream and its position there, None if it was not found."""
        stream = self.numbers.get((place.source, place.target))
        position = None if stream is None else self._locate(stream, place, old)
        if stream is None or position is None:
            return None
        self.write_at(stream, position, old, new)
        return stream, position

    def start(self, stream: int) -> int | None:
        """The position of a stream's first byte that was captured, None if there are none."""
        rows = self.rows_of(stream)
        with_bytes = rows[self.rows["size"][rows] > 0]
        return int(self.positions[with_bytes[0]]) if len(with_bytes) else None

    def rows_of(self, stream: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """A stream's rows, by position."""
        return self._order[int(self._begins[stream]) : int(self._begins[stream + 1])]

    def opposite(self, stream: int) -> int | None:
        """The stream of the other direction, None if it has no packets."""
        return self._opposites.get(stream)

    def next_start(self, stream: int, position: int, end: int) -> int:
        """Where the next captured bytes begin behind a missing one; `end` if nothing follows."""
        low, high = int(self._begins[stream]), int(self._begins[stream + 1])
        at = low + int(np.searchsorted(self._sorted[low:high], position, "right"))
        return min(int(self._sorted[at]), end) if at < high else end

    def read_bytes(self, stream: int, position: int, size: int) -> bytes:
        """The bytes of a stream from a position on, up to `size` and the first missing one."""
        out = bytearray()
        for row in self._rows_of(stream, position, size):
            begin, at = int(self.positions[row]), position + len(out)
            if begin > at:
                break
            out += self.read(row)[at - begin : at - begin + size - len(out)]
            if len(out) == size:
                break
        return bytes(out)

    def _rows_of(self, stream: int, position: int, size: int) -> list[int]:
        """Rows that may have some of these bytes, by position."""
        low, high = int(self._begins[stream]), int(self._begins[stream + 1])
        within = self._sorted[low:high]
        first = low + int(np.searchsorted(within, position - self._largest))
        last = low + int(np.searchsorted(within, position + size))
        rows = self._order[first:last]
        found: list[int] = rows[self.positions[rows] + self.rows["size"][rows] > position].tolist()
        return found

    def _locate(self, stream: int, place: Place, old: bytes) -> int | None:
        of = place.connection, place.direction
        base = self._bases.get(of)
        if base is not None and self._is_at(stream, base + place.offset, old):
            return base + place.offset
        position = self._search(stream, place, old)
        if position is not None:
            self._bases[of] = position - place.offset
            self._bases.move_to_end(of)
            if len(self._bases) > _MOST_BASES:
                self._bases.popitem(last=False)
        return position

    def _search(self, stream: int, place: Place, old: bytes) -> int | None:
        """In the packet of its first byte; or, if that completed a datagram in fragments, at its offset."""
        start = self.start(stream)
        if start is not None and self._is_at(stream, start + place.offset, old):
            return start + place.offset
        number = place.capture << 40 | place.frame
        first, end = np.searchsorted(self._by_frame, (number, number + 1))
        for row in range(int(first), int(end)):
            if self.rows["stream"][row] == stream:
                for at in _find(self.read(row), old):
                    position = int(self.positions[row]) + at
                    if self._is_at(stream, position, old):
                        return position
        return None

    def _is_at(self, stream: int, position: int, old: bytes) -> bool:
        """Whether a message is there, as far as it was captured in one piece."""
        found = self.read_bytes(stream, position, len(old))
        return len(found) >= min(len(old), _LEAST_FOUND) and old.startswith(found)

    def write_at(self, stream: int, position: int, old: bytes, new: bytes) -> None:
        """Writes to all packets with these bytes of a stream, as far as they are the same."""
        for row in self._rows_of(stream, position, len(old)):
            begin, size = int(self.positions[row]), int(self.rows["size"][row])
            start, end = max(position, begin), min(position + len(old), begin + size)
            if start >= end:
                continue
            captured = self.read(row)[start - begin : end - begin]
            if captured == old[start - position : end - position]:
                self._packets.seek(int(self.rows["packet"][row] + self.rows["payload"][row]) + start - begin)
                self._packets.write(new[start - position : end - position])

    def read(self, row: int) -> bytes:
        """A row's payload."""
        return os.pread(self._payload.fileno(), int(self.rows["size"][row]), int(self.rows["kept"][row]))

    def sign(self) -> None:
        """Writes the checksums of all TCP segments; 0 where not all their bytes were captured."""
        for row in self.rows[(self.rows["tcp"] >= 0) & (self.rows["datagram"] == 0)]:
            self._sign([row] if row["whole"] else [], row)
        fragments = self.rows[self.rows["datagram"] > 0]
        fragments = fragments[np.argsort(fragments["datagram"], kind="stable")]
        begins = np.flatnonzero(np.diff(fragments["datagram"], prepend=0))
        for first, *others in np.split(fragments, begins[1:]) if len(fragments) else ():
            self._sign(_join_fragments(first, others), first)

    def _sign(self, parts: "Sequence[np.void]", first: "np.void") -> None:
        """Writes the checksum over the first part's TCP header and all payload; `parts`: none without all."""
        tcp, begin = int(first["tcp"]), int(first["packet"])
        value = 0
        if parts:
            ip = int(first["ip"])
            head, *rest = (self._read_packet(row) for row in parts)
            whole = head + b"".join(rest[at][int(row["payload"]) :] for at, row in enumerate(parts[1:]))
            value = transport_checksum(whole, ip, tcp, len(whole), _TCP)
        self._packets.seek(begin + tcp + 16)
        self._packets.write(struct.pack(">H", value))

    def _read_packet(self, row: "np.void") -> bytes:
        """A packet up to the end of its payload."""
        self._packets.seek(int(row["packet"]))
        return self._packets.read(int(row["payload"] + row["size"]))


def _join_fragments(first: "np.void", others: "Sequence[np.void]") -> "Sequence[np.void]":
    """The fragments of a datagram in their order; none if one is missing, or is there twice."""
    begin = int(first["seq"])
    parts = sorted((first, *others), key=lambda row: int(row["seq"]) - begin & 0xFFFFFFFF)
    for row in parts:
        if int(row["seq"]) - begin & 0xFFFFFFFF:
            return ()
        begin += int(row["size"])
    return parts if parts[-1]["whole"] else ()


def _find(data: bytes, old: bytes) -> Iterator[int]:
    """Where a message may begin in a segment's payload, which may end before it."""
    start = old[:_LEAST_FOUND]
    at = data.find(start)
    for _ in range(_MOST_TRIED):
        if at < 0:
            break
        yield at
        at = data.find(start, at + 1)
    for size in range(min(len(start) - 1, len(data)), 0, -1):
        if data.endswith(start[:size]):
            yield len(data) - size


def _choose(options: bytes, codes: Sequence[int]) -> bytes:
    """Some of a block's options, with the end-of-options marker."""
    out, at = b"", 0
    while at + 4 <= len(options):
        code, size = struct.unpack_from("<HH", options, at)
        if code == 0:
            break
        if code in codes:
            out += options[at : at + 4 + size + -size % 4]
        at += 4 + size + -size % 4
    return out + bytes(4) if out else b""


def copy_out(packets: IO[bytes], file: IO[bytes]) -> None:
    """The finished packets to the output."""
    packets.seek(0)
    shutil.copyfileobj(packets, file, 1 << 20)
