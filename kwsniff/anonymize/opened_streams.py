"""Opened TLS as plain TCP: each packet has the plaintext that it brought, and the size that it had.

Sequence numbers, acknowledgements and SACK blocks count plaintext from the initial sequence number on, which
stays. IP says how long the packet is now; zeros follow, like padding of the link layer. Packets of handshakes
have no payload. Connections that were not opened stay as they are, as do those in IP fragments.

Source: RFC 9293 3.4; RFC 2018; RFC 791; RFC 8200.
"""

import re
import struct
from itertools import pairwise
from pathlib import Path
from typing import IO, Final, NamedTuple

import numpy as np

from kwsniff.anonymize import tls
from kwsniff.anonymize.capture import Streams
from kwsniff.anonymize.checksums import checksum
from kwsniff.anonymize.courses import Course, longest_run
from kwsniff.anonymize.opened_records import OpenedRecord, OpenedRecords

_SYN, _ACK, _SACK, _NOP = 2, 16, 5, 1
_MOST_CLEAR: Final = 4096
"""Bytes before the first record: of a PROXY header, or of a tunnel through a proxy."""
_WINDOW: Final = 1 << 16
_LARGEST: Final = 0xFFFF
_HELLO: Final = re.compile(rb"\x16\x03[\x00-\x04]")
_HEADER: Final = re.compile(rb"[\x14-\x17]\x03[\x00-\x04]")


class _Part(NamedTuple):
    """One direction of one connection: positions, and its first and last row."""

    begin: int
    end: int
    first_row: int
    last_row: int
    course: Course

    def is_beside(self, other: "_Part") -> bool:
        """Whether packets of both mix."""
        return self.first_row <= other.last_row and other.first_row <= self.last_row


class OpenedStreams:
    """Finds records in streams, and writes packets, rows and payload with what was in them."""

    def __init__(self, streams: Streams, records: OpenedRecords, packets: IO[bytes]) -> None:
        self._streams = streams
        self._records = records
        self._packets = packets
        self._parts: dict[int, list[_Part]] = {}
        """Stream -> the parts that are opened."""

    def write(self, payload: Path, rows: Path) -> int:
        """Opens what can be opened; `payload` and `rows`: the files of all streams then. Returns how many
        connections were opened."""
        connections = self._find_all()
        every = self._streams.rows
        with payload.open("wb") as new_payload, rows.open("wb") as new_rows:
            latest: dict[int, int] = {}
            kept = 0
            for number in range(len(every)):
                row = every[number].copy()
                stream = int(row["stream"])
                latest[stream] = number
                data = self._streams.read(number)
                part = self._part_of(stream, int(self._streams.positions[number]))
                if part is not None:
                    data = self._rewrite(number, row, data, part.course, latest)
                row["kept"] = kept
                kept += len(data)
                new_payload.write(data)
                new_rows.write(row.tobytes())
        return connections

    def _find_all(self) -> int:
        connections, numbers = 0, self._streams.numbers
        for (source, target), stream in numbers.items():
            other = numbers.get((target, source))
            if other is not None and other < stream:
                continue
            here = self._parts_of(stream)
            there = [] if other is None or other == stream else self._parts_of(other)
            for own, others, number in ((here, there, stream), (there, here, other)):
                opened = [
                    each
                    for each in own
                    if each.course.is_open
                    or any(beside.course.is_open and beside.is_beside(each) for beside in others)
                ]
                if opened and number is not None:
                    self._parts[number] = opened
            connections += max(
                sum(each.course.is_open for each in here), sum(each.course.is_open for each in there)
            )
        return connections

    def _parts_of(self, stream: int) -> list[_Part]:
        """A stream's connections, each from its SYN on."""
        rows = self._streams.rows_of(stream)
        positions, every = self._streams.positions[rows], self._streams.rows
        ends = positions + every["size"][rows]
        starts = np.unique(positions[(every["flags"][rows] & _SYN) > 0])
        bounds = [
            int(positions[0]),
            *(int(each) for each in starts if each > positions[0]),
            int(ends.max()) + 1,
        ]
        parts = []
        for begin, end in pairwise(bounds):
            inside = (positions >= begin) & (positions < end)
            of = rows[inside]
            if len(of) and not (every["tcp"][of] < 0).any():
                course = self._follow(stream, begin, min(end, int(ends[inside].max())))
                parts.append(_Part(begin, end, int(of.min()), int(of.max()), course))
        return parts

    def _part_of(self, stream: int, position: int) -> _Part | None:
        # A keep-alive is one byte before the first one; so is the number of a SYN.
        return next(
            (each for each in self._parts.get(stream, ()) if each.begin - 1 <= position < each.end), None
        )

    def _follow(self, stream: int, start: int, end: int) -> Course:
        """Goes from record to record."""
        course, at = Course(start), start
        clear = self._clear(stream, start)
        if clear:
            course.pass_clear(at, clear)
            at += clear
        while at < end:
            head = self._streams.read_bytes(stream, at, tls.HEADER)
            length = tls.HEADER + int.from_bytes(head[3:5], "big") if tls.is_record(head) else 0
            if length:
                data = self._streams.read_bytes(stream, at, length)
                record = self._records.find(data[tls.HEADER :]) if len(data) == length else None
                if record is not None:
                    course.take(at, length, record)
                elif self._leads_on(stream, at + length, end):
                    course.miss(at, length)
                else:
                    length = 0
            if not length:
                following, record = self._seek(stream, at + 1, end)
                course.lose(at, following, record)
                length = following - at
            at += length
        course.finish(at)
        return course

    def _clear(self, stream: int, start: int) -> int:
        """How many bytes come before the first record."""
        data = self._streams.read_bytes(stream, start, _MOST_CLEAR)
        if tls.is_record(data):
            return 0
        for found in _HELLO.finditer(data):
            rest = data[found.start() :]
            length = tls.HEADER + int.from_bytes(rest[3:5], "big")
            if tls.is_record(rest) and (len(rest) <= length or tls.is_record(rest[length:])):
                return found.start()
        return 0

    def _leads_on(self, stream: int, at: int, end: int) -> bool:
        """Whether a record may end here."""
        head = self._streams.read_bytes(stream, at, tls.HEADER)
        return at >= end or tls.is_record(head)

    def _seek(self, stream: int, at: int, end: int) -> tuple[int, OpenedRecord | None]:
        """The next record that was opened, and its position."""
        while at < end:
            data = self._streams.read_bytes(stream, at, _WINDOW)
            for found in _HEADER.finditer(data):
                place = at + found.start()
                head = self._streams.read_bytes(stream, place, tls.HEADER)
                if tls.is_record(head):
                    length = tls.HEADER + int.from_bytes(head[3:5], "big")
                    body = self._streams.read_bytes(stream, place, length)[tls.HEADER :]
                    record = self._records.find(body) if len(body) + tls.HEADER == length else None
                    if record is not None:
                        return place, record
            at = (
                at + len(data) - 2
                if len(data) == _WINDOW
                else self._streams.next_start(stream, at + len(data), end)
            )
        return end, None

    # -- packets ----------------------------------------------------------------------------------------

    def _rewrite(
        self, number: int, row: np.void, data: bytes, course: Course, latest: dict[int, int]
    ) -> bytes:
        """Writes a packet's headers; returns its payload, and changes the row."""
        packet, ip, tcp, begin = (int(row[name]) for name in ("packet", "ip", "tcp", "payload"))
        self._packets.seek(packet + ip)
        head = bytearray(self._packets.read(begin - ip))
        at = int(self._streams.positions[number])
        run = longest_run(course.pieces(at, at + len(data)))
        plain = b"".join(
            data[each.at - at : each.at - at + each.size]
            if each.begin is None
            else self._records.read(each.begin, each.size)
            for each in run
        )[: _LARGEST - len(head)]
        first = run[0].plain if run else course.plain(at)
        row["seq"] = int(row["seq"]) + first - at & 0xFFFFFFFF
        row["size"], row["whole"] = len(plain), 1
        tcp -= ip
        sent = int(row["seq"]) - bool(int(row["flags"]) & _SYN)
        struct.pack_into(">I", head, tcp + 4, sent & 0xFFFFFFFF)
        if int(row["flags"]) & _ACK:
            self._acknowledge(head, tcp, int(row["stream"]), latest)
        _set_length(head, len(head) + len(plain))
        self._packets.seek(packet + ip)
        self._packets.write(head)
        return plain

    def _acknowledge(self, head: bytearray, tcp: int, stream: int, latest: dict[int, int]) -> None:
        """The acknowledgement number, and SACK blocks."""
        other = self._streams.opposite(stream)
        reference = None if other is None else latest.get(other)
        if other is None:
            return
        if reference is None:
            reference = int(self._streams.rows_of(other).min())
        place = int(self._streams.positions[reference])
        base = int(self._streams.rows["seq"][reference])

        def move(number: int) -> int:
            position = place + ((number - base + 0x80000000 & 0xFFFFFFFF) - 0x80000000)
            part = self._part_of(other, position) or self._last_part(other, position)
            return number + part.course.plain(position) - position & 0xFFFFFFFF if part else number

        struct.pack_into(">I", head, tcp + 8, move(*struct.unpack_from(">I", head, tcp + 8)))
        at, end = tcp + 20, tcp + (head[tcp + 12] >> 4) * 4
        while at + 2 <= end and head[at]:
            size = 1 if head[at] == _NOP else head[at + 1]
            if not size or at + size > end:
                break
            if head[at] == _SACK:
                for edge in range(at + 2, at + size - 3, 4):
                    struct.pack_into(">I", head, edge, move(*struct.unpack_from(">I", head, edge)))
            at += size

    def _last_part(self, stream: int, position: int) -> _Part | None:
        """Of a position behind all bytes that were captured."""
        parts = [each for each in self._parts.get(stream, ()) if each.begin <= position]
        return parts[-1] if parts else None


def _set_length(head: bytearray, total: int) -> None:
    """How long IP says that the packet is, and its header's checksum."""
    if head[0] >> 4 == 6:
        struct.pack_into(">H", head, 4, total - 40)
        return
    struct.pack_into(">H", head, 2, total)
    header = (head[0] & 15) * 4
    struct.pack_into(">H", head, 10, 0)
    struct.pack_into(">H", head, 10, checksum(head[:header]))
