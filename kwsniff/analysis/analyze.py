"""Captures to tables: the one way from files to rows, for Python, the command line and Spark."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from kwsniff.analysis.chosen import Chosen, chosen_tables, delivered_tables
from kwsniff.analysis.headroom import give_all_back, keep_below, memory_left
from kwsniff.analysis.judgement import write_findings
from kwsniff.analysis.marking import mark_late, twins_among, twins_anomalies
from kwsniff.analysis.result import Analysis
from kwsniff.analysis.summary import Summary
from kwsniff.core.analyzer import Analyzer
from kwsniff.core.declared import COLUMNS, ENUMS
from kwsniff.errors import CaptureError
from kwsniff.findings.bounds import Figures
from kwsniff.findings.tables import with_sources
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.limits import Limits
from kwsniff.sources.file_objects import Given, as_paths
from kwsniff.sources.files import CaptureFile, Found, unread_file
from kwsniff.sources.order import find_in_order, size_of
from kwsniff.sources.paths import local_path
from kwsniff.sources.ports import check_ports
from kwsniff.sources.times import Given as Time
from kwsniff.sources.times import TimeRange
from kwsniff.sources.tls import KeyLog, Secrets
from kwsniff.tables.build import Builder, ColumnData
from kwsniff.tables.captures import (
    account,
    capture_row,
    captures_batch,
    unread_anomalies,
    unread_row,
)
from kwsniff.tables.rows import batch_of
from kwsniff.tables.run import check_run_id
from kwsniff.tables.schema import DETAILS
from kwsniff.tables.write import ROW_GROUP_ROWS, TableWriter
from kwsniff.timelines.held_rows import hold_back, without_topics
from kwsniff.timelines.late_names import late_names
from kwsniff.timelines.timelines import FOLLOWED, HELD, OFFSETS_OF, Timelines, noted, without_twins
from kwsniff.timelines.twins import Twins

_TIMELINE_ROWS = 4096
_BYTES_OF_A_CANDIDATE = 2000  # 200,000 connections that may be twins of others have room in 400 MB
# Taken together: every latency and every partition comes with its call.
_TOGETHER = {"api_calls", "latencies", "partitions", DETAILS}

Paths = Given | Sequence[Given]
Progress = Callable[[str, int, int | None], None]
"""Called with the capture's name, the raw bytes read so far of all captures, and their total if known."""


def analyze(
    paths: Paths,
    *,
    output: str | os.PathLike[str] | None = None,
    tables: str | Sequence[str] | None = None,
    ports: int | Sequence[int] = (),
    limits: Mapping[str, int] | None = None,
    progress: Progress | None = None,
    tls_keylog: KeyLog = None,
    run_id: str | None = None,
    layouts: str | os.PathLike[str] | None = None,
    since: Time = None,
    until: Time = None,
    only: Chosen | None = None,
) -> Analysis:
    """Reads captures (in the order of their first packets, as parts of one) and makes all tables of them.

    `paths`: files (pcap, pcapng, plain or in gzip or zstd), directories of them, "-" for standard input, file
    objects in binary mode (copied to a temporary file first).
    `output`: a directory for parquet files; memory then stays bounded whatever the size of the captures.
    `tables`: names of those to make, or one, all of them by default; the summary then knows less, too.
    `ports`: broker ports, or one, that are Kafka whatever their contents look like. `limits`: name -> value,
    see kwsniff.limits. `tls_keylog`: files of TLS secrets (SSLKEYLOGFILE), which open TLS, as those inside
    pcapng files do; False opens nothing; see docs/tls.md. `run_id`: in place of a random
    one. `layouts`: a folder of a vendor's layouts. `since`, `until`: only packets from one time on and before
    the other, texts as on the command line, datetimes, or timedeltas from the first packet.
    `only`: calls; the tables then hold these, what belongs to them, and their connections.
    What cannot be read has a row in captures, with the reason.
    Raises CaptureError (nothing that can be read), OutputError (cannot be written), LayoutError, UsageError.
    """
    TimeRange(since, until)  # refuses what is none
    with as_paths(paths) as names:
        found = find_in_order(names)
        plan = _Plan(
            found=found,
            output=output,
            chosen=chosen_tables(tables, some_calls=only is not None),
            ports=check_ports(ports),
            bounds=Limits.with_changes(dict(limits or {})),
            progress=progress,
            tls_keylog=tls_keylog,
            run=check_run_id(run_id),
            catalog=load_catalog(layouts),
            reads_again=size_of(found.captures) is not None,
            since=since,
            until=until,
            only=only,
        )
        return _run_known(plan)


def _run_known(plan: "_Plan") -> Analysis:
    """Reads once, and again where that shows twins."""
    done = _run(plan, Twins())
    if isinstance(done, Twins):
        done = _run(plan, done)
    if isinstance(done, Twins):
        raise AssertionError("twins that are known are not looked for")
    return done


@dataclass(frozen=True, slots=True)
class _Plan:
    found: Found
    output: str | os.PathLike[str] | None
    chosen: tuple[str, ...]
    ports: Sequence[int]
    bounds: Limits
    progress: Progress | None
    tls_keylog: KeyLog
    run: str
    catalog: Catalog
    reads_again: bool
    """Whether the captures are files, which can be read a second time."""
    since: Time
    until: Time
    only: Chosen | None


def _run(plan: _Plan, twins: Twins) -> Analysis | Twins:
    """One reading of all captures. Where it shows twins that were not known, nothing is left but these: what
    is counted while rows pass has to be counted without them."""
    made = with_sources((*plan.chosen, "connections"))
    found = replace(plan.found, unread=list(plan.found.unread))
    delivered = delivered_tables(made)
    with _writer(plan.output, made, plan.run) as writer, ExitStack() as stack:
        summary = Summary(plan.ports, twins)
        rows = stack.enter_context(_Rows(plan, summary, writer, made, twins))
        _read_all(plan, found, rows, delivered)
        if not twins:
            give_all_back()
            most = min(plan.bounds.twin_candidates, plan.bounds.memory // _BYTES_OF_A_CANDIDATE)
            twins = twins_among(writer, rows.batches, most)
            if twins and plan.reads_again:
                return twins
            mark_late(writer, rows.batches, rows.figures, twins)
            summary.late_twins = len(twins.found)
        rows.add("anomalies", batch_of("anomalies", twins_anomalies(twins)))
        rows.keep("captures", captures_batch(summary.captures))
        changes = late_names(summary.late_topics, made)
        if not writer:
            return Analysis(summary, {}, rows.batches, changes, plan.chosen, run_id=plan.run)
        for table, change in changes.items():
            writer.rewrite(table, change)
        if "findings" in plan.chosen:
            memory = memory_left(plan.bounds.memory)
            summary.findings = write_findings(writer, rows.figures, late=bool(changes), memory=memory)
        left = set(made) - set(plan.chosen)
        return Analysis(summary, writer.commit(left), {}, {}, plan.chosen, run_id=plan.run)


def _read_all(plan: _Plan, found: Found, rows: "_Rows", tables: Sequence[str]) -> None:
    """Every row there is, and what is known of the captures. The core's memory is free again afterwards."""
    analyzer = _analyzer(plan.catalog, plan.ports, plan.bounds.as_dict(), tables)
    analyzer.when_full = lambda: rows.take(analyzer, tables)
    times = TimeRange(plan.since, plan.until)
    _read(found, analyzer, rows, plan.progress, tls_keylog=plan.tls_keylog, times=times)
    analyzer.finish()
    rows.take(analyzer, tables)
    rows.finish()
    _account(rows.summary, analyzer, found)
    analyzer.when_full = None  # it leads back to the analyzer


def _analyzer(
    catalog: Catalog, ports: Sequence[int], limits: Mapping[str, int], tables: Sequence[str]
) -> Analyzer:
    arguments, early = analyzer_arguments(catalog), early_access(catalog)
    return Analyzer(*arguments, ports=ports, limits=limits, tables=tables, compile_early=early)


@contextmanager
def _writer(
    output: str | os.PathLike[str] | None, made: Sequence[str], run: str
) -> Iterator[TableWriter | None]:
    if output is None:
        yield None
        return
    with TableWriter(local_path(output), made, run) as writer:
        yield writer


def _account(summary: Summary, analyzer: Analyzer, found: Found) -> None:
    """Completes the rows of captures, and the names of topics."""
    summary.late_topics = analyzer.late_topics()
    for number, row in enumerate(summary.captures):
        account(row, analyzer.accounting(number))
    summary.captures += map(unread_row, found.unread)
    summary.unread += found.unread


Compiler = Callable[[int, int, int], tuple[bytes, tuple[str, ...]] | None]
ApiRange = tuple[int, ...]


def early_access(catalog: Catalog) -> Compiler:
    """How to get the program of a version as it was before its release, where that was another one."""

    def compile_early(api_key: int, version: int, direction: int) -> tuple[bytes, tuple[str, ...]] | None:
        programs = catalog.alternates(api_key, version, direction)
        return (programs[0].code, programs[0].paths) if programs else None

    return compile_early


def analyzer_arguments(catalog: Catalog) -> tuple[Compiler, list[ApiRange]]:
    """What the core needs to know of the protocol: how to get a program, and which versions there are."""

    def compile_program(api_key: int, version: int, direction: int) -> tuple[bytes, tuple[str, ...]] | None:
        program = catalog.program(api_key, version, direction)
        return (program.code, program.paths) if program else None

    return compile_program, catalog.spoken()


def _read(
    found: Found,
    analyzer: Analyzer,
    rows: "_Rows",
    progress: Progress | None,
    *,
    tls_keylog: KeyLog,
    times: TimeRange,
) -> None:
    names = found.captures
    total = size_of(names)
    before = 0
    secrets = None if tls_keylog is False else Secrets(tls_keylog)
    if secrets:
        analyzer.open_tls(secrets)
    for name in names:
        try:
            opened = CaptureFile(name)
        except CaptureError as error:  # gone since it was found, as a rotating tool removes it
            found.unread.append(unread_file(name, error))
            continue
        with opened as capture:
            if times and not rows.summary.captures:
                times.resolve(names, capture)
                analyzer.bound(times.since, times.until)
            facts = _feed(capture, analyzer, rows, _shifted(progress, before, total))
        times.take(facts)
        rows.summary.captures.append(capture_row(capture, facts))
        before += capture.consumed
    rows.summary.times = times
    if not rows.summary.captures:
        raise CaptureError(str(found.unread[0]))
    rows.add("anomalies", batch_of("anomalies", unread_anomalies(found.unread)))
    if secrets:
        rows.summary.captures[-1]["notes"] += secrets.notes(analyzer.tls_opened)


def _shifted(progress: Progress | None, before: int, total: int | None) -> Callable[[CaptureFile], None]:
    def show(capture: CaptureFile) -> None:
        if progress:
            progress(capture.name, before + capture.consumed, total)

    return show


def _feed(
    capture: CaptureFile, analyzer: Analyzer, rows: "_Rows", show: Callable[[CaptureFile], None]
) -> dict[str, Any]:
    analyzer.open_capture(capture.name)
    try:
        for buffer in capture.readable():
            analyzer.feed(buffer)
            rows.drain(analyzer)
            if analyzer.stopped:
                break
            show(capture)
        return analyzer.close_capture()
    except CaptureError as error:
        raise CaptureError(f"{capture.name}: {error}") from error


class _Rows:
    """Where rows go: counted, then to the writer or into memory, in a thread of their own.

    One step of work waits at most: rows never pile up when writing is slower than reading. A failure there is
    raised by the next call here.
    """

    def __init__(
        self, plan: _Plan, summary: Summary, writer: TableWriter | None, chosen: Sequence[str], twins: Twins
    ) -> None:
        self.summary = summary
        self._only = plan.only
        self._twins = twins
        self.figures = Figures()
        """Of what is written, where findings are wanted."""
        self.batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in chosen}
        self._catalog = plan.catalog
        self._builder = Builder(plan.catalog, ENUMS)
        self._writer = writer
        self._memory = plan.bounds.memory
        self._timelines = Timelines(plan.catalog, self._memory)
        self._thread = ThreadPoolExecutor(1, "kwsniff-tables")
        self._under_way: Future[None] | None = None

    def __enter__(self) -> "_Rows":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def drain(self, analyzer: Analyzer) -> None:
        """Takes the larger tables once one of them fills a row group."""
        rows = {table: analyzer.rows(table) for table in COLUMNS}
        if max(rows.values()) >= ROW_GROUP_ROWS:
            large = {table for table in COLUMNS if rows[table] > ROW_GROUP_ROWS // 2}
            if large & _TOGETHER:
                large |= _TOGETHER
            self.take(analyzer, [table for table in (*COLUMNS, DETAILS) if table in large])

    def take(self, analyzer: Analyzer, tables: Iterable[str]) -> None:
        """Takes tables off the analyzer, after what was taken before is settled."""
        self.settle()
        keep_below(self._memory)
        taken = [(table, analyzer.take(table)) for table in tables]
        self._under_way = self._thread.submit(self._take_in, taken)

    def settle(self) -> None:
        """Waits until everything taken is where it belongs."""
        if self._under_way:
            self._under_way.result()
            self._under_way = None

    def finish(self) -> None:
        """Everything was taken: what is computed over all rows becomes rows, too."""
        self.settle()
        self._timelines.finish()
        self._keep_timelines(at_least=0)

    def keep(self, table: str, batch: pa.RecordBatch) -> None:
        """Writes rows, or remembers them when nothing is written."""
        if table not in self.batches:
            return
        if self._writer:
            self._writer.write(table, batch)
            if "findings" in self.batches:
                self.figures.add(table, batch)
        else:
            self.batches[table].append(batch)

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Rows that are not the core's."""
        self.settle()
        if batch.num_rows:
            self.summary.add(table, batch)
            self.keep(table, batch)

    def _take_in(self, taken: Iterable[tuple[str, Sequence[ColumnData]]]) -> None:
        batches = {table: self._builder.build(table, columns) for table, columns in taken}
        calls, details, timed = batches.get("api_calls"), batches.pop(DETAILS, None), None
        if HELD in batches and HELD in self.batches:
            batches[HELD], timed = hold_back(batches[HELD], calls, self._catalog)
        for table, batch in batches.items():
            rows = self._only.of(table, batch) if self._only else batch
            if table == HELD:
                self._share(rows, calls)
            self.summary.add(table, rows)
            self.keep(table, self._twins.mark(rows) if self._twins and table == "connections" else rows)
            if table == "api_calls" and not self.batches.keys().isdisjoint(FOLLOWED):
                notes = noted(batch, details, batches.get(OFFSETS_OF), self._catalog, timed)
                self._timelines.add(without_twins(notes, self._twins))
                self._keep_timelines(at_least=_TIMELINE_ROWS)

    def _keep_timelines(self, at_least: int) -> None:
        for table, batch in self._timelines.take(at_least):
            rows = self._only.of(table, batch) if self._only else batch
            if table == HELD:
                self._share(rows, rows)
                rows = without_topics(rows)
            self.summary.add(table, rows)
            self.keep(table, rows)

    def _share(self, latencies: pa.RecordBatch, calls: pa.RecordBatch | None) -> None:
        self.summary.shares.add(self._twins.without(latencies), calls and self._twins.without(calls))
