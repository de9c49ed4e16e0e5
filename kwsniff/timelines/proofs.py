"""When the broker could go on with a call that waited, told by what others said on other connections.

    request ------------------------------------------------ response
            | own work |        it waits         | the rest |
                                                 ^
            the followers were answered   the last follower asks for more,
                                          a Produce brings the record,
                                          the last member asks

What the broker does with the proof itself is not the call's own work: its log counts it as waiting, too.
"""

from typing import Final, NamedTuple

import numpy as np

from kwsniff.tables.arrays import Bits, Numbers
from kwsniff.timelines.evidence import WINDOW_US, Marks
from kwsniff.timelines.held_rows import LOCAL_NS
from kwsniff.timelines.mark_lines import Held, Lines

AFTER_US: Final = 50_000.0
"""A broker that answers so long after the proof was busy with something else, or waited for somebody else."""
LOCAL_US: Final = LOCAL_NS / 1000
_MOST_OVERLAPS: Final = 8
"""Produce that claim the same records, of which all are looked at."""


class Own(NamedTuple):
    """Partitions of calls: the place of the call, number of the partition, the first record that it brought,
    and the number behind the last."""

    row: Numbers
    place: Numbers
    base: Numbers
    reached: Numbers

    def taken(self, rows: Numbers) -> "Own":
        """Some of them."""
        return Own(*(column[rows] for column in self))


class Proof(NamedTuple):
    """Of each call what the broker did for it before it waited, when the wait was over, and whether that is
    known. One that is over before the work was done: it did not wait."""

    own: Numbers
    until: Numbers
    known: Bits


def followed(held: Held, own: Own, fetches: Marks) -> Proof:
    """Of Produce: until the last of the followers, as far as they were seen, had all records."""
    latest, written = np.zeros(len(held.end)), held.turn + LOCAL_US
    if len(own.row) and len(fetches.time):
        _ask_followers(held, own, fetches, latest)
        bring = np.flatnonzero(fetches.base >= 0)
        if len(bring):
            _answer_followers(held, own, fetches.taken(bring), written)
    return Proof(written, _until(held, latest), latest > written)


def _ask_followers(held: Held, own: Own, fetches: Marks, latest: Numbers) -> None:
    """When the last of them asked for what comes behind the records."""
    lines = Lines(fetches, ("place", "connection_id"), ("time", "end", "asked"))
    part, line = lines.of(own.place)
    call, marks, reached = held.taken(own.row[part]), lines.marks, own.reached[part]
    at, found = lines.first(
        lines.span(line, call),
        lambda at: (marks.asked[at] >= reached) & _is_young(marks, at, call),
        lambda at: marks.time[at] + call.network <= call.done,
    )
    np.maximum.at(latest, own.row[part[found]], (marks.time[at] + call.network)[found])


def _answer_followers(held: Held, own: Own, fetches: Marks, written: Numbers) -> None:
    """When those that had waited for these very records were answered: they were written by then."""
    lines = Lines(fetches, ("place", "base", "connection_id"), ("time", "end"))
    part, line = lines.of(own.place, own.base)
    call, marks = held.taken(own.row[part]), lines.marks
    at, found = lines.last(
        lines.span(line, call),
        lambda at: _is_young(marks, at, call),
        lambda at: marks.time[at] + call.network <= call.turn,
        marks.end,
    )
    ends = np.minimum(marks.end[at].astype(np.float64), call.done)
    np.maximum.at(written, own.row[part[found]], ends[found])


def brought(held: Held, own: Own, produced: Marks) -> Proof:
    """Of fetches: until the Produce of the first record that they brought was there.

    A Produce that had come before may have stood in line: that it had been answered says that it had not.
    """
    earliest = np.full(len(held.end), np.inf)
    if len(own.row):
        call = held.taken(own.row)
        when = _come(call, own, produced) if len(produced.time) else np.full(len(own.row), -np.inf)
        np.minimum.at(earliest, own.row, when)  # where one is not known, all are not
    known = np.isfinite(earliest)
    until = np.where(earliest > held.turn, _until(held, earliest), held.turn)
    return Proof(held.turn + LOCAL_US, until, known)


def _come(call: Held, own: Own, produced: Marks) -> Numbers:
    """When the Produce of the first record was there; minus infinity where none proves it."""
    lines = Lines(produced, ("place", "base"), ("time", "end", "reached"))
    marks, overlapped = lines.marks, lines.overlapped()
    best, known = np.zeros(len(own.row), np.int64), np.zeros(len(own.row), np.bool_)
    rows, line = np.arange(len(own.row)), lines.up_to(own.place, own.base)
    for _ in range(_MOST_OVERLAPS):
        there = line >= 0
        there[there] = lines.key("place", line[there]) == own.place[rows[there]]
        rows, line = rows[there], line[there]
        at, found = _last_brought(lines, line, call.taken(rows), own.base[rows])
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


def _last_brought(lines: Lines, line: Numbers, call: Held, base: Numbers) -> tuple[Numbers, Bits]:
    marks = lines.marks
    return lines.last(
        lines.span(line, call),
        lambda at: (marks.reached[at] > base) & _is_young(marks, at, call),
        lambda at: marks.time[at] + call.network <= call.done,
        marks.number,
    )


def _is_young(marks: Marks, at: Numbers, call: Held) -> Bits:
    young: Bits = marks.end[at] >= call.clock - WINDOW_US
    return young


def _until(held: Held, proof: Numbers) -> Numbers:
    return np.where(held.done - proof <= AFTER_US, held.done, proof)
