"""Committed lag: what groups commit of a partition, against the end of it that somebody was told by then.

Calls in the order in which they ended:

    Fetch orders-0: end 120    Produce orders-0: end 131    OffsetCommit orders-0: 90    -> lag 41

The greatest end counts: answers overtake each other, and followers know of less. Messages name topics by name
or by id; Metadata responses that came before say which belong together. Memory is bounded.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.tables.arrays import (
    Bits,
    Numbers,
    flags,
    in_groups,
    numbers,
    texts,
    valid_rows,
    whole_numbers,
    words_of,
)
from kwsniff.tables.schema import TABLES, coded_schema
from kwsniff.timelines.details import PLACE
from kwsniff.timelines.topic_names import News

MOST_PARTITIONS = 200_000
"""Partitions whose end is remembered; beyond it the one that was told of longest ago is forgotten."""

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
"""Columns of commits that stand in the calls' rows as they are."""

NOT_KNOWN: Final = -1


class End(NamedTuple):
    """How far a partition reaches, when (microseconds, or NOT_KNOWN) and by which call that was told last."""

    offset: int
    time: int
    call_id: int


_NO_END = End(-1, NOT_KNOWN, -1)
_PARTITION = 0xFFFFFFFF
_ROOM = 1 << 62
_FEW = 1 << 14


class Commits:
    """Follows partitions through batches that `told` gives; `batches` are rows of the table commits."""

    def __init__(self, catalog: Catalog) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.forgotten = 0
        """Ends forgotten because of MOST_PARTITIONS."""
        self._apis = {key: api.name for key, api in catalog.apis.items()}
        self._schema = coded_schema(TABLES["commits"])
        self._ends: dict[tuple[str, int], End] = {}
        """By name, or # and id of the topic, and number of the partition."""
        self._names: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def add(self, offsets: pa.RecordBatch, news: Sequence[News]) -> None:
        """Takes rows in the order in which their calls ended; `news`: which topics were named meanwhile."""
        places = whole_numbers(offsets[PLACE], null=0)
        begin = 0
        for each in news:
            end = int(np.searchsorted(places, each.place))
            self._take(offsets.slice(begin, end - begin))
            begin = end
            self._names[f"#{each.topic_id}"] = each.name
            self._ids[each.name] = f"#{each.topic_id}"
        self._take(offsets.slice(begin))

    def take(self, at_least: int) -> Iterator[pa.RecordBatch]:
        """The rows, if there are so many."""
        if sum(batch.num_rows for batch in self.batches) >= at_least:
            yield from self.batches
            self.batches.clear()

    def state(self) -> tuple[Any, ...]:
        """What is followed, for `resume`; rows are not part of it."""
        return self.forgotten, {key: tuple(end) for key, end in self._ends.items()}, self._names, self._ids

    def resume(self, state: tuple[Any, ...]) -> None:
        """Goes on where another stood."""
        self.forgotten, ends, self._names, self._ids = state
        self._ends = {key: End(*end) for key, end in ends.items()}

    def finish(self) -> None:
        """No more calls come."""
        self._ends.clear()

    def _take(self, offsets: pa.RecordBatch) -> None:
        if not offsets.num_rows:
            return
        told = _Told(offsets)
        commits = np.flatnonzero(whole_numbers(offsets["committed"], null=-1) >= 0)
        if len(commits):
            self._commit(offsets, commits, told)
        for place, end in told.latest():
            # Taken out and put back: the first one is the one that was told of longest ago.
            before = self._ends.pop(place, None)
            self._ends[place] = end if before is None or end.offset >= before.offset else before
        while len(self._ends) > MOST_PARTITIONS:
            self.forgotten += 1
            del self._ends[next(iter(self._ends))]

    def _commit(self, offsets: pa.RecordBatch, commits: Numbers, told: "_Told") -> None:
        own, which = np.unique(told.keys[commits], return_inverse=True)
        places = [told.place(key) for key in own.tolist()]
        others = [self._other(place) for place in places]
        other = np.array([told.key(place) for place in others], np.int64)
        best = _Best(_known(self._ends.get(place) for place in places)[:, which])
        best.better(told.before(own[which], commits))
        if any(others):
            best.better(_known(self._ends.get(place) if place else None for place in others)[:, which])
            best.better(told.before(other[which], commits))
        chosen = np.zeros(offsets.num_rows, np.bool_)
        chosen[commits] = True
        self.batches.append(self._rows(offsets.filter(flags(chosen)), best))

    def _other(self, place: tuple[str, int]) -> tuple[str, int] | None:
        """The same partition as messages of other versions name it."""
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
            "offset": rows["committed"],
            "high_watermark": numbers(pa.int64(), best.offset, known),
            "high_watermark_age_ns": numbers(pa.int64(), age, timed),
            "high_watermark_call_id": numbers(pa.int64(), best.call_id, known),
            "lag": numbers(pa.int64(), best.offset - committed, best.offset >= committed),
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)


def _known(ends: Iterator[End | None]) -> Numbers:
    """Offset, time, call id of each in rows of an array; offset -1: there is none."""
    return np.array([end or _NO_END for end in ends], np.int64).T


class _Best:
    """The greatest end of each of many commits; of equal ones the one told last."""

    def __init__(self, ends: Numbers) -> None:
        self.offset, self.time, self.call_id = (np.ascontiguousarray(each) for each in ends)

    def better(self, ends: Numbers) -> Self:
        """Takes those that are greater, or as great and newer."""
        offset, time, call_id = ends
        newer = (time > self.time) | ((time == self.time) & (call_id > self.call_id))
        chosen = (offset > self.offset) | ((offset == self.offset) & newer)
        self.offset = np.where(chosen, offset, self.offset)
        self.time = np.where(chosen, time, self.time)
        self.call_id = np.where(chosen, call_id, self.call_id)
        return self


class _Told:
    """Ends told by one batch, sorted by partition and then as they came.

    A key is a number of a topic's word and a partition: keys[row]. What is sorted has in place i the row
    rows[i], and the greatest end of its key up to there is that of place greatest[i].
    """

    def __init__(self, offsets: pa.RecordBatch) -> None:
        names, ids = offsets["topic"], offsets["topic_id"]
        self._words = [*words_of(names.dictionary), *(f"#{each}" for each in ids.dictionary.to_pylist())]
        self._numbers = {word: number for number, word in enumerate(self._words)}
        same = np.array([self._numbers[word] for word in self._words], np.int64)
        by_id: Bits = valid_rows(ids)
        code = np.where(
            by_id,
            whole_numbers(ids.indices, null=0).astype(np.int64) + len(names.dictionary),
            whole_numbers(names.indices, null=0),
        )
        self.keys = (
            same[code] << 32 | whole_numbers(offsets["partition"], null=0).astype(np.int64) & _PARTITION
        )
        reached = whole_numbers(offsets["reached"], null=-1)
        ends = np.flatnonzero(reached >= 0)
        self._own, which = _numbered(self.keys[ends])
        order = in_groups(which, len(self._own))
        self._rows, self._which = ends[order], which[order]
        self._begins = np.searchsorted(self._which, np.arange(len(self._own)))
        self._ends = np.stack(
            [
                reached[self._rows],
                whole_numbers(offsets["response_end_time"], null=NOT_KNOWN)[self._rows],
                whole_numbers(offsets["call_id"], null=0)[self._rows],
            ]
        )
        self._num = len(code)
        self._greatest = _greatest(self._ends[0], self._which, self._begins)

    def place(self, key: int) -> tuple[str, int]:
        """Word of the topic and partition."""
        return self._words[key >> 32], (key & _PARTITION ^ 1 << 31) - (1 << 31)

    def key(self, place: tuple[str, int] | None) -> int:
        """The other way around; -1 where this batch does not speak of it."""
        number = self._numbers.get(place[0]) if place else None
        return -1 if number is None or place is None else number << 32 | place[1] & _PARTITION

    def before(self, keys: Numbers, rows: Numbers) -> Numbers:
        """The greatest end of each key that was told in front of the row beside it, as `_known` has them."""
        found = np.repeat(np.array([_NO_END], np.int64).T, len(keys), axis=1)
        if not len(self._own):
            return found
        which = np.minimum(np.searchsorted(self._own, keys), len(self._own) - 1)
        at = np.searchsorted(self._which * self._num + self._rows, which * self._num + rows) - 1
        there = (self._own[which] == keys) & (at >= self._begins[which])
        found[:, there] = self._ends[:, self._greatest[at[there]]]
        return found

    def latest(self) -> Iterator[tuple[tuple[str, int], End]]:
        """The greatest end of each partition."""
        if len(self._own):
            lasts = np.concatenate([self._begins[1:], [len(self._rows)]]) - 1
            ends = self._ends[:, self._greatest[lasts]].T.tolist()
            for key, end in zip(self._own.tolist(), ends, strict=True):
                yield self.place(key), End(*end)


def _numbered(keys: Numbers) -> tuple[Numbers, Numbers]:
    """The different keys, sorted, and the place of each row's key among them."""
    words, partitions = keys >> 32, keys & _PARTITION
    wide = int(partitions.max(initial=0)) + 1
    if wide * (int(words.max(initial=0)) + 1) <= _FEW:
        # Few enough for a table.
        places = words * wide + partitions
        there = np.zeros(_FEW, np.bool_)
        there[places] = True
        small = np.flatnonzero(there)
        return small // wide << 32 | small % wide, (np.cumsum(there) - 1)[places]
    coded = numbers(pa.int64(), keys).dictionary_encode()
    own = whole_numbers(coded.dictionary, null=0)
    order = np.argsort(own)
    ranks = np.empty(len(own), np.int64)
    ranks[order] = np.arange(len(own))
    return own[order], ranks[whole_numbers(coded.indices, null=0)]


def _greatest(values: Numbers, which: Numbers, begins: Numbers) -> Numbers:
    """Place of the greatest of the values of one key up to each; of equal ones the last. None is negative."""
    if not len(values):
        return values
    lowest = np.minimum.reduceat(values, begins)
    span = int((np.maximum.reduceat(values, begins) - lowest).max()) + 1
    if span * len(begins) < _ROOM:
        levels = values - lowest[which]
    else:
        _, levels = np.unique(values, return_inverse=True)
        span = len(values)
    # The key's number in front makes one running maximum of all of them.
    levels = levels + which * span
    places = np.arange(len(values))
    return np.maximum.accumulate(np.where(levels == np.maximum.accumulate(levels), places, 0))
