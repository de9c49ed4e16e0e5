"""Clock offset between two places, from packets that both captured.

What goes from the first place to the second bounds the second clock from above: it arrived later than it
passed the first. What comes back bounds it from below. The clock is the straight line that keeps the largest
distance from both: half of the shortest round trip between the places, by which it may be wrong at most. A
clock that is stepped has a line before and another one after.

    second - first   .  '   .    '  .  '      towards the second: upper bounds
                    ------------------------- the clock
                     '  .    ' .   '   .      towards the first: lower bounds
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np

Numbers = np.ndarray[Any, Any]

_FASTEST: Final = 1e-3
"""Ten times what clocks of computers drift, twice what NTP makes of it."""
_THIRDS: Final = 48  # of a search among slopes, to a hundred-thousandth of a ppm
_HALVES: Final = 30
_TOLERATED_US: Final = 50.0
"""By which bounds may contradict each other: capture times of one machine are not more exact."""
_ROUNDING_US: Final = 1.0
_MOST_LINES: Final = 64
_FEWEST: Final = 4  # bounds of each side that make a line after a step


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of one side, in the order of their times: microseconds of the first clock, second - first."""

    times: Numbers
    offsets: Numbers

    def part(self, begin: float, end: float) -> "Bounds":
        """Those of times from `begin` on and before `end`."""
        chosen = (self.times >= begin) & (self.times < end)
        return Bounds(self.times[chosen], self.offsets[chosen])


@dataclass(frozen=True, slots=True)
class Line:
    """A clock from time `begin` on: microseconds of the first clock."""

    begin: float
    middle: float
    """Where it is `offset` ahead."""
    offset: float
    drift: float
    error: float
    """Microseconds by which `offset` may be wrong."""
    drift_error: float | None
    """By which `drift` may be wrong; None where the bounds do not tell."""

    def at(self, times: Numbers) -> Numbers:
        """How far ahead it is."""
        found: Numbers = self.offset + self.drift * (times - self.middle)
        return found


@dataclass(frozen=True, slots=True)
class Clock:
    """How far one clock is ahead of another: a line, or several where it was stepped."""

    lines: tuple[Line, ...]

    def at(self, times: Numbers) -> Numbers:
        """Microseconds; of times of the first clock."""
        begins = np.array([line.begin for line in self.lines[1:]])
        which = np.searchsorted(begins, times, side="right")
        found = np.zeros(len(times))
        for number, line in enumerate(self.lines):
            found[which == number] = line.at(times[which == number])
        return found

    @property
    def main(self) -> Line:
        """The line of the longest time."""
        begins = [line.begin for line in self.lines]
        lasts = [*begins[1:], 2 * self.lines[-1].middle - begins[-1]]
        return max(zip(lasts, begins, self.lines, strict=True), key=lambda each: each[0] - each[1])[2]


def solve_clock(upper: Bounds, lower: Bounds) -> Clock | None:
    """None where one side has no bounds, or where few of them fit lines: then nothing tells the clock."""
    if not len(upper.times) or not len(lower.times):
        return None
    whole = _fit(upper, lower)
    if whole.error >= 0:
        return Clock((whole,))
    found = list(islice(_lines(upper, lower), _MOST_LINES + 1))
    fitting = sum(number for _, number in found)
    if len(found) > _MOST_LINES or 2 * fitting < len(upper.times) + len(lower.times):
        return None
    return Clock(tuple(line for line, _ in found))


def _lines(upper: Bounds, lower: Bounds) -> Iterator[tuple[Line, int]]:
    """The longest stretch that one line fits, and its bounds; then the next one."""
    times = np.unique(np.concatenate([upper.times, lower.times]))
    begin = 0
    while begin < len(times):
        end = _find_end(upper, lower, times, begin)
        one, other = _cut(upper, lower, times, begin, end)
        if min(len(one.times), len(other.times)) >= _FEWEST:
            yield _fit(one, other), len(one.times) + len(other.times)
        begin = end


def _cut(upper: Bounds, lower: Bounds, times: Numbers, begin: int, end: int) -> tuple[Bounds, Bounds]:
    until = float(times[end]) if end < len(times) else np.inf
    return upper.part(float(times[begin]), until), lower.part(float(times[begin]), until)


def _find_end(upper: Bounds, lower: Bounds, times: Numbers, begin: int) -> int:
    """Number of the first time that the line from `begin` on cannot reach; by doubling, then halving."""

    def fits(end: int) -> bool:
        one, other = _cut(upper, lower, times, begin, end)
        return not len(one.times) or not len(other.times) or _fit(one, other).error >= 0

    known, length = begin + 1, 2
    while known < len(times) and fits(min(begin + length, len(times))):
        known = min(begin + length, len(times))
        length *= 2
    failing = min(begin + length, len(times) + 1)
    while failing - known > 1:
        middle = (known + failing) // 2
        if fits(middle):
            known = middle
        else:
            failing = middle
    return known


def _fit(upper: Bounds, lower: Bounds) -> Line:
    """The line between both. Its error is negative where there is none."""
    begin = float(min(upper.times[0], lower.times[0]))
    middle = (begin + float(max(upper.times[-1], lower.times[-1]))) / 2
    base = float(np.median(np.concatenate([upper.offsets, lower.offsets])))
    above = upper.times - middle, upper.offsets - base
    below = lower.times - middle, lower.offsets - base

    def edges(slope: float) -> tuple[float, float]:
        return float(np.min(above[1] - slope * above[0])), float(np.max(below[1] - slope * below[0]))

    def room(slope: float) -> float:
        top, bottom = edges(slope)
        return top - bottom

    best = _highest(room)
    most = room(best)
    # Of slopes that are as good, the flattest.
    best = _towards(0.0, best, lambda slope: room(slope) >= most - _ROUNDING_US)
    top, bottom = edges(best)
    steepest = _towards(_FASTEST, best, lambda slope: room(slope) >= 0)
    flattest = _towards(-_FASTEST, best, lambda slope: room(slope) >= 0)
    is_told = flattest > -_FASTEST and steepest < _FASTEST
    error = (top - bottom) / 2
    if -_TOLERATED_US <= 2 * error < 2 * _ROUNDING_US:
        error = max(-error, _ROUNDING_US)
    spread = (steepest - flattest) / 2 if is_told else None
    return Line(begin, middle, base + (top + bottom) / 2, best, error, spread)


def _highest(room: Any) -> float:
    """The slope with the most room, which is concave in it."""
    low, high = -_FASTEST, _FASTEST
    for _ in range(_THIRDS):
        one, other = low + (high - low) / 3, high - (high - low) / 3
        if room(one) < room(other):
            low = one
        else:
            high = other
    return (low + high) / 2


def _towards(goal: float, start: float, holds: Any) -> float:
    """The slope nearest to `goal` for which it still holds, as it does at `start`."""
    if holds(goal):
        return goal
    for _ in range(_HALVES):
        middle = (start + goal) / 2
        if holds(middle):
            start = middle
        else:
            goal = middle
    return start
