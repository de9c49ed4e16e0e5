"""Tasks that follow the offsets of partitions, each over a range of positions (`ranges`)."""

import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import load_catalog
from kwsniff.spark.decode import Work
from kwsniff.spark.events import CALLS, OFFSETS_NOTED, TIMED_ROWS
from kwsniff.spark.jobs import Items
from kwsniff.spark.merged_events import merge_events
from kwsniff.spark.parts import Part, PartWriter
from kwsniff.spark.serialization import dump, register
from kwsniff.spark.statistics import new_figures, write_figures
from kwsniff.timelines.committed_lag import Commits, End
from kwsniff.timelines.decoded_messages import PLACE
from kwsniff.timelines.duplicates.duplicate_connections import Twin, Twins
from kwsniff.timelines.memory_budget import MemoryBudget
from kwsniff.timelines.metadata.leaders import Change, Copies
from kwsniff.timelines.metadata.topic_names import News
from kwsniff.timelines.offsets import NO_OFFSETS
from kwsniff.timelines.timelines import HELD, Noted, without_twins
from kwsniff.timelines.waits.attribution import ProvenWaits
from kwsniff.timelines.waits.evidence import NO_TIME
from kwsniff.timelines.waits.group_waits import Meetings
from kwsniff.timelines.waits.pending_texts import HeldTexts
from kwsniff.timelines.waits.verdicts import Verdicts

_ROWS: Final = 1 << 15


@register
class Range(NamedTuple):
    """Spans from `first` to before `last`. Waits are followed from `front` on, where there are any (`waits`),
    at the time `clock`; `ends`: how far partitions reached that it commits, as (partition, end)."""

    first: int
    last: int
    front: int = 0
    clock: int = NO_TIME
    waits: bool = False
    ends: Sequence[tuple[Any, ...]] = ()


@register
class Common(NamedTuple):
    """The common input of all tasks: the driver's facts on all calls."""

    paths: list[str]
    """Files of notes."""
    twins: list[int]
    """Connections that are left out."""
    news: list[list[Any]]
    """Topics that were named, as News have it."""
    changes: list[list[Any]]
    """As Leaders have them."""

    def find_files(self, own: Range) -> list[str]:
        """The files that a range needs; without waits, only those of offsets."""
        kinds = (CALLS, OFFSETS_NOTED, TIMED_ROWS) if own.waits else (OFFSETS_NOTED,)
        return [path for path in self.paths if path.endswith(kinds)]

    def without(self) -> Twins:
        """Those that are left out."""
        return Twins({number: Twin(number, None) for number in self.twins})


@register
@dataclass(slots=True)
class Surveyed:
    """What there is in a range. `path`: a file with its ends, and the partitions that it commits."""

    path: str
    events: list[int]
    """Of each of its spans, how much there is of what waits are proven by."""
    clocks: list[int]
    """And the latest end of a call."""


@register
@dataclass(slots=True)
class Followed:
    """What a range gave; `left_out` for want of budget."""

    parts: list[Part]
    figures: str | None
    left_out: int


def survey_range(number: int, *, work: Work, ranges: Items, common: Items) -> Surveyed:
    """The first task of a range."""
    own, told = ranges.load(number), common.load(0)
    catalog, twins = load_catalog(work.layouts or ""), told.without()
    commits, waits = Commits(catalog), ProvenWaits(catalog, Copies([]))
    wanted: set[tuple[str, int]] = set()
    events = np.zeros(work.spans.number, np.int64)
    clocks = np.full(work.spans.number, NO_TIME, np.int64)
    for notes in merge_events(work.scratch, told.find_files(own), own.first, own.last):
        calls, offsets, timed, _ = without_twins(notes, twins)
        part = NO_OFFSETS if offsets is None else offsets
        if part.num_rows:
            wanted.update(commits.add_log_ends(part))
        for places, ends in waits.events(calls, part, timed) if own.waits else ():
            spans = work.spans.find(places)
            events += np.bincount(spans, minlength=len(events))
            np.maximum.at(clocks, spans, ends)
    path = f"{uuid.uuid4().hex}.ends"
    with work.scratch.open_output(path) as file:
        file.write(dump(([(place, tuple(end)) for place, end in commits.ends.items()], [*wanted])))
    there = slice(own.first, own.last)
    return Surveyed(path, events[there].tolist(), clocks[there].tolist())


def follow_range(number: int, *, work: Work, ranges: Items, common: Items) -> Followed:
    """The second one."""
    own, told = ranges.load(number), common.load(0)
    writer = PartWriter(work.staging, f"range-{number:05}", work.run_id)
    figures = new_figures() if "findings" in work.tables else None
    follower = _Follower(own, told, work)
    for table, batch in follower.batches():
        if table in work.tables and batch.num_rows:
            writer.write(table, batch)
            if figures:
                figures.add(table, batch)
    path = write_figures(work.scratch, figures) if figures else None
    return Followed(writer.close(), path, follower.budget.left_out)


class _Follower:
    """Goes through a range, with what is in front of it and behind."""

    def __init__(self, own: Range, told: Common, work: Work) -> None:
        self.budget = MemoryBudget()
        self._own = own
        self._work = work
        self._paths = told.find_files(own)
        self._twins = told.without()
        catalog = load_catalog(work.layouts or "")
        self._copies = Copies(Change(*each) for each in told.changes)
        self._news = deque(News(*each) for each in told.news)
        self._commits = Commits(catalog, self.budget)
        self._waits = ProvenWaits(catalog, self._copies)
        self._texts = HeldTexts()

    def batches(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Rows of commits and of latencies."""
        own = self._own
        before = self._news_before(own.front)
        names = {each.topic_id: each.name for each in before}
        self._waits.resume(((0, own.clock), names, [], [], Meetings().state(), Verdicts().state()))
        self._commits.join_states({tuple(place): End(*end) for place, end in own.ends}, before)
        for notes in self._notes(own.front, own.first):
            self._take(notes, is_own=False)
        for notes in self._notes(own.first, own.last):
            self._take(notes, is_own=True)
            yield from self._rows(_ROWS)
        for span in range(own.last, self._work.spans.number):
            for notes in self._notes(span, span + 1):
                if self._waits.is_settled:
                    break
                self._take(notes, is_own=False)
            if self._waits.is_settled:
                break
        if not self._waits.is_settled:
            self._waits.finish()
        yield from self._rows(0)

    def _notes(self, first: int, last: int) -> Iterator[Noted]:
        return merge_events(self._work.scratch, self._paths, first, last) if first < last else iter(())

    def _news_before(self, span: int) -> list[News]:
        place = span * self._work.spans.packets
        news = []
        while self._news and self._news[0].place < place:
            news.append(self._news.popleft())
        return news

    def _news_until(self, place: int) -> list[News]:
        news = []
        while self._news and self._news[0].place <= place:
            news.append(self._news.popleft())
        return news

    def _take(self, notes: Noted, *, is_own: bool) -> None:
        places = [int(rows[PLACE][-1].as_py()) for rows in notes if rows is not None and rows.num_rows]
        self._copies.go_on(max(places))
        news = self._news_until(max(places))
        calls, offsets, timed, _ = without_twins(notes, self._twins)
        told = NO_OFFSETS if offsets is None else offsets
        # In front the news alone: what comes later has to know the names.
        if news or (told.num_rows and is_own):
            self._commits.add(told if is_own else NO_OFFSETS, news)
        if not self._own.waits:
            return
        self._waits.add(calls, told, timed, news, wanted=is_own)
        self._texts.add(told, timed)
        if self._texts.bytes > self.budget.most // 2:
            self._texts = HeldTexts()
            self.budget.left_out += 1
            self._waits.forget()

    def _rows(self, at_least: int) -> Iterator[tuple[str, pa.RecordBatch]]:
        for batch in self._commits.drain(at_least):
            yield "commits", batch
        for batch in self._waits.drain(at_least):
            yield HELD, batch
