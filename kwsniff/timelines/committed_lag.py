"""Committed lag: committed offsets of groups, relative to the log end in any earlier response.

Calls in the order in which they ended:

    Fetch orders-0: end 120    Produce orders-0: end 131    OffsetCommit orders-0: 90    -> lag 41

The highest end counts, because responses overtake each other and followers lag. Messages have topic names
or ids; earlier Metadata responses map one to the other. Memory is bounded.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.passes import follow_ends
from kwsniff.layout.catalog import Catalog
from kwsniff.tables.arrays import (
    Numbers,
    numbers,
    texts,
    valid_rows,
    whole_numbers,
    words_of,
)
from kwsniff.tables.compute import dictionary_encode, filter_rows
from kwsniff.tables.schema import TABLES, coded_schema
from kwsniff.timelines.decoded_messages import PLACE
from kwsniff.timelines.memory_budget import RECORD, SHORT, MemoryBudget
from kwsniff.timelines.metadata.topic_names import News

MOST_PARTITIONS = 200_000
"""Maximum partitions with a stored end; beyond that, the one with the oldest update is dropped."""

_TAKEN: Final = (
    "call_id",
    "capture",
    "connection_id",
    "client_id",
    "group_id",
    "time",
    "topic",
    "topic_id",
    "partition",
)
"""Columns of commits that are copied from the calls' rows."""

NOT_KNOWN: Final = -1


class End(NamedTuple):
    """The log end of a partition, the time (microseconds, or NOT_KNOWN) and the call of its last report."""

    offset: int
    time: int
    call_id: int


def later(before: End | None, end: End) -> End:
    """The greater of two ends; of equal ones, the later report."""
    return end if before is None or end.offset >= before.offset else before


Place = tuple[str, int]
"""Name, or # and id of the topic, and number of the partition."""

_NO_END = End(-1, NOT_KNOWN, -1)
_PARTITION = 0xFFFFFFFF
_FEW = 1 << 14
_BYTES_OF_AN_END: Final = RECORD - SHORT


class Commits:
    """Tracks partitions through the batches of offsets.py; `batches`: rows of the table commits."""

    def __init__(self, catalog: Catalog, budget: MemoryBudget | None = None) -> None:
        self._budget = MemoryBudget() if budget is None else budget
        self.batches: list[pa.RecordBatch] = []
        self.forgotten = 0
        """Ends dropped because of MOST_PARTITIONS or the memory limit."""
        self._apis = {key: api.name for key, api in catalog.apis.items()}
        self._schema = coded_schema(TABLES["commits"])
        self._ends: dict[Place, End] = {}
        self._names: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def add(self, offsets: pa.RecordBatch, news: Sequence[News]) -> None:
        """Takes rows in the order in which their calls ended; `news`: topics named meanwhile."""
        places = whole_numbers(offsets[PLACE], null=0)
        begin = 0
        for each in news:
            end = int(np.searchsorted(places, each.place))
            self._take(offsets.slice(begin, end - begin))
            begin = end
            self._add_name(each)
        self._take(offsets.slice(begin))

    def add_log_ends(self, offsets: pa.RecordBatch) -> list[Place]:
        """Takes log ends of partitions, and returns the committed ones, without their rows."""
        commits = np.flatnonzero(whole_numbers(offsets["committed"], null=-1) >= 0)
        told = _Told(offsets, commits, lambda _: None)
        self._note(told)
        return told.places

    @property
    def ends(self) -> Mapping[Place, End]:
        """Log ends of partitions, in the order of their last reports."""
        return self._ends

    def join_states(self, ends: Mapping[Place, End], news: Sequence[News]) -> None:
        """Continues from the states of others: their partitions and topics."""
        for each in news:
            self._add_name(each)
        self._ends = dict(ends)
        self._budget.charge(_BYTES_OF_AN_END * len(ends))

    def drain(self, at_least: int) -> Iterator[pa.RecordBatch]:
        """The rows, if there are enough."""
        if sum(batch.num_rows for batch in self.batches) >= at_least:
            yield from self.batches
            self.batches.clear()

    def state(self) -> tuple[Any, ...]:
        """The state for `resume`, without rows."""
        return self.forgotten, {key: tuple(end) for key, end in self._ends.items()}, self._names, self._ids

    def resume(self, state: tuple[Any, ...]) -> None:
        """Continues from a saved state."""
        self.forgotten, ends, self._names, self._ids = state
        self._ends = {key: End(*end) for key, end in ends.items()}

    def finish(self) -> None:
        """Ends the input."""
        self._budget.charge(-_BYTES_OF_AN_END * len(self._ends))
        self._ends.clear()

    def _take(self, offsets: pa.RecordBatch) -> None:
        if not offsets.num_rows:
            return
        commits = np.flatnonzero(whole_numbers(offsets["committed"], null=-1) >= 0)
        told = _Told(offsets, commits, self._other)
        if len(commits):
            self._commit(offsets, commits, told)
        self._note(told)

    def _add_name(self, news: News) -> None:
        self._names[f"#{news.topic_id}"] = news.name
        self._ids[news.name] = f"#{news.topic_id}"

    def _note(self, told: "_Told") -> None:
        for place, end in told.latest():
            # Removed and reinserted, so that the first one has the oldest report.
            before = self._ends.pop(place, None)
            self._budget.charge(0 if before else _BYTES_OF_AN_END)
            self._ends[place] = later(before, end)
        while self._ends and (len(self._ends) > MOST_PARTITIONS or self._budget.is_full):
            self.forgotten += 1
            self._budget.left_out += 1
            self._budget.charge(-_BYTES_OF_AN_END)
            del self._ends[next(iter(self._ends))]

    def _commit(self, offsets: pa.RecordBatch, commits: Numbers, told: "_Told") -> None:
        best = _Best(_collect_ends(self._ends.get(place) for place in told.places)[:, told.which])
        best.better(told.before)
        if any(told.others):
            others = (self._ends.get(place) if place else None for place in told.others)
            best.better(_collect_ends(others)[:, told.which])
            best.better(told.beside)
        chosen = np.zeros(offsets.num_rows, np.bool_)
        chosen[commits] = True
        self.batches.append(self._rows(filter_rows(offsets, chosen), best))

    def _other(self, place: Place) -> Place | None:
        """The same partition under the other kind of topic name."""
        word, partition = place
        known = self._names.get(word) or self._ids.get(word)
        return (known, partition) if known else None

    def _rows(self, rows: pa.RecordBatch, best: "_Best") -> pa.RecordBatch:
        committed = whole_numbers(rows["committed"], null=0)
        moments = whole_numbers(rows["response_end_time"], null=NOT_KNOWN)
        known = best.offset >= 0
        timed = known & (best.time != NOT_KNOWN) & (moments != NOT_KNOWN)
        age = np.where(timed, np.maximum(moments - best.time, 0) * 1000, 0)
        keys, which = np.unique(whole_numbers(rows["api_key"], null=0), return_inverse=True)
        names = texts([self._apis[key] for key in keys.tolist()])
        columns = {
            **{name: rows[name] for name in _TAKEN},
            "api_name": pa.DictionaryArray.from_arrays(numbers(pa.int32(), which.astype(np.int32)), names),
            "committed_offset": rows["committed"],
            "high_watermark": numbers(pa.int64(), best.offset, known),
            "high_watermark_age_ns": numbers(pa.int64(), age, timed),
            "high_watermark_call_id": numbers(pa.int64(), best.call_id, known),
            "lag": numbers(pa.int64(), best.offset - committed, best.offset >= committed),
            "lag_ns": pa.nulls(len(committed), pa.int64()),  # from the batches of deliveries
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)


def _collect_ends(ends: Iterator[End | None]) -> Numbers:
    """Offset, time, call id of each in rows of an array; offset -1: none."""
    return np.array([end or _NO_END for end in ends], np.int64).T


class _Best:
    """The highest end for each of many commits; of equal ones, the latest report."""

    def __init__(self, ends: Numbers) -> None:
        self.offset, self.time, self.call_id = (np.ascontiguousarray(each) for each in ends)

    def better(self, ends: Numbers) -> Self:
        """Takes ends that are higher, or equal and newer."""
        offset, time, call_id = ends
        newer = (time > self.time) | ((time == self.time) & (call_id > self.call_id))
        chosen = (offset > self.offset) | ((offset == self.offset) & newer)
        self.offset = np.where(chosen, offset, self.offset)
        self.time = np.where(chosen, time, self.time)
        self.call_id = np.where(chosen, call_id, self.call_id)
        return self


class _Told:
    """Ends reported in one batch, for each partition and before each commit.

    `places`: the distinct partitions of commits; `which`: the index for each commit; `others`: the same
    partitions under their other name. `before`, `beside`: the highest end before each commit under either
    name, from `_collect_ends`.
    """

    def __init__(
        self, offsets: pa.RecordBatch, commits: Numbers, other: Callable[[Place], Place | None]
    ) -> None:
        names, ids = offsets["topic"], offsets["topic_id"]
        self._words = [*words_of(names.dictionary), *(f"#{each}" for each in ids.dictionary.to_pylist())]
        self._numbers = {word: number for number, word in enumerate(self._words)}
        same = np.array([self._numbers[word] for word in self._words], np.int64)
        code = whole_numbers(names.indices, null=0)
        if ids.null_count < len(ids):
            by_id = whole_numbers(ids.indices, null=0).astype(np.int64) + len(names.dictionary)
            code = np.where(valid_rows(ids), by_id, code)
        partitions = whole_numbers(offsets["partition"], null=0).astype(np.int64) & _PARTITION
        self._own, slots = number_keys(same[code] << 32 | partitions)
        used, which = np.unique(slots[commits], return_inverse=True)
        self.which: Numbers = which
        self.places = [self._place(key) for key in self._own[used].tolist()]
        self.others = [other(place) for place in self.places]
        beside = np.array([self._slot(place) for place in self.others], np.int64)
        self._latest = np.full((3, len(self._own)), -1, np.int64)
        self.before = np.full((3, len(commits)), -1, np.int64)
        self.beside = np.full((3, len(commits)), -1, np.int64)

        def column(name: str, null: int) -> Numbers:
            return np.ascontiguousarray(whole_numbers(offsets[name], null), np.int64)

        follow_ends(
            slots, column("reached", -1), column("response_end_time", NOT_KNOWN), column("call_id", 0),
            commits, beside[which], self._latest, self.before, self.beside,
        )  # fmt: skip

    def latest(self) -> Iterator[tuple[Place, End]]:
        """The highest end of each partition."""
        told = np.flatnonzero(self._latest[0] >= 0)
        ends = self._latest[:, told].T.tolist()
        for key, end in zip(self._own[told].tolist(), ends, strict=True):
            yield self._place(key), End(*end)

    def _place(self, key: int) -> Place:
        """Word of the topic and partition."""
        return self._words[key >> 32], (key & _PARTITION ^ 1 << 31) - (1 << 31)

    def _slot(self, place: Place | None) -> int:
        """The inverse; -1 if this batch does not have it."""
        number = self._numbers.get(place[0]) if place else None
        if number is None or place is None:
            return -1
        key = number << 32 | place[1] & _PARTITION
        slot = int(np.searchsorted(self._own, key))
        return slot if slot < len(self._own) and self._own[slot] == key else -1


def number_keys(keys: Numbers) -> tuple[Numbers, Numbers]:
    """The distinct keys, sorted, and the index of each row's key."""
    words, partitions = keys >> 32, keys & _PARTITION
    wide = int(partitions.max(initial=0)) + 1
    if wide * (int(words.max(initial=0)) + 1) <= _FEW:
        # Small enough for a table.
        places = words * wide + partitions
        there = np.zeros(_FEW, np.bool_)
        there[places] = True
        small = np.flatnonzero(there)
        return small // wide << 32 | small % wide, (np.cumsum(there) - 1)[places]
    coded = dictionary_encode(numbers(pa.int64(), keys))
    own = whole_numbers(coded.dictionary, null=0)
    order = np.argsort(own)
    ranks = np.empty(len(own), np.int64)
    ranks[order] = np.arange(len(own))
    return own[order], ranks[whole_numbers(coded.indices, null=0)]
