"""Counters, gauges and histograms with labels, in the text formats of Prometheus and OpenMetrics.

Label values come from the wire, so their number and length are limited. Every label has at most MOST_SERIES
values. When a new value exceeds that, series idle for IDLE_S are dropped with their counts; if there are
none,
the new value becomes "other". A long value is replaced by its beginning and a hash.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

import numpy as np

from kwsniff.tables.arrays import Numbers
from kwsniff.texts import clean

MOST_SERIES: Final = 200
MOST_PAIRS: Final = 5 * MOST_SERIES
LONGEST_LABEL: Final = 120
IDLE_S: Final = 600.0
OTHER: Final = "other"
EDGES_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper edges of the histograms, in seconds."""

_EDGES_NS = np.array([round(edge * 1e9) for edge in EDGES_S], np.int64)
_SHORT_LABEL = 96

Key = tuple[str, ...]


class Histogram:
    """A histogram of nanoseconds, with the buckets of EDGES_S."""

    __slots__ = ("buckets", "total_ns")

    def __init__(self) -> None:
        self.buckets = np.zeros(len(EDGES_S) + 1, np.int64)
        self.total_ns = 0

    def add(self, values: Numbers) -> None:
        """Adds values."""
        places = np.searchsorted(_EDGES_NS, values, side="left")
        self.buckets += np.bincount(places, minlength=len(self.buckets))
        self.total_ns += int(values.sum())


@dataclass(slots=True)
class Family:
    """One metric. `name` is without its suffix."""

    name: str
    kind: str
    says: str
    labels: tuple[str, ...] = ()
    values: dict[Key, Any] = field(default_factory=dict)


class Series:
    """All families. Not thread-safe."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._families: dict[str, Family] = {}
        self._known: dict[str, OrderedDict[str, float]] = {}

    def declare(self, name: str, kind: str, says: str, *labels: str) -> None:
        """A counter, gauge or histogram: its name without `kwsniff_` and without suffix."""
        self._families[name] = Family(name, kind, says, labels)

    @property
    def families(self) -> Mapping[str, Family]:
        """By name."""
        return self._families

    def count(self, name: str, number: float, *values: Any) -> None:
        """Adds to a counter."""
        family = self._families[name]
        key = self._key(family, values)
        family.values[key] = family.values.get(key, 0) + number

    def time(self, name: str, taken: Numbers, *values: Any) -> None:
        """Adds nanoseconds to a histogram."""
        if len(taken):
            family = self._families[name]
            family.values.setdefault(self._key(family, values), Histogram()).add(taken)

    def show(self, name: str, values: Mapping[tuple[Any, ...], float]) -> None:
        """Sets all values of a gauge, and drops the previous ones."""
        family = self._families[name]
        shown: dict[Key, float] = {}
        for given, value in values.items():
            if len(shown) < MOST_SERIES:
                shown[tuple(_text(each) for each in given)] = value
        family.values = shown

    def level(self, name: str, value: float | None) -> None:
        """Sets a gauge without labels; None: unknown."""
        self._families[name].values = {} if value is None else {(): value}

    def _key(self, family: Family, values: tuple[Any, ...]) -> Key:
        key = tuple(self._bound(label, value) for label, value in zip(family.labels, values, strict=True))
        if len(key) > 1 and key not in family.values and len(family.values) >= MOST_PAIRS:
            return tuple(OTHER for _ in key)  # each label is limited, so combinations are too
        return key

    def _bound(self, label: str, value: Any) -> str:
        known = self._known.setdefault(label, OrderedDict())
        text = _text(value)
        if text not in known and len(known) >= MOST_SERIES:
            self._give_back(label, known)
            if len(known) >= MOST_SERIES:
                return OTHER
        known[text] = self._now()
        known.move_to_end(text)
        return text

    def _give_back(self, label: str, known: OrderedDict[str, float]) -> None:
        gone = set()
        while known and next(iter(known.values())) < self._now() - IDLE_S:
            gone.add(known.popitem(last=False)[0])
        for family in self._families.values() if gone else ():
            for place, name in enumerate(family.labels):
                if name == label:
                    family.values = {key: one for key, one in family.values.items() if key[place] not in gone}

    def text(self, *, openmetrics: bool = False) -> str:
        """All metrics: Prometheus' text format 0.0.4, or OpenMetrics 1.0.0."""
        lines: list[str] = []
        for family in self._families.values():
            lines += _lines(family, openmetrics=openmetrics)
        lines += ["# EOF"] if openmetrics else []
        return "".join(f"{line}\n" for line in lines)


def _lines(family: Family, *, openmetrics: bool) -> Iterator[str]:
    suffix = "_total" if family.kind == "counter" else ""
    about = family.name if openmetrics else f"{family.name}{suffix}"
    kind = family.kind
    if family.name.endswith("_info"):
        about, kind = (about.removesuffix("_info"), "info") if openmetrics else (about, "gauge")
    if not family.values:
        return
    prefix = "" if family.name.startswith("process_") else "kwsniff_"
    yield f"# HELP {prefix}{about} {family.says}"
    yield f"# TYPE {prefix}{about} {kind}"
    for key, value in family.values.items():
        pairs = ",".join(f'{name}="{_escape(text)}"' for name, text in zip(family.labels, key, strict=True))
        if isinstance(value, Histogram):
            yield from _histogram(f"{prefix}{family.name}", pairs, value)
        else:
            yield f"{prefix}{family.name}{suffix}{{{pairs}}} {value!r}".replace("{}", "")


def _histogram(name: str, pairs: str, histogram: Histogram) -> Iterator[str]:
    running = np.cumsum(histogram.buckets).tolist()
    for edge, count in zip((*map(repr, EDGES_S), "+Inf"), running, strict=True):
        yield f'{name}_bucket{{{pairs},le="{edge}"}} {count}'
    yield f"{name}_sum{{{pairs}}} {histogram.total_ns / 1e9!r}"
    yield f"{name}_count{{{pairs}}} {running[-1]}"


def _text(value: Any) -> str:
    text = "" if value is None else clean(str(value))
    if len(text) <= LONGEST_LABEL:
        return text
    return f"{text[:_SHORT_LABEL]}… ({blake2b(text.encode(), digest_size=6).hexdigest()})"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
