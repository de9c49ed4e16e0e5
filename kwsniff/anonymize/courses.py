"""How far the plain stream has come at each position of the encrypted one.

    encrypted  [ header ][ n - 1 bytes ][ tag, padding ][ 1 ]
    plain                [ n - 1 bytes ]                [ 1 ]

A record's last byte comes with its last packet: before that, the record was unreadable. So does kwsniff count
(core/tls/packet_map.pyx). Bytes that did not open take as much room as they would have, and are not there.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from kwsniff.anonymize.opened_records import OpenedRecord
from kwsniff.anonymize.tls import HEADER

_UNKNOWN: Final = -1
_CAPTURED: Final = -2


class Piece(NamedTuple):
    """Consecutive bytes of the plain stream. ``begin``: where they are among opened records; None: they are
    the captured bytes from ``at`` on."""

    plain: int
    size: int
    at: int
    begin: int | None


class Course:
    """One direction of a connection, from the position of its first byte on."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.is_open = False
        """Whether a record with data was opened."""
        self._at: list[int] = [start]
        self._plain: list[int] = [start]
        self._source: list[int] = [_UNKNOWN]
        self._moves: list[bool] = [False]
        self._end = start
        """Of the plain stream."""
        self._overhead = 0
        self._number = -1

    def pass_clear(self, at: int, size: int) -> None:
        """Bytes before the first record, which stay."""
        self._turn(at, _CAPTURED, size)

    def take(self, at: int, length: int, record: OpenedRecord) -> None:
        """A record of `length` bytes with its header that was opened."""
        self._number = record.number
        if not record.is_data or not record.size:
            self._turn(at, _UNKNOWN, 0)
            return
        self.is_open = True
        self._overhead = length - HEADER - record.size
        self._share(at, length, record.size, record.begin)

    def miss(self, at: int, length: int) -> None:
        """A record with data that did not open."""
        self._number += 1
        size = max(length - HEADER - self._overhead, 0)
        if self.is_open and size:
            self._share(at, length, size, _UNKNOWN)
        else:
            self._turn(at, _UNKNOWN, 0)

    def lose(self, at: int, end: int, following: OpenedRecord | None) -> None:
        """Bytes up to `end`, behind which this record follows."""
        if not self.is_open:
            self._turn(at, _UNKNOWN, 0)
            return
        records = following.number - self._number - 1 if following else 1
        left = end - at - max(records, 1) * (HEADER + self._overhead)
        self._turn(at, _UNKNOWN, max(left, 0))

    def finish(self, at: int) -> None:
        """Nothing follows."""
        self._turn(at, _UNKNOWN, 0)
        self._moves[-1] = True

    def _share(self, at: int, length: int, size: int, begin: int) -> None:
        self._turn(at, _UNKNOWN, 0)
        self._turn(at + HEADER, begin, size - 1)
        self._turn(at + HEADER + size - 1, _UNKNOWN, 0)
        self._turn(at + length - 1, begin if begin < 0 else begin + size - 1, 1)

    def _turn(self, at: int, source: int, size: int) -> None:
        """From `at` on, `size` bytes of the plain stream, and no more until the next turn."""
        self._at.append(at)
        self._plain.append(self._end)
        self._source.append(source)
        self._moves.append(size > 0)
        self._end += size
        if size:
            self._at.append(at + size)
            self._plain.append(self._end)
            self._source.append(_UNKNOWN)
            self._moves.append(False)

    def plain(self, position: int) -> int:
        """How far the plain stream has come."""
        if position < self.start:
            return position
        place = bisect_right(self._at, position) - 1
        return self._plain[place] + (position - self._at[place] if self._moves[place] else 0)

    def pieces(self, begin: int, end: int) -> Iterator[Piece]:
        """What is known of the plain stream between two positions of the encrypted one."""
        place = max(bisect_right(self._at, begin) - 1, 0)
        while place < len(self._at) and self._at[place] < end:
            low = max(begin, self._at[place])
            high = min(end, self._at[place + 1]) if place + 1 < len(self._at) else end
            source, moved = self._source[place], low - self._at[place]
            if self._moves[place] and source != _UNKNOWN and low < high:
                known = None if source == _CAPTURED else source + moved
                yield Piece(self._plain[place] + moved, high - low, low, known)
            place += 1


def longest_run(pieces: Iterator[Piece]) -> list[Piece]:
    """The pieces that follow each other without a hole; of several such runs, the longest."""
    best: list[Piece] = []
    run: list[Piece] = []
    most = size = 0
    for piece in pieces:
        if run and run[-1].plain + run[-1].size != piece.plain:
            run, size = [], 0
        run.append(piece)
        size += piece.size
        if size > most:
            best, most = run, size
    return best
