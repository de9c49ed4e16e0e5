"""Committed lag: what groups commit of a partition, against the end of it that somebody was told by then.

Calls in the order in which they ended:

    Fetch orders-0: end 120    Produce orders-0: end 131    OffsetCommit orders-0: 90    -> lag 41

The greatest end counts: answers overtake each other, and followers know of less. Messages name topics by name
or by id; Metadata responses that came before say which belong together. Memory is bounded.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.layout.traits import COMMITTED
from kwsniff.tables.arrays import Bits, Numbers, flags, numbers, valid_rows, whole_numbers
from kwsniff.tables.rows import picked
from kwsniff.timelines.details import PLACE
from kwsniff.timelines.topic_names import News

MOST_PARTITIONS = 200_000
"""Partitions whose end is remembered; beyond it the one that was told of longest ago is forgotten."""

OFFSETS: Final = pa.schema(
    [
        (PLACE, pa.int64()),
        *((name, pa.string()) for name in ("capture", "client_id", "group_id", "topic", "topic_id")),
        *((name, pa.int64()) for name in ("call_id", "connection_id")),
        *(("api_key", pa.int16()), ("partition", pa.int32())),
        *((name, pa.timestamp("us", tz="UTC")) for name in ("time", "response_end_time")),
        *((name, pa.int64()) for name in ("committed", "reached")),
    ]
)
"""What `told` gives, texts as dictionaries: rows commit an offset, or tell how far a partition reaches."""

NO_OFFSETS: Final = pa.RecordBatch.from_arrays(
    [
        pa.nulls(0, pa.dictionary(pa.int32(), each.type) if each.type == pa.string() else each.type)
        for each in OFFSETS
    ],
    names=OFFSETS.names,
)

_OWN: Final = (
    "capture", "client_id", "group_id", "topic", "topic_id", "call_id", "connection_id", "api_key",
    "partition", "time",
)  # fmt: skip
_COMMITS: Final = (*_OWN, "committed", "response_end_time", PLACE)

NOT_KNOWN: Final = -1

Row = dict[str, Any]


class End(NamedTuple):
    """How far a partition reaches, when (microseconds, or NOT_KNOWN) and by which call that was told last."""

    offset: int
    time: int
    call_id: int


def told(calls: pa.RecordBatch, partitions: pa.RecordBatch, catalog: Catalog) -> pa.RecordBatch:
    """What rows of partitions commit and tell; `calls`: the rows of their calls in api_calls."""
    keys = whole_numbers(partitions["api_key"], null=-1)
    good = whole_numbers(partitions["error_code"], null=-1) == 0
    offset = whole_numbers(partitions["offset"], null=-1)
    commits = good & np.isin(keys, _keys(catalog, "offsets", COMMITTED)) & valid_rows(partitions["group_id"])
    committed = np.where(commits, offset, -1)
    reached = whole_numbers(partitions["high_watermark"], null=-1)
    base, count = (whole_numbers(partitions[name], null=-1) for name in ("base_offset", "record_count"))
    produced = good & (base >= 0) & np.isin(keys, _keys(catalog, "records", "produced"))
    # A message set that does not say how many they are has one at least.
    reached = np.maximum(reached, np.where(produced, base + np.maximum(count, 1), -1))
    listed = good & np.isin(keys, _keys(catalog, "offsets", "listed"))
    reached = np.maximum(reached, np.where(listed, offset, -1))
    named = valid_rows(partitions["topic"]) | valid_rows(partitions["topic_id"])
    chosen = ((committed >= 0) | (reached >= 0)) & named & valid_rows(partitions["partition"])
    ids = whole_numbers(calls["call_id"], null=-1)
    order = np.argsort(ids, kind="stable")
    wanted = whole_numbers(partitions["call_id"], null=-2)
    places = (
        order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)] if len(ids) else wanted
    )
    chosen &= ids[places] == wanted if len(ids) else False
    places = places[chosen]
    part = partitions.select(list(_OWN)).filter(flags(chosen))
    columns = {
        **{name: part[name] for name in _OWN},
        PLACE: numbers(pa.int64(), places.astype(np.int64)),
        "response_end_time": calls["response_end_time"].take(numbers(pa.int64(), places.astype(np.int64))),
        "committed": numbers(pa.int64(), committed[chosen].astype(np.int64)),
        "reached": numbers(pa.int64(), reached[chosen].astype(np.int64)),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in OFFSETS.names], names=OFFSETS.names)


def _keys(catalog: Catalog, trait: str, word: str) -> list[int]:
    return [key for key, api in catalog.apis.items() if getattr(api.traits, trait) == word]


class Commits:
    """Follows partitions through batches that `told` gives; `rows` are commits."""

    def __init__(self, catalog: Catalog) -> None:
        self.rows: list[Row] = []
        self.forgotten = 0
        """Ends forgotten because of MOST_PARTITIONS."""
        self._catalog = catalog
        self._ends: dict[tuple[str, int], End] = {}
        """By name, or # and id of the topic, and number of the partition."""
        self._names: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def add(self, offsets: pa.RecordBatch, news: Sequence[News]) -> None:
        """Takes rows in the order in which their calls ended; `news`: which topics were named meanwhile."""
        batch = _Ends(offsets)
        waiting = iter([*news, None])
        following = next(waiting)
        chosen = batch.committed >= 0
        for at, values in zip(
            np.flatnonzero(chosen).tolist(), picked(offsets, chosen, _COMMITS), strict=True
        ):
            call = dict(zip(_COMMITS, values, strict=True))
            while following is not None and following.place <= call[PLACE]:
                self._learn(following)
                following = next(waiting)
            self._take(call, at, batch)
        while following is not None:
            self._learn(following)
            following = next(waiting)
        for key, end in batch.latest():
            before = self._ends.pop(key, None)
            # Taken out and put back: the first one is the one that was told of longest ago.
            self._ends[key] = end if before is None else max(before, end)
        while len(self._ends) > MOST_PARTITIONS:
            self.forgotten += 1
            del self._ends[next(iter(self._ends))]

    def state(self) -> tuple[Any, ...]:
        """What is followed, for `resume`; `rows` are not part of it."""
        return self.forgotten, {key: tuple(end) for key, end in self._ends.items()}, self._names, self._ids

    def resume(self, state: tuple[Any, ...]) -> None:
        """Goes on where another stood."""
        self.forgotten, ends, self._names, self._ids = state
        self._ends = {key: End(*end) for key, end in ends.items()}

    def finish(self) -> None:
        """No more calls come."""
        self._ends.clear()

    def _learn(self, news: News) -> None:
        self._names[news.topic_id] = news.name
        self._ids[news.name] = news.topic_id

    def _take(self, call: Mapping[str, Any], at: int, batch: "_Ends") -> None:
        name, topic_id = call["topic"], call["topic_id"]
        if topic_id is not None:
            known = self._names.get(topic_id)
            spelled = [f"#{topic_id}", *([known] if known else [])]
            name = name or known
        else:
            known = self._ids.get(name)
            spelled = [name, *([f"#{known}"] if known else [])]
        ends = [
            end
            for word in spelled
            for end in (self._ends.get((word, call["partition"])), batch.before(at, word, call["partition"]))
            if end is not None
        ]
        end = max(ends, default=None)
        age = None
        if end and end.time != NOT_KNOWN and call["response_end_time"] is not None:
            age = max(call["response_end_time"] - end.time, 0) * 1000
        reached = end is not None and end.offset >= call["committed"]
        self.rows.append(
            {
                **{
                    each: call[each]
                    for each in ("capture", "client_id", "group_id", "call_id", "connection_id")
                },
                "api_name": self._catalog.apis[call["api_key"]].name,
                "time": None if call["time"] is None else call["time"] * 1000,
                "topic": name,
                "topic_id": topic_id,
                "partition": call["partition"],
                "offset": call["committed"],
                "high_watermark": end and end.offset,
                "high_watermark_age_ns": age,
                "high_watermark_call_id": end and end.call_id,
                "lag": end.offset - call["committed"] if end and reached else None,
            }
        )


class _Ends:
    """Ends told by one batch, sorted by partition and then as they came."""

    def __init__(self, offsets: pa.RecordBatch) -> None:
        self.committed: Numbers = whole_numbers(offsets["committed"], null=-1)
        names, ids = offsets["topic"], offsets["topic_id"]
        self._words = [*names.dictionary.to_pylist(), *(f"#{each}" for each in ids.dictionary.to_pylist())]
        self._numbers = {word: number for number, word in enumerate(self._words)}
        same = np.array([self._numbers[word] for word in self._words], np.int64)
        by_id: Bits = valid_rows(ids)
        code = np.where(
            by_id,
            whole_numbers(ids.indices, null=0).astype(np.int64) + len(names.dictionary),
            whole_numbers(names.indices, null=0),
        )
        partitions = whole_numbers(offsets["partition"], null=0).astype(np.int64) & 0xFFFFFFFF
        keys = same[code] << 32 | partitions if len(code) else code
        reached = whole_numbers(offsets["reached"], null=-1)
        ends = np.flatnonzero(reached >= 0)
        self._rows = ends[np.argsort(keys[ends], kind="stable")]
        self._keys = keys[self._rows]
        self._reached = reached[self._rows]
        self._offsets = offsets
        self._running: dict[int, tuple[Numbers, Numbers]] = {}

    def before(self, at: int, word: str, partition: int) -> End | None:
        """The greatest end that was told in front of row `at`."""
        number = self._numbers.get(word)
        if number is None:
            return None
        key = number << 32 | partition & 0xFFFFFFFF
        begin, end = np.searchsorted(self._keys, (key, key + 1)).tolist()
        num = int(np.searchsorted(self._rows[begin:end], at))
        if not num:
            return None
        if key not in self._running:
            values = self._reached[begin:end]
            greatest = np.maximum.accumulate(values)
            # Told again, it is known anew.
            again = np.maximum.accumulate(np.where(values == greatest, np.arange(len(values)), 0))
            self._running[key] = greatest, again
        greatest, again = self._running[key]
        return self._end(int(greatest[num - 1]), begin + int(again[num - 1]))

    def latest(self) -> list[tuple[tuple[str, int], End]]:
        """The greatest end of each partition."""
        if not len(self._keys):
            return []
        begins = np.flatnonzero(np.concatenate([[True], self._keys[1:] != self._keys[:-1]]))
        greatest = np.maximum.reduceat(self._reached, begins)
        repeated = np.repeat(greatest, np.diff(begins, append=len(self._keys)))
        places = np.where(self._reached == repeated, np.arange(len(self._keys)), 0)
        found = []
        for key, most, at in zip(
            self._keys[begins].tolist(),
            greatest.tolist(),
            np.maximum.reduceat(places, begins).tolist(),
            strict=True,
        ):
            partition = (key & 0xFFFFFFFF ^ 0x80000000) - 0x80000000
            found.append(((self._words[key >> 32], partition), self._end(most, at)))
        return found

    def _end(self, offset: int, place: int) -> End:
        row = int(self._rows[place])
        return End(offset, int(self._times[row]), int(self._calls[row]))

    @cached_property
    def _times(self) -> Numbers:
        return whole_numbers(self._offsets["response_end_time"], null=NOT_KNOWN)

    @cached_property
    def _calls(self) -> Numbers:
        return whole_numbers(self._offsets["call_id"], null=0)
