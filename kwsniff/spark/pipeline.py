"""Captures of any size and number -> the tables of `kwsniff analyze`, and aggregates, in three stages.

1. Scan: every byte of every file is read once; packets are put into files, those of a bucket side by side.
2. Decode: one task per bucket follows its connections through all captures and writes rows of all tables.
3. Finish: what only all buckets together know, then the aggregates, as Spark queries over the new files.

    OUT/<table>/date=YYYY-MM-DD/*.parquet    OUT/_kwsniff.json
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwsniff.analysis.capture_points import CapturePoints, join_twins
from kwsniff.analysis.duplicate_captures import note_copies
from kwsniff.analysis.duplicate_rows import move_repeated
from kwsniff.analysis.measured_hops import READ as READ_BY_HOPS
from kwsniff.analysis.measured_networks import READ as READ_BY_NETWORKS
from kwsniff.errors import UsageError
from kwsniff.findings.views import with_sources
from kwsniff.layout.catalog import Layouts, named_layouts
from kwsniff.limits import Limits
from kwsniff.sources.files import BUFFER_BYTES, Unread, opened_capture
from kwsniff.sources.ports import check_ports
from kwsniff.sources.times import Given, TimeRange
from kwsniff.sources.tls import KeyLog, Secrets
from kwsniff.spark.aggregates import QUERIES, write_aggregates
from kwsniff.spark.capture_fingerprints import fingerprints_of
from kwsniff.spark.continuation import Continuation, check_state, settings_of, take_up
from kwsniff.spark.decode import Decoded, Work, decode_bucket
from kwsniff.spark.delta import check_delta, write_logs
from kwsniff.spark.duplicate_rows import absent_ports, mark_parts, twins_among
from kwsniff.spark.events import ONE, Spans
from kwsniff.spark.file_systems import is_uri
from kwsniff.spark.findings import write_findings
from kwsniff.spark.finish import capture_rows, name_topics, sum_bins, write_few
from kwsniff.spark.hops import write_hops
from kwsniff.spark.inputs import Capture, Sizes, find_inputs, sizes
from kwsniff.spark.jobs import cores_of, run_tasks
from kwsniff.spark.networks import measure_parts
from kwsniff.spark.parts import Part, check_parts, write_empty
from kwsniff.spark.plan import Plan
from kwsniff.spark.proxies import fill_parts
from kwsniff.spark.ranges import spans_for
from kwsniff.spark.run_result import Result
from kwsniff.spark.scan import places_of, scan_captures
from kwsniff.spark.staging import Staging, place_of, scratch_in
from kwsniff.spark.statistics import merge_figures, new_figures
from kwsniff.spark.storage import Place
from kwsniff.spark.store_staging import StoreStaging
from kwsniff.spark.stored_captures import Stores, opener_of, stores_of
from kwsniff.spark.table_formats import check_format
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.captures import unread_row
from kwsniff.tables.schema import TABLES
from kwsniff.tables.stored_files import DELTA_LOG
from kwsniff.texts import suggest
from kwsniff.timelines.clients.clients import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL_TABLES = (*TABLES, *AGGREGATES)


def run_pipeline(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    spark: "SparkSession | None" = None,
    tables: str | Sequence[str] | None = None,
    ports: int | Sequence[int] = (),
    limits: Mapping[str, int] | None = None,
    num_buckets: int | None = None,
    split_bytes: int | None = None,
    delta: bool = False,
    form: str = "parquet",
    mode: str = "overwrite",
    again: bool = False,
    layouts: Layouts | None = None,
    tls_keylog: KeyLog = None,
    since: Given = None,
    until: Given = None,
    scratch: str | os.PathLike[str] | None = None,
    state: str | os.PathLike[str] | None = None,
    finish: bool = False,
    keep_old: float = 0,
) -> Result:
    """Reads captures, in the order of their first packets, and puts folders of parquet files into `output`.

    `paths`: files and directories as for `kwsniff.analyze`, visible to all executors under the same name, or
    URIs of files, directories or patterns in stores (`s3a://`, `gs://`, `abfs://`, `hdfs://`).
    `output`, replaced as a whole: a folder that they see, or such a URI. `tables`: by default all.
    `num_buckets`: tasks that share the connections; `split_bytes`: size of parts of plain files. `delta`:
    every table is a Delta table, too. `form`, `mode`, `again`: as the options. `layouts`, `tls_keylog`: paths
    that all executors see. `scratch`, `state`: likewise, or URIs, for files between the stages, and what the
    next run continues; `finish`: none will. `keep_old`: in s. Raises CaptureError, OutputError, UsageError.
    """
    chosen, times = chosen_tables(tables), TimeRange(since, until)
    known, given = check_ports(ports), dict(limits or {})
    check_format(form, mode, is_uri=is_uri(output))
    if delta:
        check_delta(output)
    chosen = check_state(state, chosen, mode=mode, again=again, times=times, finish=finish)
    vendor, secrets = named_layouts(layouts), Secrets(tls_keylog)  # which say now what is wrong with them
    options = settings_of(chosen, known, given, vendor, num_buckets)
    spark, captures, stores = _find([paths] if isinstance(paths, str | os.PathLike) else paths, times, spark)
    opened = _staging(output, spark, form, mode, keep_old)
    with opened as staging, scratch_in(scratch, opened, spark) as between:
        continuation = take_up(state, staging, spark, options, is_last=finish)
        asked = _choose_sizes(sizes(captures, cores_of(spark)), split_bytes, num_buckets, continuation)
        return _Run(
            spark, staging, between, chosen, given, known, asked, delta, vendor, times, stores, secrets,
            again, continuation,
        ).all(captures)  # fmt: skip


def _choose_sizes(
    usual: Sizes, split_bytes: int | None, num_buckets: int | None, continuation: Continuation | None
) -> Sizes:
    before = continuation.num_buckets if continuation else None
    buckets = before or num_buckets or usual.buckets
    return replace(usual, split_bytes=split_bytes or usual.split_bytes, buckets=buckets)


def _staging(
    output: str | os.PathLike[str], spark: "SparkSession", form: str, mode: str, keep_old: float
) -> Staging | StoreStaging:
    if not is_uri(output) and (form, mode) == ("parquet", "overwrite") and not keep_old:
        return Staging(output)
    return StoreStaging(place_of(output, spark), form=form, mode=mode, keep_old=keep_old)


def _find(
    paths: Sequence[str | os.PathLike[str]], times: TimeRange, spark: "SparkSession | None"
) -> tuple["SparkSession", list[Capture], Stores | None]:
    """The captures, with `times` resolved. Local captures are found before Spark starts, which may then
    not be
    needed; the settings for stores are in Spark's configuration."""
    from kwsniff.spark.session import start_session

    if any(map(is_uri, paths)):
        spark = spark or start_session()
        stores = stores_of(paths, spark)
        captures = find_inputs(paths, stores)
        _resolve(times, captures, stores)
        return spark, captures, stores
    captures = find_inputs(paths)
    _resolve(times, captures, None)
    return spark or start_session(), captures, None


def _resolve(times: TimeRange, captures: Sequence[Capture], stores: Stores | None) -> None:
    names = [capture.name for capture in captures if capture.problem is None]
    if times:
        with opened_capture(names[0], BUFFER_BYTES, opener_of(names[0], stores)) as first:
            times.resolve(names, first)


def chosen_tables(tables: str | Sequence[str] | None) -> frozenset[str]:
    """Names of tables and aggregates; all where none is given. Raises UsageError for one that is none."""
    tables = (tables,) if isinstance(tables, str) else tables
    unknown = [name for name in tables or () if name not in ALL_TABLES]
    if unknown:
        raise UsageError(f"unknown table {unknown[0]!r}; {suggest(unknown[0], ALL_TABLES)}")
    return frozenset(ALL_TABLES if tables is None else tables)


def _read_again(decoded: Sequence[Decoded]) -> dict[str, int]:
    """Bytes that the second stage read: of what the first one kept, and of captures."""
    return {
        "bytes_kept": sum(each.bytes_read for each in decoded),
        "bytes_named": sum(each.bytes_named for each in decoded),
    }


@dataclass(frozen=True, slots=True)
class _Run:
    spark: "SparkSession"
    staging: Staging | StoreStaging
    scratch: Place
    chosen: frozenset[str]
    limits: Mapping[str, int]
    ports: tuple[int, ...]
    sizes: Sizes
    delta: bool
    layouts: str | None
    times: TimeRange
    stores: Stores | None
    secrets: Secrets
    again: bool
    continuation: Continuation | None

    @property
    def most_twins(self) -> int:
        return Limits.with_changes(dict(self.limits)).duplicate_candidates

    def all(self, captures: "Sequence[Any]") -> Result:
        scratch, continuation = self.scratch, self.continuation
        readable = [capture for capture in captures if capture.problem is None]
        unread = [capture.problem for capture in captures if capture.problem is not None]
        walks, bytes_read = scan_captures(
            self.spark,
            readable,
            folder=scratch,
            num_buckets=self.sizes.buckets,
            limits=self.limits,
            split_bytes=self.sizes.split_bytes,
            times=self.times,
            stores=self.stores,
        )
        if continuation:
            readable, walks = continuation.choose_new(readable, walks)
            if continuation.is_idle(readable, unread):
                return Result(_find_output(self.staging), {}, [], unread, {}, known=(*continuation.known,))
        elif finished := self._check_inputs(fingerprints_of(readable, walks)):
            return finished
        packets = sum(each.packets for walked in walks for walk in walked for each in walk.stretches)
        places = places_of(readable, walks)
        work = self._work(
            Plan.write(scratch, readable, walks, places),
            self._find_tables(len(readable)),
            ONE if continuation else spans_for(packets, self.sizes.buckets),
        )
        work = continuation.continue_work(work, places) if continuation else work
        decoded = self._decode(work)
        if continuation:
            parts, rows = continuation.finish(self.spark, work, decoded, readable, walks, self.times)
            parts += continuation.write_unread(work, unread)
            self._note(rows, decoded)
        else:
            bins = sum_bins(decoded, len(readable), scratch)
            rows = capture_rows(readable, walks, decoded, self.times, bins=bins)
            places.add_notes(rows, note_copies(rows, [capture.name for capture in readable]))
            self._note(rows, decoded)
            rows += map(unread_row, unread)
            parts = self._finish(work, decoded, rows, unread, places)
        facts = {
            "buckets": work.num_buckets,
            "splits": sum(map(len, walks)),
            "capture_bytes": sum(capture.size for capture in readable),
            "bytes_read": bytes_read,
            **_read_again(decoded),
        }
        absent = absent_ports(parts, self.ports, staging=self.staging.place)
        result = self._complete(parts, rows, unread, facts, work)
        return replace(result, absent_ports=absent, known=tuple(continuation.known) if continuation else ())

    def _find_tables(self, captures: int) -> frozenset[str]:
        """The tables that are made, also for others."""
        needed = self.chosen | {QUERIES[name].source for name in self.chosen & AGGREGATES.keys()}
        needed |= {"connections"}  # which tell twins
        needed |= {*SOURCES} if "clients" in needed else set()
        needed |= {*READ_BY_HOPS} if "hops" in needed else set()
        needed |= {*READ_BY_NETWORKS} if "latencies" in needed and captures > 1 else set()
        return frozenset(with_sources(tuple(needed & TABLES.keys())))

    def _check_inputs(self, inputs: Mapping[str, str]) -> Result | None:
        """The result of an earlier run over these captures, where this one has just completed it. Raises
        UsageError where rows would be there twice."""
        self.staging.inputs = [*inputs]
        if isinstance(self.staging, Staging) or self.staging.mode != "append":
            return None
        finished = self.staging.finished
        if finished and inputs and finished.covers(inputs, self.chosen):
            run = finished.manifest["run_id"]
            return Result(_find_output(self.staging), finished.manifest["rows"], [], [], {}, finished=run)
        if not self.again:
            self.staging.check_new(inputs)
        return None

    def _finish(
        self,
        work: Work,
        decoded: Sequence[Decoded],
        captures: list[dict[str, Any]],
        unread: list[Unread],
        places: CapturePoints,
    ) -> list[Part]:
        """The parts of all tables: those of tasks, as all buckets together have them, and the driver's."""
        folder = self.staging.place
        parts = [part for each in decoded for part in each.parts]
        check_parts(folder, parts)
        twins = twins_among(parts, staging=folder, most=self.most_twins, places=places.printable)
        move_repeated(captures, twins)
        marked = mark_parts(parts, twins, staging=folder)
        parts = [marked.get(part, part) for part in parts]
        points = join_twins(places, captures, twins.apart)
        parts += write_hops(work, parts, captures, points)
        figures = new_figures() if "findings" in work.tables else None
        if figures:
            merge_figures(figures, work.scratch, [each.figures for each in decoded])
        parts += write_few(self.spark, work, captures, unread, decoded, twins=twins, figures=figures)
        measured = measure_parts(work, parts, points, figures)
        parts = [measured.get(part, part) for part in parts]
        proxied = fill_parts(work, parts, points)
        parts = [proxied.get(part, part) for part in parts]
        topics = {key: name for each in decoded for key, name in each.topics.items()}
        named = name_topics(self.spark, parts, topics, root=folder, staging=folder)
        parts = [named.get(part, part) for part in parts]
        if figures:
            figures.add_twins(len(twins.found))
            figures.name_topics(topics)
            found, judged = write_findings(self.spark, work, parts, figures)
            parts = [*(judged.get(part, part) for part in parts), *found]
        return parts

    def _decode(self, work: Work) -> list[Decoded]:
        decode = partial(decode_bucket, work=work)
        return run_tasks(self.spark, decode, range(self.sizes.buckets), most=self.sizes.tasks)

    def _note(self, rows: list[dict[str, Any]], decoded: Sequence[Decoded]) -> None:
        """What has to be said of secrets, where analyze says it."""
        if rows:
            rows[-1]["notes"] += self.secrets.notes(sum(each.tls_opened for each in decoded))

    def _work(self, plan: Plan, tables: frozenset[str], spans: Spans) -> Work:
        return Work(
            plan=plan,
            staging=self.staging.place,
            scratch=self.scratch,
            num_buckets=self.sizes.buckets,
            tables=tables,
            ports=self.ports,
            limits=self.limits,
            run_id=self.staging.run,
            layouts=self.layouts,
            tls_keylog=tuple(self.secrets.paths),
            times=(self.times.since, self.times.until),
            spans=spans,
        )

    def _complete(
        self,
        parts: list[Part],
        captures: list[dict[str, Any]],
        unread: list[Unread],
        facts: dict[str, int],
        work: Work,
    ) -> Result:
        place = self.staging.place
        counts = dict.fromkeys((name for name in TABLES if name in work.tables), 0)
        for part in parts:
            counts[part.table] += part.rows
        parts += [write_empty(place, TABLES[table]) for table in counts if not counts[table]]
        for name in AGGREGATES:
            if name in self.chosen:
                parts += self._aggregate(name, parts, work.run_id)
        parts = [part for part in parts if part.table in self.chosen]
        shown = dict.fromkeys((name for name in ALL_TABLES if name in self.chosen), 0)
        for part in parts:
            shown[part.table] += part.rows
        if self.delta:
            self.staging.keep_only(parts)
            write_logs(place.folder / name for name in shown)
        if self.continuation:
            self.continuation.commit(parts, {"rows": shown, **facts})
        else:
            beside = (DELTA_LOG,) if self.delta else ()
            self.staging.commit(parts, {"rows": shown, **facts}, beside=beside)
        return Result(_find_output(self.staging), shown, captures, unread, facts, self.times.missed)

    def _aggregate(self, name: str, parts: Sequence[Part], run_id: str) -> list[Part]:
        place, sources = self.staging.place, parts
        root = place
        if self.continuation:
            root, sources = self.continuation.find_sources(name, parts)
            if not sources:
                return [write_empty(place, AGGREGATES[name])]
        return write_aggregates(
            self.spark, [name], root, sources, target=place, run_id=run_id, layouts=self.layouts or ""
        )


def _find_output(staging: Staging | StoreStaging) -> Path | str:
    return staging.output.root if isinstance(staging, StoreStaging) else staging.output
