"""Tasks that follow record batches, each task those of its topic-partitions (`ranges`).

split     each range: its sightings, one file for each shard of topic-partitions
deliver   each shard: rows of deliveries, and how old the first unread record is at each of its commits
age       each file of commits: the same rows with these ages
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.delivery_steps import UNKNOWN
from kwsniff.spark.decode import Work
from kwsniff.spark.events import SIGHTED, NotesFile
from kwsniff.spark.jobs import Items
from kwsniff.spark.merged_events import merge_events
from kwsniff.spark.parts import Part, PartWriter, check_file
from kwsniff.spark.range_tasks import Common
from kwsniff.spark.rewritten_parts import rewrite_part
from kwsniff.spark.serialization import dump, load, register
from kwsniff.spark.statistics import new_figures, write_figures
from kwsniff.spark.storage import Place
from kwsniff.tables.arrays import Numbers, numbers, valid_rows, whole_numbers, words_of
from kwsniff.tables.compute import filter_rows
from kwsniff.timelines.decoded_messages import PLACE
from kwsniff.timelines.deliveries.deliveries import Deliveries, Reader
from kwsniff.timelines.deliveries.sightings import COMMITTED, SIGHTINGS
from kwsniff.timelines.deliveries.steps import number_rows
from kwsniff.timelines.memory_budget import MemoryBudget
from kwsniff.timelines.metadata.topic_names import News

_ROWS: Final = 1 << 15
_NO_LAG: Final = -1
_TOPICS: Final = ("topic", "topic_id")
_READERS: Final = ("client_address", "client_id", "group_id")
_OF_COMMITS: Final = (*_TOPICS, "partition", "time", "lag", "committed_offset", "lag_ns")


@register
class SplitRange(NamedTuple):
    """What a range gave: the file of each shard, None without sightings; `path`: a file with what all shards
    need to know, the readers that commit and the topics that have both a name and an id."""

    files: list[str | None]
    path: str


@register
class Shard(NamedTuple):
    """Its files, one for each range, None without sightings; the files of commits of each range."""

    files: list[str | None]
    commits: list[list[Part]]


@register
class ShardPlan(NamedTuple):
    """The common input of all shards."""

    number: int
    names: dict[str, str]
    """Topic id -> name, of all that some bucket came to know: they say which shard a row belongs to."""
    topics: list[list[str]]
    """Topic ids and names as timelines know them."""
    readers: list[Reader]


@register
class Lags(NamedTuple):
    """Where the lags of a shard are: items of rows and lags of these, one for each file of commits."""

    path: str
    ends: str
    number: int

    def load(self, place: Place, number: int) -> tuple[Numbers, Numbers]:
        """Those of one file."""
        rows, lags = Items(place, *self).load(number)
        return np.frombuffer(rows, np.int64), np.frombuffer(lags, np.int64)


@register
@dataclass(slots=True)
class Delivered:
    """What a shard gave; `left_out` for want of budget."""

    parts: list[Part]
    figures: str | None
    lags: Lags
    left_out: int


def find_shards(rows: pa.RecordBatch, names: Mapping[str, str], number: int) -> Numbers:
    """The shard of each row's topic-partition, the same whether a row has the topic's name or its id."""
    topics, ids = (rows[name] for name in _TOPICS)
    words = [*topics.dictionary.to_pylist(), *(names.get(each, each) for each in ids.dictionary.to_pylist())]
    seeds = np.array([crc32(word.encode()) for word in words] or [0], np.int64)
    by_id = whole_numbers(ids.indices, null=0) + len(topics.dictionary)
    codes = np.where(valid_rows(topics), whole_numbers(topics.indices, null=0), by_id)
    known = valid_rows(topics) | valid_rows(ids)
    seed = np.where(known, seeds[np.where(known, codes, 0)], 0)
    # Partitions of one topic follow each other, so that each shard has as many of them.
    shards: Numbers = (seed + whole_numbers(rows["partition"], null=0).astype(np.int64)) % number
    return shards


def split_range(number: int, *, work: Work, ranges: Items, common: Items, plan: Items) -> SplitRange:
    """The first task: shares the sightings of a range out."""
    own, facts = ranges.load(number), common.load(0)
    shards, twins, name = plan.load(0), facts.without(), uuid.uuid4().hex
    files: dict[int, NotesFile] = {}
    readers, topics = set[tuple[str | None, ...]](), set[tuple[str | None, ...]]()
    for rows in _sightings(work.scratch, facts, own.first, own.last):
        kept = twins.without(rows) if twins else rows
        commits = whole_numbers(kept["kind"], null=-1) == COMMITTED
        readers |= _distinct_texts(filter_rows(kept, commits), _READERS)
        topics |= {each for each in _distinct_texts(kept, _TOPICS) if None not in each}
        of_rows = find_shards(kept, shards.names, shards.number)
        for shard in np.flatnonzero(np.bincount(of_rows, minlength=shards.number)).tolist():
            if shard not in files:
                output = work.scratch.open_output(f"{name}-{shard}{SIGHTED}")
                files[shard] = NotesFile(output, SIGHTINGS)
            part = filter_rows(kept, of_rows == shard)
            files[shard].write(pa.Table.from_batches([part]), whole_numbers(part[PLACE], null=0))
    for file in files.values():
        file.close()
    with work.scratch.open_output(f"{name}.readers") as output:
        output.write(dump(([*readers], [*topics])))
    found = [f"{name}-{shard}{SIGHTED}" if shard in files else None for shard in range(shards.number)]
    return SplitRange(found, f"{name}.readers")


def deliver_shard(number: int, *, work: Work, shards: Items, plan: Items) -> Delivered:
    """The second one: follows the batches of a shard through all ranges."""
    own, facts = shards.load(number), plan.load(0)
    writer = PartWriter(work.staging, f"shard-{number:05}", work.run_id)
    figures = new_figures() if "findings" in work.tables else None
    follower = _Follower(number, facts, work)
    for batch in follower.batches(own):
        if "deliveries" in work.tables and batch.num_rows:
            writer.write("deliveries", batch)
            if figures:
                figures.add("deliveries", batch)
    items = Items.write(work.scratch, follower.lags)
    path = write_figures(work.scratch, figures) if figures else None
    lags = Lags(items.path, items.ends, items.number)
    return Delivered(writer.close(), path, lags, follower.budget.left_out)


def age_part(task: tuple[int, Part], *, work: Work, lags: Sequence[Lags]) -> Part:
    """The third one: a file of commits with `lag_ns`."""
    number, part = task
    found = np.full(part.rows, _NO_LAG, np.int64)
    for each in lags:
        rows, of_rows = each.load(work.scratch, number)
        found[rows] = of_rows
    begin = 0

    def age(rows: pa.Table) -> pa.Table:
        nonlocal begin
        own = found[begin : begin + rows.num_rows]
        begin += rows.num_rows
        column = numbers(pa.int64(), np.where(own >= 0, own, 0), own >= 0)
        return rows.set_column(rows.schema.get_field_index("lag_ns"), rows.schema.field("lag_ns"), column)

    return rewrite_part(part, age, "aged", staging=work.staging, dictionaries=_TOPICS)


def read_split(place: Place, split: SplitRange) -> tuple[list[Reader], list[tuple[str, str]]]:
    """Readers and topics that a range has."""
    check_file(place, split.path)
    with place.open_input(split.path) as file:
        readers, topics = load(file.read())
    return readers, topics


def _sightings(place: Place, facts: Common, first: int, last: int) -> Iterator[pa.RecordBatch]:
    paths = [path for path in facts.paths if path.endswith(SIGHTED)]
    for notes in merge_events(place, paths, first, last):
        if notes.sightings is not None and notes.sightings.num_rows:
            yield notes.sightings


def _distinct_texts(rows: pa.RecordBatch, names: Sequence[str]) -> set[tuple[str | None, ...]]:
    columns = [rows[name] for name in names]
    codes = [whole_numbers(column.indices, null=-1).astype(np.int64) for column in columns]
    words = [[*words_of(column.dictionary), None] for column in columns]
    _, firsts = number_rows(*codes)
    return {
        tuple(texts[code[row]] for texts, code in zip(words, codes, strict=True)) for row in firsts.tolist()
    }


class _Commits:
    """Rows of one file of commits that are of a shard; `lags`: the age of each, once it is known."""

    def __init__(self, part: Part, shard: int, plan: ShardPlan, staging: Place) -> None:
        self.rows: Numbers = np.zeros(0, np.int64)
        self.lags: list[Numbers] = []
        self._batches: list[pa.RecordBatch] = []
        self._ripe: list[Numbers] = []
        begin, rows = 0, [self.rows]
        with staging.open_parquet(part.path, read_dictionary=[*_TOPICS]) as file:
            for group in range(file.num_row_groups):
                for batch in file.read_row_group(group, columns=[*_OF_COMMITS]).to_batches():
                    own = find_shards(batch, plan.names, plan.number) == shard
                    rows.append(begin + np.flatnonzero(own))
                    self._batches.append(filter_rows(batch, own))
                    begin += batch.num_rows
        self.rows = np.concatenate(rows)
        for batch in self._batches:
            self.lags.append(np.full(batch.num_rows, _NO_LAG, np.int64))
            self._ripe.append(np.zeros(batch.num_rows, np.bool_))

    def age(self, deliveries: Deliveries, until: int | None = None) -> None:
        """Ages those up to a time that are not aged yet."""
        for batch, lags, ripe in zip(self._batches, self.lags, self._ripe, strict=True):
            chosen = ~ripe
            if until is not None:
                chosen &= whole_numbers(batch["time"], null=UNKNOWN) <= until
            if chosen.any():
                aged = deliveries.age_commits(filter_rows(batch, chosen))
                lags[chosen] = whole_numbers(aged["lag_ns"], null=_NO_LAG)
                np.logical_or(ripe, chosen, out=ripe)


class _Follower:
    """Goes through the files of a shard, range by range."""

    def __init__(self, shard: int, plan: ShardPlan, work: Work) -> None:
        self.budget = MemoryBudget()
        self.lags: list[tuple[bytes, bytes]] = []
        """For each file of commits its rows of this shard, and their lags."""
        self._shard, self._plan, self._work = shard, plan, work
        self._deliveries = Deliveries(self.budget)
        self._deliveries.add(None, [News(0, *each) for each in plan.topics])
        self._deliveries.add_readers(plan.readers)

    def batches(self, own: Shard) -> Iterator[pa.RecordBatch]:
        """Rows of deliveries."""
        for path, parts in zip(own.files, own.commits, strict=True):
            commits = [_Commits(part, self._shard, self._plan, self._work.staging) for part in parts]
            yield from self._take(path, commits)
            for each in commits:
                each.age(self._deliveries)
                lags = np.concatenate([np.zeros(0, np.int64), *each.lags])
                self.lags.append((each.rows.tobytes(), lags.tobytes()))
        self._deliveries.finish()
        yield from self._deliveries.drain(0)

    def _take(self, path: str | None, commits: Iterable[_Commits]) -> Iterator[pa.RecordBatch]:
        if path is None:
            return
        check_file(self._work.scratch, path)
        for notes in merge_events(self._work.scratch, [path]):
            rows = notes.sightings
            if rows is None:
                continue
            if not self._deliveries.has_room(rows.num_rows):
                # Batches leave memory: first for the commits until now, which may be between them.
                ends = whole_numbers(rows["end"], null=UNKNOWN)
                until = int(ends[ends != UNKNOWN].min(initial=np.iinfo(np.int64).max))
                for each in commits:
                    each.age(self._deliveries, until)
            self._deliveries.add(rows, [])
            yield from self._deliveries.drain(_ROWS)
