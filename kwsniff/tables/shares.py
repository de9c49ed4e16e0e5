"""Where the time of calls went, added up by API, client, broker and topic, in bounded memory."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import whole_numbers
from kwsniff.tables.groups import Groups
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
        for dimension, columns in _DIMENSIONS.items():
            groups = Groups(latencies, columns)
            self._count(dimension, list(groups.labels()), groups.numbers, active, parts)
        if calls is not None:
            self._add_topics(latencies, calls, active, parts)

    def _add_topics(
        self, latencies: pa.RecordBatch, calls: pa.RecordBatch, active: Numbers, parts: Sequence[Numbers]
    ) -> None:
        topics = calls["topics"]
        ends = np.frombuffer(topics.buffers()[1], np.int32)[topics.offset : topics.offset + len(topics) + 1]
        words, codes = topics.values.dictionary, whole_numbers(topics.values.indices, null=0)
        asked = whole_numbers(calls["call_id"], null=0)
        order = np.argsort(asked, kind="stable")
        found = np.searchsorted(asked[order], whole_numbers(latencies["call_id"], null=0))
        rows = order[np.minimum(found, len(order) - 1)]
        lengths = (ends[1:] - ends[:-1])[rows]
        repeated = np.repeat(np.arange(len(rows)), lengths)
        if not len(repeated):
            return
        starts = np.repeat(ends[:-1][rows] - (np.cumsum(lengths) - lengths), lengths)
        numbers = codes[starts + np.arange(len(repeated))]
        labels = [(word,) for word in words.to_pylist()]
        self._count("topics", labels, numbers, active[repeated], [part[repeated] for part in parts])

    def _count(
        self,
        dimension: str,
        labels: Sequence[Key],
        numbers: Numbers,
        active: Numbers,
        parts: Sequence[Numbers],
    ) -> None:
        """`numbers`: the place of each row's key in `labels`."""
        sums = self._sums[dimension]
        counts = np.bincount(numbers, minlength=len(labels))
        longest = np.zeros(len(labels), np.int64)
        np.maximum.at(longest, numbers, active)
        added = [np.bincount(numbers, part, len(labels)) for part in parts]
        for place in np.flatnonzero(counts).tolist():
            key = labels[place]
            if key not in sums and len(sums) >= MOST_KEYS:
                key = (OTHERS,) * len(key)
            found = sums.setdefault(key, Sums())
            found.add(int(counts[place]), int(longest[place]), [int(column[place]) for column in added])

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
