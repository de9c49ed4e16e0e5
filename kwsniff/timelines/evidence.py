"""What calls of the last moments say that proves what others waited for.

Everything has a number and a clock: how many such things were told before it, and the latest end of a call
until then. Whether one may prove another is a matter of these alone, and so the same however the calls come,
in one batch or in many.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import Bits, Numbers, flags, numbers, texts, valid_rows, whole_numbers, words_of
from kwsniff.timelines.details import PLACE
from kwsniff.timelines.held_rows import PRODUCED
from kwsniff.timelines.topic_names import News

WINDOW_US: Final = 1_000_000
"""So far apart may calls end of which one proves the wait of the other."""
MOST_EVENTS = 1 << 16
"""And so many may be told between them."""
NO_TIME: Final = -1
_PROVING: Final = (
    PLACE, "topic", "topic_id", "broker_address", "partition", "broker_port", "connection_id", "time",
    "response_end_time", "fetched", "base", "reached",
)  # fmt: skip

Place = tuple[str, int, str, int]
"""A partition: name of the topic, or # and its id; number; address and port of the broker."""


class Moment(NamedTuple):
    """When something was told: end of its call (microseconds), number, clock."""

    end: int
    number: int
    clock: int

    def proves(self, other: "Moment") -> bool:
        """Whether one may speak of the other, in either order."""
        return (
            abs(self.end - other.end) <= WINDOW_US
            and abs(self.number - other.number) <= MOST_EVENTS
            and self.clock <= other.end + WINDOW_US
            and other.clock <= self.end + WINDOW_US
        )


class Mark(NamedTuple):
    """What a call says of a partition: a follower asks for what comes from `asked` on (-1: a Produce), and it
    brings the records from `base` on (-1: none); of a Produce, those before `reached`."""

    asked: int
    base: int
    reached: int
    time: int
    """Begin of the call, microseconds."""
    connection_id: int
    moment: Moment


class Clock:
    """Numbers things in the order in which they were told, and says what time it was."""

    def __init__(self) -> None:
        self.number = 0
        self.time = NO_TIME

    def moments(self, *told: tuple[Numbers, Numbers]) -> list[tuple[Numbers, Numbers, Numbers]]:
        """For things of some kinds (places in a batch, ends): their ends, numbers and clocks."""
        places = np.concatenate([each[0] for each in told])
        ends = np.concatenate([each[1] for each in told]).astype(np.int64)
        if not len(places):
            return [(ends, ends, ends)] * len(told)
        # Each kind comes in order.
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
    """Of rows of OFFSETS those that prove something, with the columns that `Evidence.of` takes: Produce, and
    where followers ask; `roles` as of `roles_of`."""
    found: Bits = whole_numbers(offsets["fetched"], null=-1) >= 0
    based = whole_numbers(offsets["base"], null=-1) >= 0
    if based.any():
        found |= based & (roles[whole_numbers(offsets["api_key"], null=0)] == PRODUCED)
    if offsets["response_end_time"].null_count:
        found &= valid_rows(offsets["response_end_time"])
    part = offsets.select(_PROVING)
    return part if found.all() else part.filter(flags(found))


def named(offsets: pa.RecordBatch, names: Mapping[str, str], news: Sequence[News]) -> pa.DictionaryArray:
    """One word for the topic of each row: its name, as far as `names` (id -> name) and then `news` told it by
    then, or # and its id."""
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


class Evidence:
    """What one batch says of partitions, found by partition."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.rows = rows
        """As `of` takes them: what a saved state keeps."""
        self.end, self.number = (int(whole_numbers(rows[name], null=-1).max()) for name in ("end", "number"))
        """The latest end, and the last number."""
        self._found: dict[tuple[Place, bool], list[Mark]] | None = None

    @classmethod
    def of(
        cls, offsets: pa.RecordBatch, words: pa.DictionaryArray, moments: tuple[Numbers, Numbers, Numbers]
    ) -> "Evidence":
        """Of rows of OFFSETS that prove something, their topics, and their ends, numbers and clocks."""
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

    def marks(self, place: Place, *, fetched: bool) -> Sequence[Mark]:
        """What was told of a partition by followers' fetches, or by Produce."""
        if self._found is None:
            self._found = {}
            for where, mark in _marks(self.rows):
                self._found.setdefault((where, mark.asked >= 0), []).append(mark)
        return self._found.get((place, fetched), ())


def places_of(rows: pa.RecordBatch, words: pa.DictionaryArray) -> Iterator[Place]:
    """The partition of each row."""
    yield from zip(
        _texts_of(words),
        whole_numbers(rows["partition"], null=-1).tolist(),
        _texts_of(rows["broker_address"]),
        whole_numbers(rows["broker_port"], null=-1).tolist(),
        strict=True,
    )


def _texts_of(column: pa.DictionaryArray) -> list[Any]:
    words = words_of(column.dictionary)
    return [words[code] for code in whole_numbers(column.indices, null=0).tolist()]


def _marks(rows: pa.RecordBatch) -> Iterator[tuple[Place, Mark]]:
    columns = ("fetched", "base", "reached", "time", "connection_id", "end", "number", "clock")
    values = zip(*(whole_numbers(rows[name], null=-1).tolist() for name in columns), strict=True)
    for place, (asked, base, reached, time, connection_id, *moment) in zip(
        places_of(rows, rows["topic"]), values, strict=True
    ):
        yield place, Mark(asked, base, reached, time, connection_id, Moment(*moment))
