"""Captures to tables: the one way from files to rows, for Python, the command line and Spark."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kwsniff.analysis.capture_points import (
    CapturePoints,
    Samples,
    find_places,
    join_samples,
    join_twins,
    places_by_hand,
    samples_of_each,
)
from kwsniff.analysis.duplicate_captures import note_copies
from kwsniff.analysis.duplicate_rows import move_repeated, twins_anomalies
from kwsniff.analysis.filled_holes import SHARE_OF_HOLES
from kwsniff.analysis.findings import write_findings
from kwsniff.analysis.known import Known, learn
from kwsniff.analysis.measured_hops import READ as READ_BY_HOPS
from kwsniff.analysis.measured_hops import measure_hops
from kwsniff.analysis.measured_networks import NOT_MEASURED, MeasuredNetworks
from kwsniff.analysis.measured_networks import READ as READ_BY_NETWORKS
from kwsniff.analysis.parallelism import OneAnalyzerNeeded, num_analyzers, rows_beside
from kwsniff.analysis.plan import Plan, Progress, check_plan
from kwsniff.analysis.result import Analysis
from kwsniff.analysis.rows import Rows
from kwsniff.analysis.sorted_tables import sort_tables
from kwsniff.analysis.summary import Summary
from kwsniff.analysis.table_selection import chosen_tables, delivered_tables
from kwsniff.analysis.upstream_calls import fill_upstream_calls
from kwsniff.analyzers import start_analyzer
from kwsniff.core.analyzer import Analyzer
from kwsniff.errors import CaptureError, UsageError
from kwsniff.filter.rows_of_calls import Chosen
from kwsniff.findings.views import with_sources
from kwsniff.layout.catalog import Layouts, load_catalog
from kwsniff.limits import Limits
from kwsniff.memory import memory_left
from kwsniff.sources.file_objects import Given, as_paths
from kwsniff.sources.files import CaptureFile, Found, unread_file
from kwsniff.sources.order import find_in_order, size_of
from kwsniff.sources.paths import local_path
from kwsniff.sources.ports import check_ports
from kwsniff.sources.times import Given as Time
from kwsniff.sources.times import TimeRange
from kwsniff.sources.tls import KeyLog, Secrets
from kwsniff.tables.captures import (
    account,
    capture_row,
    captures_batch,
    unread_anomalies,
    unread_row,
)
from kwsniff.tables.harm import COLUMN
from kwsniff.tables.rows import batch_of
from kwsniff.tables.run import check_run_id
from kwsniff.tables.write import TableWriter
from kwsniff.temporary import temporary_folder
from kwsniff.timelines.duplicates.duplicate_connections import Twins

if TYPE_CHECKING:
    from kwsniff.analysis.parallel import SideBySide
    from kwsniff.filter.expression import Filter

Paths = Given | Sequence[Given]


def analyze(
    paths: Paths = (),
    *,
    output: str | os.PathLike[str] | None = None,
    tables: str | Sequence[str] | None = None,
    ports: int | Sequence[int] = (),
    limits: Mapping[str, int] | None = None,
    progress: Progress | None = None,
    tls_keylog: KeyLog = None,
    run_id: str | None = None,
    layouts: Layouts | None = None,
    since: Time = None,
    until: Time = None,
    where: "str | Filter | None" = None,
    jobs: int | None = None,
    places: Mapping[str, Sequence[str | os.PathLike[str]]] | None = None,
    sort: bool = False,
) -> Analysis:
    """Reads captures (in the order of their first packets, as parts of one) and makes all tables of them.

    `paths`: files (pcap, pcapng, plain or in gzip or zstd), directories of them, "-" for standard input, file
    objects in binary mode (copied first). `output`: a directory for parquet files; memory then stays bounded.
    `tables`: names of those to make, or one; the summary is shorter, too. `ports`: broker ports, or one, that
    are Kafka whatever they carry. `limits`: name -> value, see kwsniff.limits. `tls_keylog`: files of TLS
    secrets (SSLKEYLOGFILE); False opens nothing (docs/tls.md). `run_id`: instead of a random one. `layouts`:
    a folder of a vendor's layouts. `since`, `until`: only packets from one time on and before the other
    (texts, datetimes, timedeltas from the first packet). `where`: a filter of calls (docs/filters.md).
    `jobs`: analyzers that share the connections. `places`: name -> captures taken there. `sort`: order rows
    by time. Raises CaptureError where nothing can be read, OutputError, LayoutError, UsageError.
    """
    check_plan(since, until, output, sort=sort)
    chosen, filter_ = chosen_tables(tables, some_calls=where is not None), _read_filter(where)
    with as_paths(paths) as given:
        found, by_hand = _find(given, places or {})
        plan = Plan(
            found=found,
            output=output,
            chosen=chosen,
            ports=check_ports(ports),
            bounds=Limits.with_changes(dict(limits or {})),
            progress=progress,
            tls_keylog=tls_keylog,
            run=check_run_id(run_id),
            catalog=load_catalog(layouts),
            size=size_of(found.captures),
            times=(since, until),
            places=by_hand,
            sort=sort,
        )
        return _run_beside(replace(plan, only=_choose(plan, filter_, jobs)) if filter_ else plan, jobs)


def _find(
    paths: Sequence[str | os.PathLike[str]], places: Mapping[str, Sequence[str | os.PathLike[str]]]
) -> tuple[Found, CapturePoints | None]:
    """The captures of paths and of places, and these where they are given."""
    by_hand = places_by_hand(places, paths)
    return find_in_order([*paths, *(by_hand.numbers if by_hand is not None else ())]), by_hand


def _read_filter(where: "str | Filter | None") -> "Filter | None":
    if not isinstance(where, str):
        return where
    from kwsniff.filter.parser import parse_filter

    return parse_filter(where)


def _choose(plan: Plan, filter_: "Filter", jobs: int | None) -> Chosen:
    """The calls that a filter chooses, found by a first reading."""
    from kwsniff.filter.filtered_calls import resolve_captures
    from kwsniff.filter.stored_rows import choose_stored

    if plan.size is None:
        raise UsageError(
            "captures are read twice to choose calls, which standard input and pipes do not allow"
        )
    filter_ = resolve_captures(filter_, plan.found.captures)
    needed = {"error_codes": filter_.asks_errors, "findings": COLUMN in filter_.columns}
    tables = ("api_calls", *(name for name, is_needed in needed.items() if is_needed))
    with temporary_folder() as folder:
        done = _run_beside(replace(plan, output=folder, chosen=tables, sort=False), jobs)
        runs = choose_stored({name: [str(path)] for name, path in done.paths.items()}, filter_)
    return runs.get(plan.run, Chosen((), ()))


def _run_beside(plan: Plan, jobs: int | None) -> Analysis:
    """By several analyzers where they pay, and again by one where that shows to be needed."""
    number = num_analyzers(jobs, plan.size, plan.bounds, plan.tls_keylog)
    try:
        return _run_known(replace(plan, num_analyzers=number))
    except OneAnalyzerNeeded:
        return _run_known(plan)


def _run_known(plan: Plan) -> Analysis:
    """Reads once, and again where that shows that captures were taken at several places, or twins."""
    done = _run(plan, Twins())
    if isinstance(done, CapturePoints):
        plan = replace(plan, places=done)
        done = _run(plan, Twins())
    if isinstance(done, tuple) and done[2] is not None:
        # Calls that were not whole are others now, and what was measured of them is.
        plan = replace(plan, filled=done[2])
        done = _run(plan, done[0])
    if isinstance(done, tuple):
        done = _run(plan, *done[:2])
    if not isinstance(done, Analysis):
        raise AssertionError("what is known is not looked for")
    return done


def _run(
    plan: Plan, twins: Twins, networks: MeasuredNetworks | None = None
) -> Analysis | Known | CapturePoints:
    """One reading of all captures. Where it shows places, twins or network times that were not known, nothing
    is left but these: what is counted while rows pass has to be counted without them."""
    made = _add_sources(plan.chosen, len(plan.found.captures) > 1)
    found = plan.found._replace(unread=list(plan.found.unread))
    with _writer(plan.output, made, plan.run) as writer, ExitStack() as stack:
        memory, summary = plan.bounds.memory + plan.foreign, Summary(plan.ports, twins)
        rows = stack.enter_context(
            Rows(
                plan.catalog,
                summary,
                writer,
                made,
                twins,
                plan.only,
                networks or NOT_MEASURED,
                memory=memory,
                beside=plan.num_analyzers > 1,
            )
        )
        places, holes = _read_all(plan, found, rows, delivered_tables(made))
        if places and plan.places is None:
            return places
        if networks is None:
            known = learn(plan, writer, rows, places, (twins, holes))
            twins = known[0]
            if twins and plan.size is not None:
                return known
            summary.late_twins = len(twins.found)
        rows.add("anomalies", batch_of("anomalies", twins_anomalies(twins)))
        places = _place_captures(summary, places, twins)
        if places and "hops" in made:
            summary.places = measure_hops(writer, rows, places, memory)
        fill_upstream_calls(writer, rows.batches, places.printable, plan.catalog, memory)
        rows.write_rows("captures", captures_batch(summary.captures))
        changes = rows.shown_ids.late_names(summary.late_topics)
        if not writer:
            return Analysis(summary, {}, rows.batches, changes, plan.chosen, run_id=plan.run)
        for table, change in changes.items():
            writer.rewrite(table, change)
        if "findings" in made:
            left, late = memory_left(memory), bool(changes)
            summary.findings = write_findings(writer, rows.figures, summary.rows, late=late, memory=left)
        if plan.sort:
            sort_tables(writer, plan.chosen, memory)
        paths = writer.commit(set(made) - set(plan.chosen))
        return Analysis(summary, paths, {}, {}, plan.chosen, run_id=plan.run)


def _place_captures(summary: Summary, places: CapturePoints, twins: Twins) -> CapturePoints:
    """The places that twins show as well; rows of captures say theirs."""
    move_repeated(summary.captures, twins)
    places = join_twins(places, summary.captures, twins.apart)
    places.fill_places(summary.captures)
    return places


def _add_sources(chosen: Sequence[str], several: bool) -> tuple[str, ...]:
    """These tables, and those that they are made of. `several`: captures, which may be of several places."""
    read = {"hops": READ_BY_HOPS, "latencies": READ_BY_NETWORKS if several else ()}
    return with_sources(
        (*chosen, "connections", *(each for name in read if name in chosen for each in read[name]))
    )


def _read_all(plan: Plan, found: Found, rows: Rows, tables: Sequence[str]) -> tuple[CapturePoints, bytes]:
    """Every row there is; what is known of the captures, and their holes. The core's memory is free again
    afterwards."""
    if plan.num_analyzers > 1:
        return _read_beside(plan, found, rows, tables)
    analyzer = _analyzer(plan, tables)
    analyzer.when_full = lambda: rows.drain(analyzer, tables)
    places = _read(plan, found, analyzer, rows)
    analyzer.finish()
    rows.drain(analyzer, tables)
    rows.finish()
    rows.summary.late_topics = analyzer.late_topics()
    _account(plan, rows.summary, analyzer, found)
    analyzer.when_full = None  # it leads back to the analyzer
    return places, analyzer.holes


def _read_beside(plan: Plan, found: Found, rows: Rows, tables: Sequence[str]) -> tuple[CapturePoints, bytes]:
    """The same by several analyzers. Raises OneAnalyzerNeeded."""
    from kwsniff.analysis.parallel import SideBySide

    analyzers = [_analyzer(plan, tables, (n, plan.num_analyzers)) for n in range(plan.num_analyzers)]
    with SideBySide(analyzers, tables, rows.take_turn, rows_beside(plan.bounds.memory)) as beside:
        places = _read(plan, found, beside, rows)
        beside.finish()
        rows.finish()
        rows.summary.late_topics = {each: name for each, (name, _) in beside.topics.items()}
        _account(plan, rows.summary, beside, found)
    return places, b"".join(analyzer.holes for analyzer in analyzers)


def _analyzer(plan: Plan, tables: Sequence[str], bucket: tuple[int, int] | None = None) -> Analyzer:
    analyzer = start_analyzer(
        plan.catalog,
        tables,
        ports=plan.ports,
        limits=plan.bounds.as_dict(),
        bucket=bucket,
        beside=bucket is not None,
        # What cannot be read again is read as files of one place.
        samples=samples_of_each(len(plan.found.captures)) if plan.size is not None else 0,
    )
    if plan.filled:
        analyzer.fill_holes(plan.filled.fills, plan.filled.data)
    elif plan.size is not None:
        analyzer.note_holes(plan.bounds.memory // SHARE_OF_HOLES)
    return analyzer


@contextmanager
def _writer(
    output: str | os.PathLike[str] | None, made: Sequence[str], run: str
) -> Iterator[TableWriter | None]:
    if output is None:
        yield None
        return
    with TableWriter(local_path(output), made, run) as writer:
        yield writer


def _account(plan: Plan, summary: Summary, analyzer: "Analyzer | SideBySide", found: Found) -> None:
    """Completes the rows of captures."""
    for number, row in enumerate(summary.captures):
        account(row, analyzer.accounting(number))
    if plan.filled:
        plan.filled.add_notes(summary.captures)
    summary.captures += map(unread_row, found.unread)
    summary.unread += found.unread


def _read(plan: Plan, found: Found, analyzer: "Analyzer | SideBySide", rows: Rows) -> CapturePoints:
    """The places of the captures: those that are known, or that reading them shows."""
    names, times = found.captures, TimeRange(*plan.times)
    total = size_of(names)
    known = plan.places or CapturePoints()
    before, read, samples = 0, list[str](), list[Samples]()
    secrets = None if plan.tls_keylog is False else Secrets(plan.tls_keylog)
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
            place = known.find(name)
            facts = _feed(capture, analyzer, rows, place, _shift(plan.progress, before, total))
        times.add_facts(facts)
        rows.summary.captures.append(capture_row(capture, facts))
        read.append(name)
        samples.append(join_samples([analyzer.samples]))
        before += capture.consumed
    rows.summary.times = times
    if not rows.summary.captures:
        raise CaptureError(str(found.unread[0]))
    places = find_places(read, samples) if plan.places is None else plan.places
    places.add_notes(rows.summary.captures, note_copies(rows.summary.captures, read))
    rows.add("anomalies", batch_of("anomalies", unread_anomalies(found.unread)))
    if secrets:
        rows.summary.captures[-1]["notes"] += secrets.notes(analyzer.tls_opened)
    return places


def _shift(progress: Progress | None, before: int, total: int | None) -> Callable[[CaptureFile], None]:
    def show(capture: CaptureFile) -> None:
        if progress:
            progress(capture.name, before + capture.consumed, total)

    return show


def _feed(
    capture: CaptureFile,
    analyzer: "Analyzer | SideBySide",
    rows: Rows,
    place: int,
    show: Callable[[CaptureFile], None],
) -> dict[str, Any]:
    analyzer.open_capture(capture.name, place=place)
    try:
        for buffer in capture.readable():
            analyzer.feed(buffer)
            if isinstance(analyzer, Analyzer):
                rows.drain_large(analyzer)
            if analyzer.stopped:
                break
            show(capture)
        facts = analyzer.close_capture()
        if analyzer.stopped:  # several analyzers notice it later than one, which had read no more
            capture.truncated, capture.note = False, None
        return facts
    except CaptureError as error:
        raise CaptureError(f"{capture.name}: {error}") from error
