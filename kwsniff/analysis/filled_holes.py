"""Holes of a capture that another capture of the same connections fills, when captures are read again.

Filled is what the capture misses and the receiver acknowledged, by either capture: what never arrived stays
missing. Packets are the same where addresses and ports are, or both initial sequence numbers (NAT).

    first reading     holes of connections that count, and twins of these
    here              bytes of holes in the captures of the twins
    next readings     the same captures, without these holes
"""

import ipaddress
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwsniff.core.capture.hole_bytes import HoleBytes, way
from kwsniff.core.capture.packet_offsets import endpoint_number
from kwsniff.errors import CaptureError
from kwsniff.sources.files import CaptureFile
from kwsniff.tables.arrays import whole_numbers
from kwsniff.tables.captures import CaptureRow, printable
from kwsniff.tables.compute import cast, filter_rows
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.timelines.duplicates.duplicate_connections import Source, Twins
from kwsniff.timelines.duplicates.fingerprints import ENDS

SHARE_OF_HOLES: Final = 64
"""Of memory: what names holes,"""
_SHARE_OF_BYTES: Final = 32
"""and what fills them."""
_COLUMNS: Final = (*ENDS, "connection_id", "capture", "client_isn", "broker_isn", "first_time", "last_time")
_FILL: Final = struct.Struct("=6q")
_ALWAYS: Final = (-(1 << 63), (1 << 63) - 1)

Row = dict[str, Any]


class Hole(NamedTuple):
    """As the core tells it (Analyzer.holes)."""

    connection: int
    sender: int
    offset: int
    num: int
    seq: int
    is_received: int
    source: int
    target: int


class Piece(NamedTuple):
    """Bytes of a hole: where in it, how many, where in the data; the capture that has them, and what their
    segment acknowledges."""

    begin: int
    num: int
    at: int
    capture: str
    ack: int

    @property
    def end(self) -> int:
        return self.begin + self.num


@dataclass(frozen=True, slots=True)
class FilledHoles:
    """What fills holes, as Analyzer.fill_holes takes it. `sources`: name of a capture -> of those that fill
    it."""

    fills: bytes
    data: bytes
    sources: Mapping[str, Sequence[str]]

    def add_notes(self, rows: Iterable[CaptureRow]) -> None:
        """Says in `notes` of captures what they have of others."""
        for row in rows:
            if row["filled_bytes"]:
                # A connection that began in another file of its place is named there.
                named = self.sources.get(row["capture"]) or sorted({*chain(*self.sources.values())})
                names = ", ".join(named)
                row["notes"].append(f"{row['filled_bytes']:,} bytes that it misses are filled from {names}")


def find_bytes(
    noted: bytes, connections: Source, twins: Twins, files: Mapping[str, int], memory: int
) -> FilledHoles | None:
    """`noted`: Analyzer.holes; `connections`: the table, in batches; `files`: captures with their places;
    `memory`: the limit of the run. None where nothing is found."""
    counted = {twin.of for twin in twins.found.values()}
    holes = [hole for hole in map(Hole._make, np.frombuffer(noted, np.int64).reshape(-1, 8).tolist())
             if hole.connection in counted]  # fmt: skip
    if not holes:
        return None
    rows = _read_rows(connections, {hole.connection for hole in holes}, twins)
    places = {printable(name): place for name, place in files.items()}
    search = _Search(holes, memory // _SHARE_OF_BYTES)
    for place, wanted in sorted(_want(holes, rows, twins, places).items()):
        search.read([name for name, number in files.items() if number == place], wanted)
    return search.fill({number: row["capture"] for number, row in rows.items()})


def _read_rows(connections: Source, counted: set[int], twins: Twins) -> dict[int, Row]:
    """Those connections, and their twins."""
    ids = np.array(sorted(counted | {each for each, twin in twins.found.items() if twin.of in counted}))
    schema = arrow_schema(TABLES["connections"])
    found: dict[int, Row] = {}
    for batch in connections(_COLUMNS):
        chosen = filter_rows(batch, np.isin(whole_numbers(batch["connection_id"], null=-1), ids))
        times = ("first_time", "last_time")
        types = {name: pa.int64() if name in times else schema.field(name).type for name in _COLUMNS}
        plain = {name: cast(chosen[name], schema.field(name).type) for name in _COLUMNS}
        table = pa.table({name: cast(each, types[name]) for name, each in plain.items()})
        found |= {row["connection_id"]: row for row in table.to_pylist()}
    return found


Wanted = tuple[int, int, int, int, int, int]
"""Way, sequence number, bytes, first and last time of its connection there, number of the hole."""


def _want(
    holes: Sequence[Hole], rows: Mapping[int, Row], twins: Twins, places: Mapping[str, int]
) -> dict[int, list[Wanted]]:
    """By place, what is to be looked for in its captures."""
    others: dict[int, list[Row]] = {}
    for number, twin in twins.found.items():
        if number in rows and twin.of in rows and _has_same_packets(rows[twin.of], rows[number]):
            others.setdefault(twin.of, []).append(rows[number])
    found: dict[int, list[Wanted]] = {}
    for number, hole in enumerate(holes):
        for row in others.get(hole.connection, ()):
            is_asked = hole.source == _end(rows[hole.connection], "client")
            ends = _end(row, "client"), _end(row, "broker")
            times = row["first_time"], row["last_time"]
            since, until = _ALWAYS if None in times else (1000 * times[0] - 1000, 1000 * times[1] + 1000)
            there = way(*(ends if is_asked else ends[::-1]))
            wanted = there, hole.seq, hole.num, since, until, number
            found.setdefault(places.get(row["capture"], 0), []).append(wanted)
    return found


def _has_same_packets(one: Row, other: Row) -> bool:
    same_ends = all(one[key] == other[key] for key in ENDS)
    numbers = [[row[key] for key in ("client_isn", "broker_isn")] for row in (one, other)]
    return same_ends or (numbers[0] == numbers[1] and None not in numbers[0])


def _end(row: Row, side: str) -> int:
    address = ipaddress.ip_address(row[f"{side}_address"])
    mapped = address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed
    return endpoint_number(mapped, row[f"{side}_port"])


class _Search:
    """Pieces of holes, of any number of places."""

    def __init__(self, holes: Sequence[Hole], most: int) -> None:
        self._holes = holes
        self._left = most
        self._received = {number: hole.num for number, hole in enumerate(holes) if hole.is_received}
        """Number of a hole -> bytes of it that its receiver acknowledged."""
        self._pieces: dict[int, list[Piece]] = {}
        self._data: list[bytes] = []

    def read(self, names: Sequence[str], wanted: list[Wanted]) -> None:
        """Captures of one place."""
        wanted.sort()
        asked = sorted({each[0] for each in wanted if each[5] not in self._received})
        ways = np.array([each[0] for each in wanted], np.uint64).view(np.int64)
        rows = np.column_stack([ways, np.array([each[1:5] for each in wanted], np.int64)])
        reader = HoleBytes(rows.tobytes(), np.array(asked, np.uint64).tobytes(), max(self._left, 0))
        for name in names:
            _read(name, reader)
        pieces, data, acked = reader.found()
        base = sum(map(len, self._data))
        for number, begin, num, at, which, ack in np.frombuffer(pieces, np.int64).reshape(-1, 6).tolist():
            piece = Piece(begin, num, base + at, printable(names[which]), ack)
            self._pieces.setdefault(wanted[number][5], []).append(piece)
        self._data.append(data)
        self._left -= len(data) + len(pieces)
        self._note_acked(wanted, acked)

    def _note_acked(self, wanted: Sequence[Wanted], acked: bytes) -> None:
        rows = np.frombuffer(acked, np.uint64).reshape(-1, 3).tolist()
        highest = {there: seq for there, is_known, seq in rows if is_known}
        for there, seq, num, _, _, number in wanted:
            if number not in self._received and there in highest:
                ahead = (highest[there] - seq + (1 << 31)) % (1 << 32) - (1 << 31)
                self._received[number] = min(ahead, num)

    def fill(self, captures: Mapping[int, str]) -> FilledHoles | None:
        """`captures`: by connection, where it began."""
        data = b"".join(self._data)
        fills: list[tuple[int, ...]] = []
        sources: dict[str, set[str]] = {}
        for number, pieces in self._pieces.items():
            hole = self._holes[number]
            for piece in _join(sorted(pieces), data, self._received.get(number, 0)):
                where = hole.connection, hole.sender, hole.offset + piece.begin
                fills.append((*where, piece.num, piece.at, piece.ack))
                sources.setdefault(captures[hole.connection], set()).add(piece.capture)
        if not fills:
            return None
        named = {name: sorted(each) for name, each in sources.items()}
        return FilledHoles(b"".join(_FILL.pack(*each) for each in sorted(fills)), data, named)


def _read(name: str, reader: HoleBytes) -> None:
    reader.open_capture()
    try:
        with CaptureFile(name) as capture:
            for buffer in capture.readable():
                reader.feed(buffer)
    except CaptureError:  # gone since it was read
        return


def _join(pieces: Sequence[Piece], data: bytes, most: int) -> list[Piece]:
    """Pieces, sorted, without what they repeat, up to `most` bytes of the hole; none where two differ."""
    kept: list[Piece] = []
    end = 0
    for piece in pieces:
        if any(not _agree(piece, other, data) for other in _overlapping(kept, piece)):
            return []
        skipped = max(end - piece.begin, 0)
        num = min(piece.num, most - piece.begin) - skipped
        if num > 0:
            kept.append(Piece(piece.begin + skipped, num, piece.at + skipped, piece.capture, piece.ack))
            end = kept[-1].end
    return kept


def _overlapping(kept: Sequence[Piece], piece: Piece) -> Iterator[Piece]:
    for other in reversed(kept):
        if other.end <= piece.begin:
            return
        yield other


def _agree(one: Piece, other: Piece, data: bytes) -> bool:
    begin, end = max(one.begin, other.begin), min(one.end, other.end)
    parts = [data[each.at + begin - each.begin : each.at + end - each.begin] for each in (one, other)]
    return parts[0] == parts[1]
