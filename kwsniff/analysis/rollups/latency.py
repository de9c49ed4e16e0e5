"""Where the time of calls went, added up by API, client, broker and topic, in bounded memory.

A part of a call has causes: deliberate waits and time in line go by what was waited for.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.cause_sums import sum_causes
from kwsniff.core.columns.numbers import WholeColumn
from kwsniff.core.declared import ENUMS
from kwsniff.tables.arrays import column_of, whole_numbers, words_of
from kwsniff.tables.compute import take_rows
from kwsniff.tables.grouping import Groups
from kwsniff.tables.schema import TABLES
from kwsniff.timelines.offsets import find_places

MOST_KEYS = 10_000
"""Clients, brokers, topics that are added up one by one; what comes after is added up together."""
OTHERS: Final = "(others)"

PARTS: Final = tuple(
    column.name
    for column in TABLES["latencies"].columns
    if column.unit == "nanoseconds"
    and column.name not in ("total_ns", "zero_window_ns")
    and "round_trip" not in column.name
)
_WAITS: Final = ENUMS["wait"]
_BY_WAIT: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "queue_wait_ns": ("queued_behind_wait", _WAITS),
    "broker_ns": ("wait", ("none", "replicas_possible")),
    "deliberate_wait_ns": ("wait", _WAITS[1:]),
}
"""Part -> the column that says what was waited for, and its words; other words count as the first of them."""
CAUSES: Final = tuple((part, word) for part in PARTS for word in _BY_WAIT.get(part, ("", ("none",)))[1])
"""A part, and what was waited for meanwhile."""
_KINDS: Final = {"long_poll": "data"}  # of waits, where it is not the word without _possible
_POSSIBLE: Final = "_possible"
_WAIT_COLUMNS: Final = ("wait", "queued_behind_wait")
_COLUMN_OF_PART: Final = np.array(
    [_WAIT_COLUMNS.index(_BY_WAIT[part][0]) if part in _BY_WAIT else -1 for part in PARTS], np.int64
)
"""Which of these says the cause of each part; -1 for none."""
_WORDS: Final = {part: tuple(word for own, word in CAUSES if own == part) for part in PARTS}
_SPANS: Final = {
    part: slice(CAUSES.index((part, words[0])), CAUSES.index((part, words[-1])) + 1)
    for part, words in _WORDS.items()
}
"""Part -> the places of its causes."""
_DIMENSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "apis": ("api_key", "api_name"),
    "clients": ("client_id",),
    "brokers": ("broker_address", "broker_port"),
}

_KEYS: Final = tuple(name for names in _DIMENSIONS.values() for name in names)


def _name(part: str, word: str) -> tuple[str, str]:
    """The part, and the kind of wait."""
    kind = word.removesuffix(_POSSIBLE)
    return part, _KINDS.get(kind, kind) if part != "broker_ns" else "none"


_NAMED: Final = [_name(part, word) for part, word in CAUSES]
_ARE_POSSIBLE: Final = [word.endswith(_POSSIBLE) for _, word in CAUSES]
_LONGEST: Final = 1  # its place in a row of numbers
_MUCH: Final = 1 << 60

Key = tuple[Any, ...]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Sums:
    """Calls, their parts, and the longest of them without its deliberate wait, for one key."""

    __slots__ = ("calls", "causes", "longest")

    def __init__(self, calls: int, longest: int, causes: Sequence[int]) -> None:
        """`causes`: nanoseconds of each of CAUSES."""
        self.calls = calls
        self.longest = longest
        self.causes = causes

    def __add__(self, other: "Sums") -> "Sums":
        causes = [mine + more for mine, more in zip(self.causes, other.causes, strict=True)]
        return Sums(self.calls + other.calls, max(self.longest, other.longest), causes)

    @property
    def active(self) -> float:
        """Mean time of a call without its deliberate wait."""
        waited = sum(self.causes[_SPANS["deliberate_wait_ns"]])
        return (sum(self.causes) - waited) / max(self.calls, 1)

    def as_dict(self) -> dict[str, Any]:
        """Nanoseconds; `mostly`: the largest cause, and its share of all time."""
        parts = {part: sum(self.causes[span]) for part, span in _SPANS.items()}
        total = sum(parts.values())
        return {
            "calls": self.calls,
            "total_ns": total,
            "mean_ns": total // max(self.calls, 1),
            "mean_active_ns": round(self.active),
            "max_active_ns": self.longest,
            **parts,
            "waited_for": self._sum_waits("deliberate_wait_ns"),
            "in_line_behind": self._sum_waits("queue_wait_ns"),
            "mostly": self._mostly(total) if total else None,
        }

    def _sum_waits(self, part: str) -> dict[str, int]:
        """Word of `wait` -> nanoseconds of that part."""
        timed = zip(_WORDS[part], self.causes[_SPANS[part]], strict=True)
        return {word: took for word, took in timed if took}

    def _mostly(self, total: int) -> dict[str, Any]:
        """Part, kind of wait, whether that is only possible, share. Waits of a kind count together."""
        sums = dict.fromkeys(_NAMED, 0)
        possible = dict(sums)
        for named, is_possible, took in zip(_NAMED, _ARE_POSSIBLE, self.causes, strict=True):
            sums[named] += took
            if is_possible:
                possible[named] += took
        named, took = max(sums.items(), key=itemgetter(1))
        return {
            "part": named[0],
            "wait": named[1],
            "possible": 2 * possible[named] > took,
            "share": round(took / total, 4),
        }


class Table:
    """Sums by key. Current ones are one row of numbers per key: calls, the longest, CAUSES."""

    def __init__(self) -> None:
        self._places: dict[Key, int] = {}
        self._rows = np.zeros((0, len(CAUSES) + 2), np.int64)
        self._folded: dict[Key, Sums] = {}
        """What would not fit into 64 bits for much longer."""

    def add(self, keys: Sequence[Key], which: Numbers, rows: Numbers) -> None:
        """Adds rows. `which`: the key of each, by its index."""
        places = np.array([self._place(key) for key in keys], np.int64)[which]
        if (missing := len(self._places) - len(self._rows)) > 0:
            self._rows = np.pad(self._rows, ((0, max(missing, len(self._rows))), (0, 0)))
        np.maximum.at(self._rows[:, _LONGEST], places, rows[:, _LONGEST])
        order = np.argsort(places, kind="stable")
        different = np.flatnonzero(np.diff(places[order], prepend=-1))
        for columns in (np.s_[:_LONGEST], np.s_[_LONGEST + 1 :]):
            self._rows[places[order[different]], columns] += np.add.reduceat(rows[order, columns], different)
        if np.abs(self._rows).max() > _MUCH:
            self._folded = dict(self.sums())
            self._rows[:] = 0

    def sums(self) -> Iterator[tuple[Key, Sums]]:
        """Keys in the order in which they came."""
        for key, place in self._places.items():
            calls, longest, *causes = self._rows[place].tolist()
            sums = Sums(calls, longest, causes)
            yield key, self._folded[key] + sums if key in self._folded else sums

    def _place(self, key: Key) -> int:
        if key not in self._places and len(self._places) >= MOST_KEYS:
            key = (OTHERS,) * len(key)
        return self._places.setdefault(key, len(self._places))


class Shares:
    """Adds up batches of latencies; topics come from the rows of api_calls with the same call ids."""

    def __init__(self) -> None:
        self._tables: dict[str, Table] = {name: Table() for name in (*_DIMENSIONS, "topics")}

    def add(self, latencies: pa.RecordBatch, calls: pa.RecordBatch | None) -> None:
        """`calls`: the rows of api_calls that were taken together with these latencies, if there are any."""
        if not latencies.num_rows:
            return
        # Added up once for all combinations, of which there are few, and then for each dimension of these.
        groups = Groups(latencies, _KEYS)
        firsts = take_rows(latencies.select(list(_KEYS)), groups.firsts)
        sums = np.zeros((firsts.num_rows, len(CAUSES) + 2), np.int64)
        asked = _Topics(latencies, calls) if calls is not None else _NO_TOPICS
        by_topic = np.zeros((len(asked.words), len(CAUSES) + 2), np.int64)
        columns, causes = _columns_of(latencies, groups.numbers)
        spans = asked.starts, asked.lengths, asked.codes
        sum_causes(columns, _COLUMN_OF_PART, causes, *spans, sums, by_topic)
        for dimension, names in _DIMENSIONS.items():
            of = Groups(firsts, names)
            self._tables[dimension].add(list(of.labels()), of.numbers, sums)
        said = np.flatnonzero(by_topic[:, 0])
        if len(said):
            labels = words_of(asked.words)
            named = [(labels[code],) for code in said.tolist()]
            self._tables["topics"].add(named, np.arange(len(named)), by_topic[said])

    def as_dict(self, names: Mapping[str, str]) -> dict[str, Any]:
        """By dimension, what is slowest without deliberate waits first. `names`: topic id -> topic."""
        return {dimension: list(self._rank(dimension, names)) for dimension in self._tables}

    def _rank(self, dimension: str, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        columns = _DIMENSIONS.get(dimension, ("topic",))
        sums: dict[Key, Sums] = {}
        for said, found in self._tables[dimension].sums():
            key = (names.get(said[0], said[0]),) if dimension == "topics" else said
            sums[key] = sums[key] + found if key in sums else found
        for key, found in sorted(sums.items(), key=lambda item: -item[1].active):
            yield {**dict(zip(columns, key, strict=True)), **found.as_dict()}


class _Topics:
    """The topics of each row of latencies: codes beside each other."""

    def __init__(self, latencies: pa.RecordBatch, calls: pa.RecordBatch) -> None:
        topics = calls["topics"]
        ends = np.frombuffer(topics.buffers()[1], np.int32)[topics.offset : topics.offset + len(topics) + 1]
        self.words = topics.values.dictionary
        self.codes = whole_numbers(topics.values.indices, null=0).astype(np.int64)
        starts, lengths = ends[:-1].astype(np.int64), np.diff(ends).astype(np.int64)
        asked, wanted = (whole_numbers(batch["call_id"], null=0) for batch in (calls, latencies))
        if not np.array_equal(asked, wanted):
            rows, _ = find_places(asked, wanted)
            starts, lengths = starts[rows], lengths[rows]
        self.starts, self.lengths = starts, lengths


class _NoTopics:
    words: Sequence[str] = ()
    starts = lengths = codes = np.zeros(0, np.int64)


_NO_TOPICS: Final = _NoTopics()


def _columns_of(latencies: pa.RecordBatch, groups: Numbers) -> tuple[tuple[WholeColumn, ...], Numbers]:
    """What `sum_causes` reads, and the cause of each part by the code of its word."""
    words = [latencies[name] for name in _WAIT_COLUMNS]
    listed = [column.dictionary.to_pylist() for column in words]
    causes = np.zeros((len(PARTS), max(map(len, listed)) + 1), np.int64)
    for row, part in zip(causes, PARTS, strict=True):
        row[:] = _SPANS[part].start
        if part in _BY_WAIT:
            column, known = _BY_WAIT[part]
            for code, word in enumerate(listed[_WAIT_COLUMNS.index(column)]):
                row[code] += known.index(word) if word in known else 0
    columns = (
        *(column_of(latencies[name]) for name in ("total_ns", "deliberate_wait_ns")),
        WholeColumn(groups, groups.itemsize, 0, len(groups)),
        *(column_of(column.indices) for column in words),
        *(column_of(latencies[part]) for part in PARTS),
    )
    return columns, causes
