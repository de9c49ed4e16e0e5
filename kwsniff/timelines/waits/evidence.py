"""Facts from recent calls that prove what other calls waited for.

Every fact has a number (of earlier facts of its kind) and a clock (the latest end of a call until then). Only
these decide whether one may prove another, so the result is the same for calls in one batch or in many.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import Bits, Numbers, numbers, texts, valid_rows, whole_numbers, words_of
from kwsniff.tables.compute import filter_rows
from kwsniff.tables.grouping import Groups
from kwsniff.timelines.decoded_messages import PLACE
from kwsniff.timelines.metadata.topic_names import News
from kwsniff.timelines.waits.pending_rows import PRODUCED

WINDOW_US: Final = 1_000_000
"""Maximum time between the ends of two calls, one of which proves the wait of the other."""
MOST_EVENTS = 1 << 16
"""Maximum number of facts between them."""
NO_TIME: Final = -1
PLACED: Final = ("topic", "partition", "broker_address", "broker_port")
_OF_MARKS: Final = ("fetched", "base", "reached", "time", "connection_id", "end", "number", "clock")
_PROVING: Final = (
    PLACE, "topic", "topic_id", "broker_address", "partition", "broker_port", "connection_id", "time",
    "response_end_time", "fetched", "base", "reached",
)  # fmt: skip

Place = tuple[str, int, str, int]
"""A partition: name of the topic, or # and its id; number; address and port of the broker."""


class Marks(NamedTuple):
    """Facts of calls on partitions, a row each: number of the partition; a follower requests records from
    `asked` on (-1: a Produce); the call has records from `base` on (-1: none); a Produce has those
    before `reached`. `time`: begin of the call, `end`, `number` and `clock` as of `Clock`; microseconds."""

    place: Numbers
    asked: Numbers
    base: Numbers
    reached: Numbers
    time: Numbers
    connection_id: Numbers
    end: Numbers
    number: Numbers
    clock: Numbers

    def take(self, rows: Numbers) -> Self:
        """Some rows."""
        return type(self)(*(column[rows] for column in self))


class Clock:
    """Numbers facts in order, and returns their clocks."""

    def __init__(self) -> None:
        self.number = 0
        self.time = NO_TIME

    def moments(self, *told: tuple[Numbers, Numbers]) -> list[tuple[Numbers, Numbers, Numbers]]:
        """For facts of some kinds (positions in a batch, ends): their ends, numbers and clocks."""
        places = np.concatenate([each[0] for each in told])
        ends = np.concatenate([each[1] for each in told]).astype(np.int64)
        if not len(places):
            return [(ends, ends, ends)] * len(told)
        # Each kind is in order.
        alone = len(places) in {len(each[0]) for each in told}
        order = np.arange(len(places)) if alone else np.argsort(places, kind="stable")
        numbered, clocks = np.empty_like(ends), np.empty_like(ends)
        numbered[order] = np.arange(self.number, self.number + len(places))
        clocks[order] = np.maximum.accumulate(np.maximum(ends[order], self.time))
        self.number += len(places)
        self.time = int(clocks[order[-1]])
        cuts = np.cumsum([len(each[0]) for each in told])[:-1]
        return list(zip(*(np.split(values, cuts) for values in (ends, numbered, clocks)), strict=True))


def proving(offsets: pa.RecordBatch, roles: Numbers) -> pa.RecordBatch:
    """The rows of OFFSETS that may prove something, with the columns for `Evidence.of`: Produce, and
    fetches of followers; `roles` from `roles_of`."""
    found: Bits = whole_numbers(offsets["fetched"], null=-1) >= 0
    based = whole_numbers(offsets["base"], null=-1) >= 0
    if based.any():
        found |= based & (roles[whole_numbers(offsets["api_key"], null=0)] == PRODUCED)
    if offsets["response_end_time"].null_count:
        found &= valid_rows(offsets["response_end_time"])
    part = offsets.select(_PROVING)
    return part if found.all() else filter_rows(part, found)


def name_topics(
    offsets: pa.RecordBatch, names: Mapping[str, str], news: Sequence[News]
) -> pa.DictionaryArray:
    """A key for the topic of each row: its name, if known by then from `names` (id -> name) and `news`,
    or # and its id."""
    topics, ids = offsets["topic"], offsets["topic_id"]
    if ids.null_count == len(ids) and not topics.null_count:
        return topics
    told = ids.dictionary.to_pylist()
    words = [*words_of(topics.dictionary), *(names.get(each, f"#{each}") for each in told)]
    own = whole_numbers(ids.indices, null=0).astype(np.int32) + np.int32(len(topics.dictionary))
    by_id = valid_rows(ids)
    codes = np.where(by_id, own, whole_numbers(topics.indices, null=0).astype(np.int32))
    for each in news:
        if each.topic_id in told:
            which = np.int32(len(topics.dictionary) + told.index(each.topic_id))
            codes[(codes == which) & (whole_numbers(offsets[PLACE], null=0) >= each.place)] = len(words)
            words.append(each.name)
    return pa.DictionaryArray.from_arrays(numbers(pa.int32(), codes.astype(np.int32)), texts(words))


class Places:
    """Partitions of rows with the columns of PLACED."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        groups = Groups(rows, PLACED)
        self._numbers = groups.numbers
        self.different: list[Place] = [
            (topic, -1 if partition is None else partition, address, -1 if port is None else port)
            for topic, partition, address, port in groups.labels()
        ]

    def number(self, wanted: Mapping[Place, int]) -> Numbers:
        """The number of each row's partition; -1: not selected."""
        codes = np.array([wanted.get(place, -1) for place in self.different], np.int64)
        return codes[self._numbers]


class Evidence:
    """Facts on partitions in one batch."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.rows = rows
        """In the format of `of`, for a saved state."""
        self.end, self.number = (int(whole_numbers(rows[name], null=-1).max()) for name in ("end", "number"))
        """The latest end, and the last number."""
        self._places: Places | None = None

    @classmethod
    def from_rows(
        cls, offsets: pa.RecordBatch, words: pa.DictionaryArray, moments: tuple[Numbers, Numbers, Numbers]
    ) -> Self:
        """Facts from rows of OFFSETS, their topics, and their ends, numbers and clocks."""
        columns = {
            "topic": words,
            **{
                name: offsets[name]
                for name in ("broker_address", "partition", "broker_port", "connection_id")
            },
            "time": numbers(pa.int64(), whole_numbers(offsets["time"], null=NO_TIME).astype(np.int64)),
            **{name: offsets[name] for name in ("fetched", "base", "reached")},
            **{
                name: numbers(pa.int64(), np.ascontiguousarray(values))
                for name, values in zip(("end", "number", "clock"), moments, strict=True)
            },
        }
        return cls(pa.RecordBatch.from_arrays([*columns.values()], names=[*columns]))

    def marks(self, wanted: Mapping[Place, int]) -> Marks:
        """The facts on these partitions."""
        self._places = self._places or Places(self.rows)
        place = self._places.number(wanted)
        chosen = np.flatnonzero(place >= 0)
        return Marks(place[chosen], *(whole_numbers(self.rows[name], null=-1)[chosen] for name in _OF_MARKS))


def concat_marks(parts: Sequence[Marks]) -> Marks:
    """Facts of several batches together."""
    none = np.zeros(0, np.int64)
    columns = zip(*parts, strict=True) if parts else [[none]] * len(Marks._fields)
    return Marks(*(np.concatenate([none, *each]) for each in columns))
