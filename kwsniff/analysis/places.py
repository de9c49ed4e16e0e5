"""The places where calls were captured, and the offset of their clocks from a reference place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from kwsniff.analysis.clocks import Clock, Numbers
from kwsniff.tables.captures import CaptureRow

CLOCK: Final = ("clock_offset_ns", "clock_error_ns", "clock_drift_ppm")
"""Columns of captures that tell of a clock."""


@dataclass(slots=True)
class Place:
    """What is known of one place. Microseconds."""

    name: str
    number: int
    parent: int | None = None
    """The place to which its clock was compared; None for the reference, and where nothing tells it."""
    clock: Clock | None = None
    """By how much the clock of the one with the higher number is ahead."""
    base: float = 0.0
    """By how much this clock is ahead of the reference's, about."""
    is_told: bool = False
    error: float = 0.0
    side: str | None = None


@dataclass(slots=True)
class Places:
    """The places of a run, and their clocks."""

    found: dict[int, Place] = field(default_factory=dict)

    @property
    def with_clocks(self) -> set[int]:
        """Those whose clocks are known."""
        return {number for number, place in self.found.items() if place.is_told}

    def ahead(self, number: int, times: Numbers) -> Numbers:
        """How far a clock is ahead of the reference's, at times of the reference."""
        place = self.found[number]
        if place.parent is None or place.clock is None:
            return np.zeros(len(times))
        first = min(number, place.parent)
        sign = 1 if number > place.parent else -1
        own = place.clock.at(times + self.found[first].base)
        found: Numbers = self.ahead(place.parent, times) + sign * own
        return found

    def fill_clocks(self, rows: Sequence[CaptureRow], numbers_: Mapping[str, int]) -> None:
        """Fills the columns of places in rows of captures."""
        for row in rows:
            number = numbers_.get(row["capture"])
            place = None if number is None else self.found.get(number)
            if place is None:
                continue
            row["place"] = place.name
            if place.is_told:
                middle, drift = self._middle(place)
                row["clock_offset_ns"] = round(1000 * middle)
                row["clock_error_ns"] = round(1000 * place.error)
                row["clock_drift_ppm"] = drift

    def as_dicts(self, captures: Sequence[CaptureRow]) -> list[dict[str, object]]:
        """For the summary: nearest to the client first."""
        order = ["client", "between", "broker", None]
        told: list[dict[str, object]] = []
        for place in sorted(self.found.values(), key=lambda each: (order.index(each.side), each.number)):
            rows = [row for row in captures if row["place"] == place.name]
            clock = {name: rows[0][name] for name in CLOCK} if rows else dict.fromkeys(CLOCK)
            drift = place.clock.main.drift_error if place.clock else None
            told.append({
                "place": place.name, "side": place.side, "captures": len(rows), **clock,
                "clock_drift_error_ppm": None if drift is None else drift * 1e6,
                "clock_steps": len(place.clock.lines) - 1 if place.clock else 0,
                "is_reference": place.is_told and place.parent is None,
            })  # fmt: skip
        return told

    def _middle(self, place: Place) -> tuple[float, float]:
        if place.clock is None or place.parent is None:
            return 0.0, 0.0
        sign = 1 if place.number > place.parent else -1
        first = min(place.number, place.parent)
        at = np.array([place.clock.main.middle - self.found[first].base])
        parent = self._middle(self.found[place.parent])[1]
        return float(self.ahead(place.number, at)[0]), sign * place.clock.main.drift * 1e6 + parent


def join_clocks(places: Places, pairs: Mapping[tuple[int, int], Clock | None]) -> None:
    """From the reference on, each clock by the pair that tells it best."""
    while True:
        told = places.with_clocks
        open_ = [
            (clock.main.error + places.found[one if one in told else other].error, one, other, clock)
            for (one, other), clock in pairs.items()
            if clock is not None and (one in told) != (other in told)
        ]
        if not open_:
            return
        error, one, other, clock = min(open_, key=lambda each: each[:3])
        parent, child = (one, other) if one in told else (other, one)
        place = places.found[child]
        place.parent, place.clock, place.is_told, place.error = parent, clock, True, error
        sign = 1 if child > parent else -1
        place.base = places.found[parent].base + sign * clock.main.offset
