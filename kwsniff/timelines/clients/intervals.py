"""The interval at which a client repeats something, if the times show one."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

LEAST_INTERVALS: Final = 3
MOST_TIMES: Final = 64
"""Times kept of a client, or of each of its connections: the first ones."""
_MICROSECONDS: Final = 1000


class Mode(NamedTuple):
    """The most common value, in milliseconds, and what of how many values it is of."""

    value: int
    lowest: int
    highest: int
    alike: int
    values: int

    def __str__(self) -> str:
        return f"{self.alike} of {self.values} are {self.lowest:,} to {self.highest:,}"


def find_mode(values: Iterable[int], slack: int = 0) -> Mode | None:
    """The value that most of `values` (microseconds) have within 10 % and `slack`; None unless it is half of
    them, of at least LEAST_INTERVALS."""
    told = sorted(values)
    if len(told) < LEAST_INTERVALS:
        return None
    sizes = np.array(told)
    begins = np.searchsorted(sizes * 1.1 + slack, sizes)
    numbers = np.arange(1, len(told) + 1) - begins
    longest = int(numbers.argmax())
    first, alike = int(begins[longest]), int(numbers[longest])
    if 2 * alike < len(told) or alike < LEAST_INTERVALS:
        return None
    middle, lowest, highest = (
        round(told[place] / _MICROSECONDS) for place in (first + alike // 2, first, first + alike - 1)
    )
    return Mode(middle, lowest, highest, alike, len(told))


def find_tighter(values: Iterable[Iterable[int]]) -> Mode | None:
    """The mode of the values that agree more closely. None if modes differ, and neither is twice as close."""
    found = sorted(
        (mode for mode in map(find_mode, values) if mode),
        key=lambda mode: (mode.highest - mode.lowest, -mode.alike),
    )
    if len(found) < 2 or 10 * abs(found[0].value - found[1].value) <= found[0].value:
        return found[0] if found else None
    best, other = found[:2]
    closer = 2 * (best.highest - best.lowest) <= other.highest - other.lowest
    return best if closer and best.alike * other.values >= other.alike * best.values else None


def intervals_of(times: Mapping[int, Sequence[int]]) -> list[int]:
    """The intervals between neighbouring times of each connection."""
    return [later - earlier for listed in times.values() for earlier, later in pairwise(listed)]


def pauses_of(requests: Sequence[int], responses: Sequence[int]) -> list[int]:
    """From the latest response before each request to the request; both are in order."""
    before = np.searchsorted(np.array(responses, np.int64), np.array(requests, np.int64)).tolist()
    return [time - responses[number - 1] for time, number in zip(requests, before, strict=True) if number]


def merge_times(known: Sequence[int], found: Sequence[int]) -> list[int]:
    """The first MOST_TIMES of both, which are in order."""
    both = [*known, *found[:MOST_TIMES]]
    return (both if not known or known[-1] <= found[0] else sorted(both))[:MOST_TIMES]
