"""Captures of one run that hold the same packets: taken at several places, each with a clock of its own.

The next file of a rotation repeats nothing. Where two captures share packets, down to the numbers that IP and
TCP gave them, one conversation was captured twice: its bytes were not sent again, and a connection must not
continue from one of these captures in the other. Every capture gets the number of a place; a conversation
captured at several places counts once (kwsniff/timelines/duplicates/duplicate_connections.py).

    client-1  |-----------|                 place 0
    client-2              |----------|      place 0     no packet of client-1: continues it
    broker       |---------------|          place 1     packets of both
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import numpy as np

from kwsniff.errors import UsageError
from kwsniff.sources.files import find_captures
from kwsniff.tables.captures import CaptureRow, printable
from kwsniff.texts import in_time

_EACH: Final = 4096
"""Packets that are kept of a capture, at most,"""
_LEAST: Final = 64
_ALL: Final = 1 << 20
"""and of all captures of a run."""
_MARK_AT: Final = np.uint64(33)
_ENOUGH: Final = 16
"""Packets that two captures share: proof whatever else they hold."""
_FEW: Final = 3
_SHARE: Final = 1 / 16
"""Fewer prove it for short captures, if they are this share of the shorter one."""
_MOST_ALIKE: Final = 16  # captures of the same packet that are compared
_MOST_TIMES: Final = 256
"""Differences of time that are kept of two captures: copies of many captures would share millions."""
_SAME_CLOCK_NS: Final = 500_000
_OVERLAP_NS: Final = 1_000_000_000
"""Files of a rotation overlap less."""

Numbers = np.ndarray[Any, Any]


def samples_of_each(captures: int) -> int:
    """How many packets are kept of each capture, where there are `captures` of them; none of one alone."""
    return 0 if captures < 2 else max(min(_EACH, _ALL // captures), _LEAST)


class Samples(NamedTuple):
    """Packets of one capture, sorted, each once, and when it was first seen in nanoseconds."""

    mask: int
    packets: Numbers
    times: Numbers


def join_samples(parts: Iterable[tuple[int, bytes]]) -> Samples:
    """The samples of a capture that was read in one or more parts, as the core tells them."""
    read = [(mask, np.frombuffer(data, np.int64).reshape(-1, 2)) for mask, data in parts]
    mask = max((mask for mask, _ in read), default=0)
    rows = np.concatenate([np.zeros((0, 2), np.int64), *(rows for _, rows in read)])
    packets = rows[:, 0].astype(np.uint64)
    kept = (packets >> _MARK_AT & np.uint64(mask)) == 0
    packets, first = np.unique(packets[kept], return_index=True)
    return Samples(mask, packets, rows[kept, 1][first])


class Same(NamedTuple):
    """What two captures share: `common` of the `looked_at` packets that are kept of the one with fewer.

    `behind_ns`: by how much the clock of the later one goes behind that of the first; None where packets have
    no times.
    """

    first: int
    other: int
    common: int
    looked_at: int
    behind_ns: int | None
    is_copied: bool
    """Whether all of them have the same times."""


@dataclass(frozen=True, slots=True)
class CapturePoints:
    """Where captures were taken; false where all were taken at one place."""

    numbers: Mapping[str, int] = field(default_factory=dict)
    """Name of a file -> its place."""
    same: tuple[Same, ...] = ()
    names: Mapping[int, str] = field(default_factory=dict)
    """Place -> its name."""

    def __bool__(self) -> bool:
        return any(self.numbers.values())

    def find(self, name: str) -> int:
        """The place of a file."""
        return self.numbers.get(name, 0)

    @property
    def printable(self) -> dict[str, int]:
        """The same as `numbers`, by the names that tables have; nothing where all are of one place."""
        return {printable(name): number for name, number in self.numbers.items()} if self else {}

    def fill_places(self, rows: Iterable[CaptureRow]) -> None:
        """Gives rows of captures their places."""
        names = {printable(name): self.names.get(number) for name, number in self.numbers.items()}
        for row in rows:
            row["place"] = names.get(row["capture"])

    def add_notes(self, rows: Sequence[CaptureRow], copies: Iterable[int]) -> None:
        """Says in `notes` which captures share packets. `rows`: of the captures; `copies`: numbers of those
        that are said to be copies already."""
        known = set(copies)
        for number in range(len(rows)):
            found = [each for each in self.same if each.other == number]
            if found and number not in known:
                most = max(found, key=lambda each: each.common)
                rows[number]["notes"].append(_note(most, rows[most.first]["capture"]))


def _note(same: Same, first: str) -> str:
    where = "with the same times" if same.is_copied else "seen at another place"
    if same.behind_ns is not None and abs(same.behind_ns) > _SAME_CLOCK_NS:
        side = "behind" if same.behind_ns > 0 else "ahead"
        where += f", where the clock is about {in_time(abs(same.behind_ns))} {side}"
    return (
        f"holds packets of {first}, {where} ({same.common} of {same.looked_at} that were compared); "
        "what both show counts once"
    )


def find_places(names: Sequence[str], samples: Sequence[Samples]) -> CapturePoints:
    """`names` of captures in the order in which they are read, and what was kept of each."""
    same = tuple(_share(samples))
    if not same:
        return CapturePoints()
    numbers = dict(zip(names, _number(names, same), strict=True))
    return CapturePoints(numbers, same, _name(numbers))


def places_by_hand(
    places: Mapping[str, Sequence[str | os.PathLike[str]]], others: Sequence[str | os.PathLike[str]]
) -> CapturePoints | None:
    """The places that a user names, with their files; None where there are none. Raises UsageError for a
    capture that has two places, or none among `others`, and CaptureError where there are no files."""
    numbers: dict[str, int] = {}
    for number, paths in enumerate(places.values()):
        for name in find_captures(paths).captures:
            if numbers.setdefault(name, number) != number:
                raise UsageError(f"{printable(name)} is given for two places")
    if not numbers:
        return None
    left = [name for name in find_captures(others).captures if name not in numbers] if others else []
    if left:
        raise UsageError(
            f"{printable(left[0])} has no place; where --place names some, each capture needs one"
        )
    return CapturePoints(numbers, (), dict(enumerate(map(printable, places))))


def join_twins(
    places: CapturePoints, rows: Sequence[CaptureRow], apart: Iterable[tuple[str, str]]
) -> CapturePoints:
    """The places, with those that twins tell apart: behind NAT or a proxy, packets are others.

    `rows`: of captures, as they were read; `apart`: names of captures that hold a connection and its twin.
    Files of a rotation do, too, where one place sees both: their times do not overlap.
    """
    if places.numbers and not places.same:
        return places
    names = [row["capture"] for row in rows]
    pairs = {(min(pair), max(pair)) for pair in ((names.index(one), names.index(two)) for one, two in apart)}
    told = [Same(one, two, 0, 0, None, is_copied=False) for one, two in pairs if _overlap(rows, one, two)]
    same = [*places.same, *told]
    if not told:
        return places
    numbers = dict(zip(names, _number(names, same), strict=True))
    return CapturePoints(numbers, places.same, _name(numbers))


def _overlap(rows: Sequence[CaptureRow], one: int, other: int) -> bool:
    spans = [(rows[number]["first_time"], rows[number]["last_time"]) for number in (one, other)]
    if any(time is None for span in spans for time in span):
        return False
    common = min(span[1] for span in spans) - max(span[0] for span in spans)
    return bool(common > min(_OVERLAP_NS, *((last - first) // 2 for first, last in spans)))


def _name(numbers: Mapping[str, int]) -> dict[int, str]:
    """Each place by the name of its first file, with as much of its folder as tells places apart."""
    firsts: dict[int, str] = {}
    for name, number in numbers.items():
        firsts.setdefault(number, name)
    parts = {number: _stem(name) for number, name in firsts.items()}
    for depth in range(1, max(map(len, parts.values())) + 1):
        told = {number: "/".join(each[-depth:]) for number, each in parts.items()}
        if len({*told.values()}) == len(told):
            return told
    return {number: printable(name) for number, name in firsts.items()}


def _stem(name: str) -> tuple[str, ...]:
    """Parts of a path, the last one without its suffixes."""
    path = PurePath(printable(name))
    return (*path.parts[:-1], path.name.partition(".")[0] or path.name)


def _share(samples: Sequence[Samples]) -> Iterable[Same]:
    """Pairs of captures that share enough packets."""
    captures = np.concatenate([np.full(len(each.packets), n, np.int64) for n, each in enumerate(samples)])
    packets = np.concatenate([each.packets for each in samples])
    times = np.concatenate([each.times for each in samples])
    order = np.lexsort((captures, packets))
    packets, captures, times = packets[order], captures[order], times[order]
    begins = np.flatnonzero(np.append(True, packets[1:] != packets[:-1])) if len(packets) else packets
    ends = np.append(begins[1:], len(packets))
    number = Counter[tuple[int, int]]()
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    apart: set[tuple[int, int]] = set()
    for begin, end in zip(begins[ends - begins > 1].tolist(), ends[ends - begins > 1].tolist(), strict=True):
        direction = int(packets[begin]) & 1
        for one, other in combinations(range(begin, min(end, begin + _MOST_ALIKE)), 2):
            pair = int(captures[one]), int(captures[other])
            took = int(times[one]) - int(times[other])
            number[pair] += 1
            if took:
                apart.add(pair)
            if number[pair] <= _MOST_TIMES:
                found.setdefault(pair, []).append((direction, took))
    for (first, other), common in sorted(number.items()):
        looked_at = _looked_at(samples[first], samples[other])
        if common >= _ENOUGH or (common >= _FEW and common >= _SHARE * looked_at):
            pair = first, other
            yield Same(first, other, common, looked_at, _behind(found[pair]), pair not in apart)


def _looked_at(one: Samples, other: Samples) -> int:
    """Packets that both would have kept, of the capture that has fewer of them."""
    mask = np.uint64(one.mask | other.mask)
    return min(int(((each.packets >> _MARK_AT & mask) == 0).sum()) for each in (one, other))


def _behind(told: Sequence[tuple[int, int]]) -> int | None:
    """The way between two places makes the differences of one direction longer and those of the other one
    shorter: the middle is the clock's."""
    sides = [[took for side, took in told if side == direction] for direction in (0, 1)]
    middles = [float(np.median(side)) for side in sides if side]
    behind = sum(middles) / len(middles)
    return round(behind) if abs(behind) < 1 << 62 else None


def _number(names: Sequence[str], same: Sequence[Same]) -> list[int]:
    """A place for each capture: none that it shares packets with has the same.

    Where several would do, that of the capture that is called alike but for figures, as files of one recorder
    are; else the first.
    """
    beside: dict[int, set[int]] = {}
    for each in same:
        beside.setdefault(each.other, set()).add(each.first)
    numbers: list[int] = []
    kinds: dict[str, int] = {}
    for number, name in enumerate(names):
        taken = {numbers[other] for other in beside.get(number, ())}
        kind = re.sub(r"\d+", "", name)
        place = kinds.get(kind, 0)
        if place in taken:
            place = next(each for each in range(len(names) + 1) if each not in taken)
        kinds[kind] = place
        numbers.append(place)
    return numbers
