"""Proven waits of calls, kept for the calls queued behind them."""

from typing import Any, Final, NamedTuple, Self

import numpy as np

from kwsniff.tables.arrays import Bits, Numbers
from kwsniff.timelines.waits import evidence

LINE_US: Final = 60_000_000
"""Time after the response of a call during which another one may have been queued behind it."""
_MOST_PARTS: Final = 16


class _Part(NamedTuple):
    """Rows by id; `wait` is a number of WAITS."""

    call_id: Numbers
    wait: Numbers
    end: Numbers
    number: Numbers

    def take(self, rows: Numbers | Bits) -> Self:
        return type(self)(*(column[rows] for column in self))


class Verdicts:
    """Stores waits, and finds them by call."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []

    def add(self, call_id: Numbers, wait: Numbers, end: Numbers, number: Numbers) -> None:
        """Adds calls with their waits, ends and numbers."""
        if not len(call_id):
            return
        self._parts.append(_sort(_Part(call_id, wait, end, number)))
        if len(self._parts) > _MOST_PARTS:
            columns = zip(*self._parts, strict=True)
            self._parts = [_sort(_Part(*(np.concatenate(each) for each in columns)))]

    def find_waits(self, behind: Numbers, end: Numbers, number: Numbers) -> tuple[Numbers, Numbers]:
        """For calls with these ends and numbers, queued behind these ids: the rows with a known wait, and
        that
        wait."""
        found = np.full(len(behind), -1, np.int64)
        for part in self._parts:
            at = np.minimum(np.searchsorted(part.call_id, behind), len(part.call_id) - 1)
            before = (part.call_id[at] == behind) & (part.number[at] < number)
            near = (end - part.end[at] <= LINE_US) & (number - part.number[at] <= evidence.MOST_EVENTS)
            found = np.where(before & near, part.wait[at], found)
        rows = np.flatnonzero(found >= 0)
        return rows, found[rows]

    def forget(self, least: int, last: int) -> None:
        """Drops calls that ended before that time or have a lower number: they are no longer needed."""
        kept = []
        for part in self._parts:
            young = (part.end >= least - LINE_US) & (part.number >= last)
            if young.any():
                # Most of a part is dropped at a time: splitting it repeatedly would be slow.
                kept.append(part.take(young) if 2 * np.count_nonzero(young) < len(young) else part)
        self._parts = kept

    def state(self) -> list[Any]:
        """The state for `resume`."""
        return [[column.tolist() for column in part] for part in self._parts]

    def resume(self, state: list[Any]) -> None:
        """Continues from a saved state."""
        self._parts = [_Part(*(np.array(column, np.int64) for column in part)) for part in state]


def _sort(part: _Part) -> _Part:
    return part.take(np.argsort(part.call_id, kind="stable"))
