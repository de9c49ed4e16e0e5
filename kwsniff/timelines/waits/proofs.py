"""When the broker could continue with a call that waited, proven by calls on other connections.

    request ------------------------------------------------ response
            | own work |        it waits         | the rest |
                                                 ^
            followers got responses       the last follower requests more,
                                          a Produce has the record,
                                          the last member's request arrives

The broker's work on the proving call is not the waiting call's own work: brokers' logs count it as
waiting, too.
"""

from typing import Final, NamedTuple

import numpy as np

from kwsniff.tables.arrays import Bits, Numbers
from kwsniff.timelines.waits.evidence import WINDOW_US, Marks
from kwsniff.timelines.waits.mark_lines import Lines, WaitingCalls
from kwsniff.timelines.waits.pending_rows import LOCAL_NS

AFTER_US: Final = 50_000.0
"""A broker that responds later than this after the proof was busy otherwise, or waited for another call."""
LOCAL_US: Final = LOCAL_NS / 1000
_MOST_OVERLAPS: Final = 8
"""Maximum Produce calls for the same records that are all checked."""


class Own(NamedTuple):
    """Partitions of calls: the place of the call, number of the partition, the first record that it brought,
    and the number behind the last."""

    row: Numbers
    place: Numbers
    base: Numbers
    reached: Numbers

    def take(self, rows: Numbers) -> "Own":
        """A selection of them."""
        return Own(*(column[rows] for column in self))


class Proof(NamedTuple):
    """For each call, the broker's work before the wait, the end of the wait, and whether that is
    known. If the end precedes the end of the work, the call did not wait."""

    own: Numbers
    until: Numbers
    known: Bits


def find_replication_ends(held: WaitingCalls, own: Own, fetches: Marks) -> Proof:
    """Produce: until the last of the captured followers had all records."""
    latest, written = np.zeros(len(held.end)), held.turn + LOCAL_US
    if len(own.row) and len(fetches.time):
        _ask_followers(held, own, fetches, latest)
        bring = np.flatnonzero(fetches.base >= 0)
        if len(bring):
            _answer_followers(held, own, fetches.take(bring), written)
    return Proof(written, _until(held, latest), latest > written)


def _ask_followers(held: WaitingCalls, own: Own, fetches: Marks, latest: Numbers) -> None:
    """When the last of them requested the offset after the records."""
    lines = Lines(fetches, ("place", "connection_id"), ("time", "end", "asked"))
    part, line = lines.join(own.place)
    call, marks, reached = held.take(own.row[part]), lines.marks, own.reached[part]
    at, found = lines.first(
        lines.span(line, call),
        lambda at: (marks.asked[at] >= reached) & _is_young(marks, at, call),
        lambda at: marks.time[at] + call.network <= call.done,
    )
    np.maximum.at(latest, own.row[part[found]], (marks.time[at] + call.network)[found])


def _answer_followers(held: WaitingCalls, own: Own, fetches: Marks, written: Numbers) -> None:
    """When the fetches that waited for these records got their responses: they were written by then."""
    lines = Lines(fetches, ("place", "base", "connection_id"), ("time", "end"))
    part, line = lines.join(own.place, own.base)
    call, marks = held.take(own.row[part]), lines.marks
    at, found = lines.last(
        lines.span(line, call),
        lambda at: _is_young(marks, at, call),
        lambda at: marks.time[at] + call.network <= call.turn,
        marks.end,
    )
    ends = np.minimum(marks.end[at].astype(np.float64), call.done)
    np.maximum.at(written, own.row[part[found]], ends[found])


def brought(held: WaitingCalls, own: Own, produced: Marks) -> Proof:
    """Fetches: until the Produce of their first record arrived.

    An earlier Produce may have been queued; if it had its response by then, it was not.
    """
    earliest = np.full(len(held.end), np.inf)
    if len(own.row):
        call = held.take(own.row)
        when = _come(call, own, produced) if len(produced.time) else np.full(len(own.row), -np.inf)
        np.minimum.at(earliest, own.row, when)  # if one is unknown, all are
    known = np.isfinite(earliest)
    until = np.where(earliest > held.turn, _until(held, earliest), held.turn)
    return Proof(held.turn + LOCAL_US, until, known)


def _come(call: WaitingCalls, own: Own, produced: Marks) -> Numbers:
    """When the Produce of the first record arrived; minus infinity without a proof."""
    lines = Lines(produced, ("place", "base"), ("time", "end", "reached"))
    marks, overlapped = lines.marks, lines.find_overlaps()
    best, known = np.zeros(len(own.row), np.int64), np.zeros(len(own.row), np.bool_)
    rows, line = np.arange(len(own.row)), lines.up_to(own.place, own.base)
    for _ in range(_MOST_OVERLAPS):
        there = line >= 0
        there[there] = lines.key("place", line[there]) == own.place[rows[there]]
        rows, line = rows[there], line[there]
        at, found = _last_brought(lines, line, call.take(rows), own.base[rows])
        found &= ~known[rows] | (marks.number[at] > marks.number[best[rows]])
        best[rows[found]], known[rows[found]] = at[found], True
        again = np.isin(own.place[rows], overlapped)
        rows, line = rows[again], line[again] - 1
        if not len(rows):
            break
    arrived, answered = marks.time[best] + call.network, marks.end[best].astype(np.float64)
    when = np.where(arrived > call.turn, arrived, answered)
    unsure = (arrived <= call.turn) & (call.turn < when)
    return np.where(known & ~unsure, when, -np.inf)


def _last_brought(lines: Lines, line: Numbers, call: WaitingCalls, base: Numbers) -> tuple[Numbers, Bits]:
    marks = lines.marks
    return lines.last(
        lines.span(line, call),
        lambda at: (marks.reached[at] > base) & _is_young(marks, at, call),
        lambda at: marks.time[at] + call.network <= call.done,
        marks.number,
    )


def _is_young(marks: Marks, at: Numbers, call: WaitingCalls) -> Bits:
    young: Bits = marks.end[at] >= call.clock - WINDOW_US
    return young


def _until(held: WaitingCalls, proof: Numbers) -> Numbers:
    return np.where(held.done - proof <= AFTER_US, held.done, proof)
