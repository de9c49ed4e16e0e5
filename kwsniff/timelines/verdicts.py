"""What calls were found to have waited for, kept a while for those that stood in line behind them."""

from typing import Any, Final, NamedTuple, Self

import numpy as np

from kwsniff.tables.arrays import Bits, Numbers
from kwsniff.timelines import evidence

LINE_US: Final = 60_000_000
"""So long after a call was answered it may be what another one waited behind."""
_MOST_PARTS: Final = 16


class _Part(NamedTuple):
    """Rows by id; `wait` is a number of WAITS."""

    call_id: Numbers
    wait: Numbers
    end: Numbers
    number: Numbers

    def taken(self, rows: Numbers | Bits) -> Self:
        return type(self)(*(column[rows] for column in self))


class Verdicts:
    """Takes what was found, and finds it by call."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []

    def add(self, call_id: Numbers, wait: Numbers, end: Numbers, number: Numbers) -> None:
        """Calls, what they waited for, and their ends and numbers."""
        if not len(call_id):
            return
        self._parts.append(_sorted(_Part(call_id, wait, end, number)))
        if len(self._parts) > _MOST_PARTS:
            columns = zip(*self._parts, strict=True)
            self._parts = [_sorted(_Part(*(np.concatenate(each) for each in columns)))]

    def of(self, behind: Numbers, end: Numbers, number: Numbers) -> tuple[Numbers, Numbers]:
        """Of calls with these ends and numbers, behind these ids: rows of which it is known, and what they
        stood behind."""
        found = np.full(len(behind), -1, np.int64)
        for part in self._parts:
            at = np.minimum(np.searchsorted(part.call_id, behind), len(part.call_id) - 1)
            before = (part.call_id[at] == behind) & (part.number[at] < number)
            near = (end - part.end[at] <= LINE_US) & (number - part.number[at] <= evidence.MOST_EVENTS)
            found = np.where(before & near, part.wait[at], found)
        rows = np.flatnonzero(found >= 0)
        return rows, found[rows]

    def forget(self, least: int, last: int) -> None:
        """Those that ended before that time, or have a lower number, are not asked for any more."""
        kept = []
        for part in self._parts:
            young = (part.end >= least - LINE_US) & (part.number >= last)
            if young.any():
                # Most of a part goes at a time: taking it apart again and again would take long.
                kept.append(part.taken(young) if 2 * np.count_nonzero(young) < len(young) else part)
        self._parts = kept

    def state(self) -> list[Any]:
        """What is known, for `resume`."""
        return [[column.tolist() for column in part] for part in self._parts]

    def resume(self, state: list[Any]) -> None:
        """Goes on where another stood."""
        self._parts = [_Part(*(np.array(column, np.int64) for column in part)) for part in state]


def _sorted(part: _Part) -> _Part:
    return part.taken(np.argsort(part.call_id, kind="stable"))
