"""Where the time of calls went, added up by API, client, broker and topic, in bounded memory."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import whole_numbers
from kwsniff.tables.grouping import Groups
from kwsniff.tables.schema import TABLES

MOST_KEYS = 10_000
"""Clients, brokers, topics that are added up one by one; what comes after is added up together."""
OTHERS: Final = "(others)"

PARTS: Final = tuple(
    column.name
    for column in TABLES["latencies"].columns
    if column.unit == "nanoseconds" and column.name not in ("total_ns", "round_trip_ns", "zero_window_ns")
)
_DELIBERATE: Final = PARTS.index("deliberate_wait_ns")
_DIMENSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "apis": ("api_key", "api_name"),
    "clients": ("client_id",),
    "brokers": ("broker_address", "broker_port"),
}

_KEYS: Final = tuple(name for names in _DIMENSIONS.values() for name in names)

Key = tuple[Any, ...]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Sums:
    """Calls, their parts, and the longest of them without its deliberate wait, for one key."""

    __slots__ = ("calls", "longest", "parts")

    def __init__(self) -> None:
        self.calls = 0
        self.longest = 0
        self.parts = [0] * len(PARTS)

    def add(self, calls: int, longest: int, parts: Sequence[int]) -> None:
        """More calls of this key, added up."""
        self.calls += calls
        self.longest = max(self.longest, longest)
        self.parts = [mine + more for mine, more in zip(self.parts, parts, strict=True)]

    @property
    def active(self) -> float:
        """Mean time of a call without its deliberate wait."""
        return (sum(self.parts) - self.parts[_DELIBERATE]) / max(self.calls, 1)

    def as_dict(self) -> dict[str, Any]:
        """Nanoseconds; `dominant` is the largest part, `dominant_share` its share of all time."""
        total = sum(self.parts)
        largest = max(range(len(PARTS)), key=self.parts.__getitem__)
        return {
            "calls": self.calls,
            "total_ns": total,
            "mean_ns": total // max(self.calls, 1),
            "mean_active_ns": round(self.active),
            "max_active_ns": self.longest,
            **dict(zip(PARTS, self.parts, strict=True)),
            "dominant": PARTS[largest] if total else None,
            "dominant_share": round(self.parts[largest] / total, 4) if total else None,
        }


class Shares:
    """Adds up batches of latencies; topics come from the rows of api_calls with the same call ids."""

    def __init__(self) -> None:
        self._sums: dict[str, dict[Key, Sums]] = {name: {} for name in (*_DIMENSIONS, "topics")}

    def add(self, latencies: pa.RecordBatch, calls: pa.RecordBatch | None) -> None:
        """`calls`: the rows of api_calls that were taken together with these latencies, if there are any."""
        if not latencies.num_rows:
            return
        parts = [whole_numbers(latencies[name], null=0) for name in PARTS]
        active = whole_numbers(latencies["total_ns"], null=0) - parts[_DELIBERATE]
        # Added up once for all combinations, of which there are few, and then for each dimension of these.
        groups = Groups(latencies, _KEYS)
        labels = [dict(zip(_KEYS, label, strict=True)) for label in groups.labels()]
        for place, sums in _added(groups.numbers, active, parts):
            for dimension, names in _DIMENSIONS.items():
                self._count(dimension, tuple(labels[place][name] for name in names), *sums)
        if calls is not None:
            self._add_topics(latencies, calls, active, parts)

    def _add_topics(
        self, latencies: pa.RecordBatch, calls: pa.RecordBatch, active: Numbers, parts: Sequence[Numbers]
    ) -> None:
        topics = calls["topics"]
        ends = np.frombuffer(topics.buffers()[1], np.int32)[topics.offset : topics.offset + len(topics) + 1]
        words, codes = topics.values.dictionary, whole_numbers(topics.values.indices, null=0)
        starts, lengths = ends[:-1], ends[1:] - ends[:-1]
        asked, wanted = (whole_numbers(batch["call_id"], null=0) for batch in (calls, latencies))
        if not np.array_equal(asked, wanted):
            rows = _places(asked, wanted)
            starts, lengths = starts[rows], lengths[rows]
        most = lengths.max()
        if not most:
            return
        repeated = np.flatnonzero(lengths) if most == 1 else np.repeat(np.arange(len(lengths)), lengths)
        places = starts[repeated]
        if most > 1:
            places += np.arange(len(repeated)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        labels = words.to_pylist()
        chosen = [part[repeated] if part.any() else part[:0] for part in parts]
        for place, sums in _added(codes[places], active[repeated], chosen):
            self._count("topics", (labels[place],), *sums)

    def _count(self, dimension: str, key: Key, calls: int, longest: int, parts: Sequence[int]) -> None:
        sums = self._sums[dimension]
        if key not in sums and len(sums) >= MOST_KEYS:
            key = (OTHERS,) * len(key)
        sums.setdefault(key, Sums()).add(calls, longest, parts)

    def as_dict(self, names: Mapping[str, str]) -> dict[str, Any]:
        """By dimension, what is slowest without deliberate waits first. `names`: topic id -> topic."""
        return {dimension: list(self._ranked(dimension, names)) for dimension in self._sums}

    def _ranked(self, dimension: str, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        columns = _DIMENSIONS.get(dimension, ("topic",))
        sums = self._sums[dimension]
        if dimension == "topics":
            merged: dict[Key, Sums] = {}
            for (topic,), found in sums.items():
                named = merged.setdefault((names.get(topic, topic),), Sums())
                named.add(found.calls, found.longest, found.parts)
            sums = merged
        for key, found in sorted(sums.items(), key=lambda item: -item[1].active):
            yield {**dict(zip(columns, key, strict=True)), **found.as_dict()}


def _added(
    numbers: Numbers, active: Numbers, parts: Sequence[Numbers]
) -> Iterator[tuple[int, tuple[int, int, list[int]]]]:
    """Group, rows, greatest active time, sum of each part; `numbers` is the group of each row.

    A part without rows is zero for all.
    """
    counts = np.bincount(numbers)
    longest = np.zeros(len(counts), np.int64)
    np.maximum.at(longest, numbers, active)
    sums = [_sums(numbers, part, len(counts)) for part in parts]
    for group in np.flatnonzero(counts).tolist():
        yield group, (int(counts[group]), int(longest[group]), [int(added[group]) for added in sums])


def _sums(numbers: Numbers, part: Numbers, groups: int) -> Numbers:
    sums = np.zeros(groups, np.int64)
    if len(part):
        np.add.at(sums, numbers, part)
    return sums


def _places(asked: Numbers, wanted: Numbers) -> Numbers:
    """Where each of the wanted ids stands among those asked, all of which are there."""
    first = int(asked.min())
    span = int(asked.max()) - first + 1
    if span > 16 * len(asked):
        order = np.argsort(asked, kind="stable")
        return order[np.searchsorted(asked[order], wanted)]
    places = np.zeros(span, np.int64)
    places[asked - first] = np.arange(len(asked))
    return places[wanted - first]
