"""Facts on partitions in lines: binary search finds the call that proves a wait.

Calls of a connection begin and end in order, so in its line a condition that becomes true stays true, and one
that becomes false stays false:

    requests record   90  95  97 102 104 109      after record 100: from the fourth on
    time               1   3   5   7   9  12      before 10: up to the fifth

If times or offsets decrease, MOST_OUT_OF_ORDER of them are checked one by one; more prove nothing.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, Self

import numpy as np

from kwsniff.tables.arrays import Bits, Numbers, distinct
from kwsniff.timelines.waits import evidence
from kwsniff.timelines.waits.evidence import WINDOW_US, Marks

MOST_OUT_OF_ORDER: Final = 32
"""Maximum marks of a line that are checked one by one."""
MOST_LINES: Final = 64
"""Maximum connections with facts on one partition; further ones are ignored."""

Test = Callable[[Numbers], Bits]


class WaitingCalls(NamedTuple):
    """Calls that may have waited, a row each. Ends, numbers and clocks from `Clock`; when the broker began
    and finished it, and the time to the broker, in microseconds."""

    end: Numbers
    number: Numbers
    clock: Numbers
    turn: Numbers
    done: Numbers
    network: Numbers

    def take(self, rows: Numbers) -> Self:
        """Some rows."""
        return type(self)(*(column[rows] for column in self))


class Span(NamedTuple):
    """The range of marks in each line that may prove something: from `low` to below `high`."""

    low: Numbers
    high: Numbers
    disordered: Bits


class Lines:
    """Marks sorted by keys, then in order; those with the same keys are a line."""

    def __init__(self, marks: Marks, keys: tuple[str, ...], ascending: tuple[str, ...]) -> None:
        order = np.lexsort((marks.number, *(getattr(marks, key) for key in reversed(keys))))
        self.marks = marks.take(order)
        columns = [getattr(self.marks, key) for key in keys]
        begins = np.ones(len(order), np.bool_)
        begins[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        self._begins = np.flatnonzero(begins)
        self._ends = np.append(self._begins[1:], len(order))
        self._keys = [column[self._begins] for column in columns]
        back = np.zeros(len(order), np.int64)
        for name in ascending:
            values = getattr(self.marks, name)
            back[1:] |= values[1:] < values[:-1]
        back[self._begins] = 0
        self._back = np.cumsum(back)

    def join(self, *keys: Numbers) -> tuple[Numbers, Numbers]:
        """For rows of keys, which may leave out the last ones: places of rows, and lines beside them."""
        low, high = self._find_bound(keys, after=False), self._find_bound(keys, after=True)
        counts = np.minimum(high - low, MOST_LINES)
        rows = np.repeat(np.arange(len(counts)), counts)
        return rows, np.arange(len(rows)) - (np.cumsum(counts) - counts - low)[rows]

    def up_to(self, *keys: Numbers) -> Numbers:
        """The last line whose keys are not above these; -1: none."""
        return self._find_bound(keys, after=True) - 1

    def key(self, name: str, lines: Numbers) -> Numbers:
        """What all marks of a line have in common."""
        values: Numbers = getattr(self.marks, name)[self._begins[lines]]
        return values

    def find_overlaps(self) -> Numbers:
        """Places of which any two lines, those of a first record, claim the same one."""
        reached = np.maximum.reduceat(self.marks.reached, self._begins)
        place, base = self._keys
        return distinct(place[1:][(place[1:] == place[:-1]) & (reached[:-1] > base[1:])])

    def span(self, lines: Numbers, held: WaitingCalls) -> Span:
        """What may prove something of the call beside it, by number and clock."""
        marks = self.marks

        def begins(at: Numbers) -> Bits:
            near: Bits = marks.number[at] >= held.number - evidence.MOST_EVENTS
            return near & (marks.clock[at] >= held.clock - WINDOW_US)

        def ends(at: Numbers) -> Bits:
            far: Bits = marks.number[at] > held.number + evidence.MOST_EVENTS
            return far | (marks.clock[at] > held.end + WINDOW_US)

        low = first_place(self._begins[lines], self._ends[lines], begins)
        high = first_place(low, self._ends[lines], ends)
        last = np.maximum(high - 1, low)
        rows = len(self._back) - 1
        disordered = self._back[np.minimum(last, rows)] > self._back[np.minimum(low, rows)]
        return Span(low, high, disordered)

    def first(self, span: Span, begins: Test, lasts: Test) -> tuple[Numbers, Bits]:
        """Of the marks for which both tests hold the one with the least time, and whether there is one.

        `begins` holds from one mark of a line on, `lasts` up to one.
        """
        at = first_place(span.low, span.high, begins)
        found = at < span.high
        at = np.minimum(at, len(self.marks.time) - 1)
        found &= lasts(at)
        return self._or_one_by_one(span, at, found, lambda at: begins(at) & lasts(at), -self.marks.time)

    def last(self, span: Span, begins: Test, lasts: Test, greatest: Numbers) -> tuple[Numbers, Bits]:
        """The same with the greatest of values that grow along a line; of equal ones the last."""
        at = first_place(span.low, span.high, lambda at: ~lasts(at)) - 1
        found = at >= span.low
        at = np.maximum(at, 0)
        found &= begins(at)
        return self._or_one_by_one(span, at, found, lambda at: begins(at) & lasts(at), greatest)

    def _or_one_by_one(
        self, span: Span, at: Numbers, found: Bits, holds: Test, values: Numbers
    ) -> tuple[Numbers, Bits]:
        """The same where lines are disordered."""
        if not span.disordered.any():
            return at, found
        size = span.high - span.low
        few = span.disordered & (size <= MOST_OUT_OF_ORDER)
        found &= ~span.disordered
        for step in range(int(size[few].max(initial=0))):
            place = np.minimum(span.low + step, len(self.marks.time) - 1)
            chosen = few & (step < size) & holds(place)
            chosen &= ~found | (values[place] >= values[at])
            at, found = np.where(chosen, place, at), found | chosen
        return at, found

    def _find_bound(self, keys: tuple[Numbers, ...], *, after: bool) -> Numbers:
        """The first line whose keys are not below these, or the first above."""

        def is_reached(at: Numbers) -> Bits:
            above: Bits = np.zeros(len(at), np.bool_)
            same: Bits = np.ones(len(at), np.bool_)
            for own, wanted in zip(self._keys, keys, strict=False):
                above |= same & (own[at] > wanted)
                same &= own[at] == wanted
            return above if after else above | same

        begin = np.zeros(len(keys[0]), np.int64)
        return first_place(begin, np.full_like(begin, len(self._begins)), is_reached)


def first_place(low: Numbers, high: Numbers, holds: Test) -> Numbers:
    """Row by row the first place from `low` on, below `high`, at which the test holds, as it does from there
    on; or `high`."""
    low, high = low.copy(), np.maximum(high, low)
    last = int(high.max(initial=1)) - 1
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        is_open = low < high
        there = holds(np.minimum(middle, last))
        high = np.where(is_open & there, middle, high)
        low = np.where(is_open & ~there, middle + 1, low)
    return low
