"""Offsets of partitions, followed in tasks by ranges of positions; other calls are few.

    survey   each range for itself: how far partitions reach at its end, and how much happens in it
    driver   calls of groups, of transactions, of the cluster; from where on each range is followed
    follow   each range: committed lag and proven waits, with so much in front and behind as these look at
    deliver  record batches, each task those of its topic-partitions (`delivery_tasks`)

Where there is little of it, the driver follows all, as `kwsniff analyze` does.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import load_catalog
from kwsniff.spark.client_rows import read_sources
from kwsniff.spark.decode import Work
from kwsniff.spark.delivery_tasks import (
    Delivered,
    Shard,
    ShardPlan,
    age_part,
    deliver_shard,
    read_split,
    split_range,
)
from kwsniff.spark.events import CALLS, SIGHTED, Spans
from kwsniff.spark.events import OFFSETS_NOTED as OFFSETS
from kwsniff.spark.events import TIMED_ROWS as TIMED
from kwsniff.spark.jobs import Items, run_tasks
from kwsniff.spark.merged_events import merge_events, read_index
from kwsniff.spark.parts import Part, check_file, check_parts
from kwsniff.spark.range_tasks import Common, Range, Surveyed, follow_range, survey_range
from kwsniff.spark.serialization import load
from kwsniff.tables.arrays import Numbers
from kwsniff.timelines import committed_lag
from kwsniff.timelines.committed_lag import End, Place, later
from kwsniff.timelines.deliveries.deliveries import Reader
from kwsniff.timelines.duplicates.duplicate_connections import Twins
from kwsniff.timelines.metadata.leaders import Change
from kwsniff.timelines.metadata.topic_names import News
from kwsniff.timelines.timelines import Noted, Timelines, needs_deliveries, without_twins
from kwsniff.timelines.waits import evidence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS: Final = 1 << 15
SPAN_PACKETS: Final = 1 << 20
_SPANS_PER_BUCKET: Final = 2
_SPANS_OF_A_RANGE: Final = 4
WORTH_ROWS: Final = 10_000_000
"""Rows from which on it is worth it to read them twice; a range has a quarter of them at the least."""
MOST_SHARDS: Final = 64
"""Of topic-partitions; each task that shares a range out writes a file for each."""
_FRONT: Final = 2
"""A call may be queued behind one that ended MOST_EVENTS earlier; the proof of that one's wait may be
twice as far."""


def spans_for(packets: int, buckets: int) -> Spans:
    """How to cut positions, given the numbers of packets and buckets."""
    number = max(min(packets // SPAN_PACKETS, _SPANS_PER_BUCKET * buckets), 1)
    return Spans(number, max(-(-packets // number), 1))


class Following:
    """Follows the notes of all buckets. `parts`, `figures` (files of them): what tasks made of it, there when
    `batches` is through, which gives the rest."""

    def __init__(
        self,
        spark: "SparkSession",
        work: Work,
        notes: Sequence[str],
        twins: Twins,
        decoded: Sequence[Part],
        *,
        names: Mapping[str, str],
    ) -> None:
        """`decoded`: the parts that clients and servers are made of, where these are wanted. `names`: topic
        id -> name, of all that some bucket came to know."""
        self.parts: list[Part] = []
        self.figures: list[str | None] = []
        self._spark = spark
        self._work = work
        self._paths = [*notes]
        self._twins = twins
        self._decoded = decoded if {"clients", "servers"} & {*work.tables} else ()
        self._names = {**names}
        self._timelines = Timelines(load_catalog(work.layouts or ""))

    def batches(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Batches of the tables in FOLLOWED, of the notes of all buckets but those about twins."""
        timelines, rows = self._timelines, self._rows()
        if int(rows[OFFSETS].sum() + rows[TIMED].sum()) < WORTH_ROWS:
            for notes in self._merge(self._paths):
                timelines.add(notes)
                yield from timelines.drain(_ROWS)
        else:
            yield from self._in_ranges(rows)
        for table, batch in read_sources(self._work.staging, self._decoded):
            timelines.add_rows(table, self._twins.without(batch))
        timelines.finish()
        yield from timelines.drain(0)

    def _rows(self) -> dict[str, Numbers]:
        """Kind of notes -> rows of each span, of those that tasks follow."""
        rows = {kind: np.zeros(self._work.spans.number, np.int64) for kind in (OFFSETS, TIMED, SIGHTED)}
        for path in self._paths:
            check_file(self._work.scratch, path)
            if (kind := PurePosixPath(path).suffix) in rows:
                with self._work.scratch.open_input(path) as file:
                    rows[kind] += read_index(file).rows
        return rows

    def _merge(self, paths: Sequence[str]) -> Iterator[Noted]:
        return (without_twins(notes, self._twins) for notes in merge_events(self._work.scratch, paths))

    def _in_ranges(self, rows: Mapping[str, Numbers]) -> Iterator[tuple[str, pa.RecordBatch]]:
        timelines, waits = self._timelines, bool(rows[TIMED].any())
        ranges = _ranges(rows[OFFSETS] + rows[TIMED])
        surveyed = self._run(survey_range, [Range(*each, waits=waits) for each in ranges], [], [])
        news: list[News] = []
        changes: list[Change] = []
        timelines.leaders.changes = changes
        for notes in self._merge([path for path in self._paths if path.endswith(CALLS)]):
            news += timelines.add_calls(notes.calls)
            yield from timelines.drain(_ROWS)
        own = self._from_where(ranges, surveyed, rows[TIMED], news)
        done = self._run(follow_range, own, news, changes)
        commits = [[part for part in each.parts if part.table == "commits"] for each in done]
        delivered, aged = self._deliver(ranges, int(rows[SIGHTED].sum()), commits, news)
        others = [part for each in done for part in each.parts if part.table != "commits"]
        self.parts = [*others, *aged, *(part for each in delivered for part in each.parts)]
        check_parts(self._work.staging, self.parts)
        self.figures = [each.figures for each in (*done, *delivered)]
        timelines.leave_out(sum(each.left_out for each in (*done, *delivered)))

    def _deliver(
        self, ranges: Sequence[tuple[int, int]], rows: int, commits: list[list[Part]], news: Sequence[News]
    ) -> tuple[list[Delivered], list[Part]]:
        """What shards of topic-partitions gave, and the files of commits with `lag_ns`. `rows`: sightings."""
        if not needs_deliveries(self._work.tables):
            return [], []
        scratch, number = self._work.scratch, min(rows // max(WORTH_ROWS // 4, 1) + 1, MOST_SHARDS)
        named = {each.topic_id: each.name for each in news}
        plan = ShardPlan(number, self._names | named, [], [])
        split = self._run(
            partial(split_range, plan=Items.write(scratch, [plan])), [Range(*each) for each in ranges], [], []
        )
        readers, topics = set[Reader](), dict[str, str]()
        for each in split:
            of_range, both = read_split(scratch, each)
            readers.update(of_range)
            topics.update((topic_id, name) for name, topic_id in both)
        known = [[*each] for each in (topics | named).items()]
        common = Items.write(scratch, [plan._replace(topics=known, readers=[*readers])])
        shards = Items.write(
            scratch, (Shard([each.files[shard] for each in split], commits) for shard in range(number))
        )
        work = partial(deliver_shard, work=self._work, shards=shards, plan=common)
        delivered = run_tasks(self._spark, work, range(number))
        age = partial(age_part, work=self._work, lags=[each.lags for each in delivered])
        parts = [part for of_range in commits for part in of_range]
        return delivered, run_tasks(self._spark, age, [*enumerate(parts)])

    def _run(
        self, task: Any, ranges: Iterable[Range], news: Sequence[News], changes: Sequence[Change]
    ) -> list[Any]:
        scratch = self._work.scratch
        items = Items.write(scratch, ranges)
        told = [[*each] for each in news], [[*each] for each in changes]
        common = Items.write(scratch, [Common(self._paths, [*self._twins.found], *told)])
        work = partial(task, work=self._work, ranges=items, common=common)
        return run_tasks(self._spark, work, range(items.number))

    def _from_where(
        self,
        ranges: Sequence[tuple[int, int]],
        surveyed: Sequence[Surveyed],
        timed: Numbers,
        news: Sequence[News],
    ) -> Iterator[Range]:
        """The ranges, each with the earlier facts."""
        events, clocks = (np.array([], np.int64), np.array([], np.int64))
        for each in surveyed:
            events, clocks = np.append(events, each.events), np.append(clocks, each.clocks)
        others = _other_words(news)
        known: dict[Place, End] = {}
        for (first, last), each in zip(ranges, surveyed, strict=True):
            ends, wanted = self._load(each.path)
            places = {(word, place[1]) for place in wanted for word in (place[0], *others[place[0]])}
            waits, front = bool(timed[first:last].any()), first
            while waits and front and events[front:first].sum() < _FRONT * evidence.MOST_EVENTS:
                front -= 1
            clock = int(clocks[:front].max(initial=evidence.NO_TIME))
            told = [(place, tuple(known[place])) for place in places if place in known]
            yield Range(first, last, front, clock, waits, told)
            for place, end in ends:
                # Removed and reinserted, so that the first one has the oldest report.
                known[place] = later(known.pop(place, None), End(*end))
            while len(known) > committed_lag.MOST_PARTITIONS:
                self._timelines.leave_out(1)
                del known[next(iter(known))]

    def _load(self, path: str) -> Any:
        check_file(self._work.scratch, path)
        with self._work.scratch.open_input(path) as file:
            return load(file.read())


def _other_words(news: Sequence[News]) -> Mapping[str, set[str]]:
    """The other keys of a topic in messages of other versions: its names for an id, its ids for a name."""
    words = defaultdict[str, set[str]](set)
    for each in news:
        words[each.name].add(f"#{each.topic_id}")
        words[f"#{each.topic_id}"].add(each.name)
    return words


def _ranges(rows: Numbers) -> list[tuple[int, int]]:
    """Neighbouring spans with rows enough for a task, and some of them so that less is read twice."""
    least = max(WORTH_ROWS // 4, _SPANS_OF_A_RANGE * int(rows.sum()) // len(rows), 1)
    borders, found = [0], 0
    for span, number in enumerate(rows.tolist()):
        found += number
        if found >= least:
            borders.append(span + 1)
            found = 0
    if borders[-1] < len(rows):
        borders.append(len(rows))
    return [*pairwise(borders)]
