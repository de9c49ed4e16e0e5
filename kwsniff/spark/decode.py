"""The second stage: one task per bucket of connections makes the rows of all tables in one pass.

It follows its connections through all captures in order, reading only what the first stage kept for it, and
writes the rows to files of its own.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.analyzers import CORE_OUTPUT
from kwsniff.core.analyzer import Analyzer
from kwsniff.findings.prefilter.figures import Figures
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.memory import release_arrow_memory
from kwsniff.sources.tls import Secrets
from kwsniff.spark.events import ONE, Notes, Spans
from kwsniff.spark.parts import Part, PartWriter
from kwsniff.spark.plan import Plan, Planned
from kwsniff.spark.saved_analyzers import Saved
from kwsniff.spark.serialization import register
from kwsniff.spark.shuffle import BucketReader, feed
from kwsniff.spark.statistics import new_figures, write_figures
from kwsniff.spark.storage import Place, read_checked, write_checked
from kwsniff.timelines.row_path import RowPath, large_tables, take_rows
from kwsniff.timelines.timelines import FOLLOWED, sources_of

_STEP_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Handover:
    """What buckets take up of the run before, and leave for the next one. `states`: their files in `place`,
    each with its digest; none at first. `captures`: how many were read before. `prefix`: of new files."""

    place: Place
    prefix: str
    states: Sequence[tuple[str, str]] = ()
    captures: int = 0
    is_last: bool = False
    """Whether what is open ends now."""

    def take_up(self, number: int) -> Saved:
        """The state of a bucket. Raises OutputError where it is not what was left."""
        return Saved.read(read_checked(self.place, *self.states[number])) if self.states else Saved()

    def leave(self, number: int, rows: "Rows") -> tuple[str, str]:
        """The file of a bucket's state, which is new, and its digest."""
        path = f"{self.prefix}-{number:05}-{uuid.uuid4().hex[:12]}.state"
        saved = Saved(rows.notes.packets_before, rows.state(), rows.analyzer.save())
        return path, write_checked(self.place, path, saved.to_bytes())


@dataclass(frozen=True, slots=True)
class Work:
    """The common input of all tasks of this stage."""

    plan: Plan
    staging: Place
    scratch: Place
    num_buckets: int
    tables: frozenset[str]
    """Tables that are wanted; for `groups` and `transactions` the calls they are made of are noted."""
    ports: tuple[int, ...]
    limits: Mapping[str, int]
    run_id: str
    layouts: str | None
    """Folder of a vendor's layouts."""
    tls_keylog: tuple[str, ...] = ()
    """Files of secrets; what is in them stays there."""
    times: tuple[int | None, int | None] = (None, None)
    """Only packets from the first on and before the second are read."""
    spans: Spans = ONE
    """How positions of notes are cut."""
    handover: Handover | None = None
    """None: the run begins and ends with its captures."""


@register
@dataclass(slots=True)
class Decoded:
    """What one bucket gave."""

    parts: list[Part]
    notes: list[str]
    """The files of what timelines are made of."""
    bins: str
    """The file of where bytes ended up: native int64, for each capture its bins, in order of `bin_names`."""
    bin_names: tuple[str, ...]
    facts: list[dict[str, Any]] = field(default_factory=list)
    """Of the captures in their order; of the first bucket alone, since all see the same."""
    topics: dict[str, str] = field(default_factory=dict)
    """Every topic id that this bucket saw a name for."""
    bytes_read: int = 0
    """Of the files that the first stage wrote."""
    bytes_named: int = 0
    """Of captures, once more."""
    tls_opened: int = 0
    figures: str | None = None
    """The file of figures for findings, where these are wanted."""
    state: tuple[str, str] | None = None
    """The file of the state that it leaves, and its digest."""


def decode_bucket(number: int, *, work: Work) -> Decoded:
    """The task."""
    work.staging.check()
    noted = not work.tables.isdisjoint(FOLLOWED)
    # What the notes need on top.
    tables = work.tables | sources_of(work.tables) | ({"connections"} if noted else set())
    bucket = (number, work.num_buckets) if work.num_buckets > 1 else None
    catalog = load_catalog(work.layouts or "")
    handover = work.handover
    saved = handover.take_up(number) if handover else Saved()
    analyzer = saved.take_up(catalog, tables, ports=work.ports, limits=work.limits, bucket=bucket)
    analyzer.open_tls(Secrets(work.tls_keylog))
    analyzer.bound(*work.times)
    figures = new_figures() if "findings" in work.tables else None
    rows = Rows(
        analyzer, catalog, work.tables, work.staging, work.scratch, f"{number:05}",
        run_id=work.run_id, figures=figures, spans=work.spans, packets_before=saved.packets_before,
    )  # fmt: skip
    rows.resume(saved.row_path)
    facts = []
    reader = BucketReader(work.scratch, number, work.num_buckets)
    num_captures = handover.captures if handover else 0
    try:
        for capture in work.plan.captures():
            told = _read_capture(capture, reader, rows)
            facts += [told] if number == 0 else []
            num_captures += 1
    finally:
        reader.close()
    if handover is None or handover.is_last:
        rows.finish()
    else:
        rows.take_all()
    state = handover.leave(number, rows) if handover else None
    bins, names = _write_bins(work.scratch, analyzer, num_captures)
    parts, notes = rows.parts.close(), rows.notes.close()
    release_arrow_memory()  # the process waits for its next task
    return Decoded(
        parts,
        notes,
        bins,
        names,
        facts,
        analyzer.topic_names(),
        reader.bytes_read,
        analyzer.bytes_named,
        analyzer.tls_opened,
        write_figures(work.scratch, figures) if figures else None,
        state,
    )


def _read_capture(capture: Planned, reader: BucketReader, rows: "Rows") -> dict[str, Any]:
    frames = 0
    rows.analyzer.open_capture(capture.name, place=capture.seen_at)
    rows.analyzer.feed(capture.head)
    for file, stretch in capture.stretches:
        own, shared, inside = reader.part(capture.name, file, stretch)
        with own, shared:
            rows.analyzer.begin_runs(own, shared, frames_before=frames, capture=inside)
            left = True
            while left:
                if stretch.named:
                    left = feed(rows.analyzer, capture.name, _STEP_BYTES)
                else:
                    left = rows.analyzer.feed_runs(_STEP_BYTES)
                rows.drain()
        frames += stretch.packets
    facts = rows.analyzer.close_capture(end=capture.stop)
    rows.end_capture(frames)
    return facts


def _write_bins(folder: Place, analyzer: Analyzer, num_captures: int) -> tuple[str, tuple[str, ...]]:
    told = [analyzer.accounting(place) for place in range(num_captures)]
    path = f"{uuid.uuid4().hex}.bins"
    with folder.open_output(path) as file:
        file.write(np.array([[*each.values()] for each in told], np.int64).tobytes())
    return path, tuple(told[0]) if told else ()


class Rows:
    """Where rows of an analyzer go: those of `tables` into parts, what timelines are made of into notes."""

    def __init__(  # noqa: PLR0917
        self,
        analyzer: Analyzer,
        catalog: Catalog,
        tables: frozenset[str],
        staging: Place,
        scratch: Place,
        task: str,
        *,
        run_id: str,
        packets_before: int = 0,
        figures: Figures | None = None,
        spans: Spans = ONE,
    ) -> None:
        """`packets_before`: of captures that were read before. `figures`: count what goes into parts.
        `spans`: of notes."""
        self.analyzer = analyzer
        self.parts = PartWriter(staging, task, run_id)
        self.notes = Notes(scratch, task, packets_before, spans)
        self._tables = tables
        self._figures = figures
        self._path = RowPath(catalog, tables)
        analyzer.when_full = self.take_all

    def state(self) -> bytes:
        """What the row path holds back, for `resume`."""
        return self._path.state()

    def resume(self, state: bytes) -> None:
        """Continues from a saved state."""
        self._path.resume(state)

    def drain(self) -> None:
        """Takes the larger tables once one of them fills a row group."""
        if large := large_tables(self.analyzer):
            self._take(large)

    def end_capture(self, packets: int) -> None:
        """Calls that wait are of this capture and those before, which count packets of their own."""
        self.notes.end_capture(packets, self.analyzer.rows("api_calls"))

    def finish(self) -> None:
        """No more captures come."""
        self.take_all()
        if (
            self._path.follows
        ):  # calls that end now are noted by their connections, which come with the last of them
            self.analyzer.when_full = None
        self.analyzer.finish()
        if self._path.follows:
            connections = self._path.build("connections", self.analyzer.drain("connections"))
            self.notes.begin_end(connections)
            self._keep("connections", connections)
        self.take_all()

    def take_all(self) -> None:
        """Takes what waits in all tables."""
        self._take(CORE_OUTPUT)

    def _take(self, tables: Iterable[str]) -> None:
        batches = self._path.build_all(take_rows(self.analyzer, tables))
        if noted := self._path.extract(batches):
            self.notes.add(batches["api_calls"], noted)
        for table, batch in batches.items():
            self._keep(table, batch)

    def _keep(self, table: str, batch: pa.RecordBatch) -> None:
        if table in self._tables and batch.num_rows:
            self.parts.write(table, batch)
            if self._figures:
                self._figures.add(table, batch)
