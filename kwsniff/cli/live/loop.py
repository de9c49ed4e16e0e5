"""The loop of ``kwsniff live``: takes rows and passes them to files, metrics and the screen, until the
end."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from kwsniff.analysis.table_selection import chosen_tables
from kwsniff.cli.live.lines import IntervalLines, JsonLines, interval_json, interval_line
from kwsniff.cli.live.options import LiveOptions
from kwsniff.cli.live.screen import Screen
from kwsniff.cli.live.service import Service
from kwsniff.cli.options.times import time_range, zone_of
from kwsniff.cli.standard_streams import print_message, say_there
from kwsniff.errors import OutputError
from kwsniff.findings.views import READ
from kwsniff.layout.catalog import load_catalog
from kwsniff.limits import Limits
from kwsniff.live.batches import Batches
from kwsniff.live.connections import open_connections
from kwsniff.live.files import RollingTables, Rotation
from kwsniff.live.filtered_rows import FilteredRows, with_needed
from kwsniff.live.findings import WINDOW_S, Watch
from kwsniff.live.metrics import Metrics
from kwsniff.live.metrics_port import MetricsServer
from kwsniff.live.overdue_responses import OverdueResponses
from kwsniff.live.rebalances import Rebalancing
from kwsniff.live.retention import Retention
from kwsniff.live.ring_buffer import PacketRing
from kwsniff.live.session import Session
from kwsniff.live.window import Window
from kwsniff.memory import keep_below
from kwsniff.sources.live import kernel_filter, open_live
from kwsniff.sources.live_source import LiveSource
from kwsniff.sources.ports import AskedPorts
from kwsniff.sources.replay import Replay
from kwsniff.tables.connection_ports import ports_of
from kwsniff.texts import plural

if TYPE_CHECKING:
    from kwsniff.live.batches import Rows

DONE, NOTHING_READ, ENDED_BY_ITSELF = 0, 1, 2
TICK_S = 0.25
_TIDY_S = 2.0
_SHOWN = ("api_calls", "error_codes", "groups")  # the tables that lines of calls need
Output = Screen | JsonLines | IntervalLines


class _Run:
    """One run: the outputs of its rows, and its end."""

    def __init__(self, session: Session, output: Output, window: Window) -> None:
        self.session = session
        self.output = output
        self.window = window
        self.rebalancing = Rebalancing(load_catalog(), session.standing)
        self.files: RollingTables | None = None
        self.metrics: Metrics | None = None
        self.watch: Watch | None = None
        self.chosen: FilteredRows | None = None
        self._seen: Rows | None = None
        self.files_trouble: str | None = None
        self.keep = Retention()
        self.until: float | None = None
        self.calls_left: int | None = None
        self.ports = AskedPorts()
        self.memory = Limits().memory
        self._tidied = 0.0
        self._broken: Exception | None = None

    def follow(self) -> None:
        """Runs until the capture, an option or the user ends it."""
        service = Service()
        service.ready(f"capturing on {self.session.source.interface}")
        while not self._is_over():
            service.turn(self.trouble or f"{self.window.calls:,} calls")
            if self.watch and self.watch.is_due:
                batches, snapshot = self.session.drain_with_snapshot()
                self._hand_out(batches)
                self.watch.evaluate(snapshot)
            else:
                self._hand_out(self.session.drain())
        service.stopping()
        self._hand_out(self.session.finish(), last=True)
        self._write(RollingTables.finish)
        if self._broken:
            raise self._broken

    def _connect(self, connections: "Rows | None") -> None:
        if connections is not self._seen:
            self._seen = connections
            self.window.connections = open_connections(connections)
            if self.metrics:
                self.metrics.connect(connections)

    def _write(self, write: Callable[[RollingTables], None]) -> None:
        """If tables cannot be written, their writing ends; the view and the metrics continue."""
        if self.files is None or self.files_trouble:
            return
        done = len(self.files.closed)
        try:
            write(self.files)
        except OutputError as error:
            self.files_trouble = f"{error}; kwsniff has stopped writing tables"
            self.files.abandon()
            print_message(self.files_trouble)
        if self.keep and len(self.files.closed) > done:
            self.keep.apply(self.files.directory, time.time())

    @property
    def trouble(self) -> str | None:
        """A warning, in one line, on a part that has failed while the capture continues."""
        return self.files_trouble or self.session.ring_trouble

    def _is_over(self) -> bool:
        if self._broken or (self.calls_left is not None and self.calls_left <= 0):
            return True
        left = min(TICK_S, self.output.interval)
        if self.until is not None:
            left = min(left, self.until - time.monotonic())
            if left <= 0:
                return True
        try:
            return self.output.pause(self.session, left)
        except (BrokenPipeError, OutputError) as error:
            self._broken = error
            return True

    def _hand_out(self, batches: Batches, *, last: bool = False) -> None:
        if self.ports.absent and "connections" in batches:
            self.ports.add(ports_of(batches["connections"]))
        if self.chosen:
            batches = self.chosen.select(batches)
        self._write(lambda files: files.write(batches))
        progress = self.session.progress()
        self.window.add(batches)
        self.rebalancing.add(batches)
        overdue = OverdueResponses() if self.chosen else self.session.find_overdue()
        self.rebalancing.add_waiting(overdue)
        self.window.overdue, self.window.under_way = overdue, self.rebalancing.under_way
        self.window.rebalances = self.rebalancing.over
        if self.watch:
            self.watch.add(batches)
            if last:
                self.watch.conclude()
            self.window.held = self.watch.held
            self._connect(self.watch.connections)
        if self.metrics:
            self.metrics.add(batches, progress)
            self.metrics.hold(self.window.held)
            self.metrics.show_overdue(overdue, self.rebalancing.under_way, self.rebalancing.count)
        self._tidy()
        if self.calls_left is not None and "api_calls" in batches:
            self.calls_left -= batches["api_calls"].num_rows
        try:
            if not self._broken:
                self.output.show(batches, progress, last=last)
        except (BrokenPipeError, OutputError) as error:  # the files are completed first
            self._broken = error

    def _tidy(self) -> None:
        """Rows are short-lived, in several threads: the C library keeps freed memory in fragments."""
        now = time.monotonic()
        if now - self._tidied >= _TIDY_S:
            keep_below(self.memory)
            self._tidied = now


def follow(args: argparse.Namespace, options: LiveOptions) -> int:
    """Runs to the end and prints a summary; exit status 2 if the capture ended unexpectedly. Raises
    KwsniffError."""
    tables = _choose(args, options)
    source = _open(args, options)
    with ExitStack() as stack:
        stack.callback(source.close)
        stack.callback(source.stop)
        if args.output is not None:  # first: must not touch packet files of another process
            rotation = Rotation(options.rotate_seconds, options.rotate_bytes)
            files = stack.enter_context(RollingTables(args.output, tables, rotation))
        session = stack.enter_context(_session(args, options, source, tables))
        if args.output is not None:
            files.late_topics = session.late_topics
        stack.enter_context(_stopped_by_signals(session))
        window = _window(session)
        metrics = None
        if options.metrics:
            metrics = Metrics(source.tool)
        output = _choose_output(args, options, session, window)
        watch = stack.enter_context(_watch(session, options)) if set(READ) <= set(tables) else None
        run = _Run(session, output, window)
        run.memory = Limits.with_changes(options.limits).memory
        if options.metrics and metrics:
            server = stack.enter_context(MetricsServer(metrics, *options.metrics, lambda: run.trouble))
            print_message(f"metrics at http://{server.address}/metrics")
        with output:
            run.keep = options.keep
            run.watch = watch
            run.files = files if args.output is not None else None
            if run.files and watch:
                run.files.findings = watch.pop_findings
                run.files.harm = watch.pop_harm
            run.metrics = metrics
            if "connections" in tables:
                run.ports = AskedPorts(options.ports)
            run.chosen = FilteredRows(options.filter, lambda: session.first_time) if options.filter else None
            run.until = None if options.duration is None else time.monotonic() + options.duration
            run.calls_left = args.stop_after
            if not isinstance(output, Screen):
                what = "reading" if source.capture else "capturing on"
                through = "" if source.capture else f" with {source.tool}"
                print_message(f"{what} {source.interface}{through}; Ctrl-C ends it")
            run.follow()
        there = _say_how_it_was(run, args.output)
    whole = session.ending is None or (source.replayed and session.summary.captures)
    if not whole or run.trouble:
        return ENDED_BY_ITSELF
    return DONE if there else NOTHING_READ


def _open(args: argparse.Namespace, options: LiveOptions) -> LiveSource:
    if options.capture is not None:
        return Replay(options.capture, speed=options.speed, times=time_range(args))
    return open_live(
        args.interface,
        expression=kernel_filter(options.ports, args.filter, tunnels=args.tunnels),
        tool=args.tool,
        snaplen=args.snaplen,
        buffer_mb=args.buffer,
    )


def _window(session: Session) -> Window:
    """The clock; that of the file during a replay."""
    if not session.source.replayed:
        return Window()
    window = Window(
        now=lambda: (session.find_watermark() or 0) / 1e9, begun=lambda: (session.first_time or 0) / 1e9
    )
    window.clock = lambda: (session.find_watermark() or 0) / 1e9
    return window


def _session(
    args: argparse.Namespace, options: LiveOptions, source: LiveSource, tables: tuple[str, ...]
) -> Session:
    ring = None
    if options.ring_files:
        ring = PacketRing(Path(args.output) / "packets", options.ring_files, options.ring_bytes)
    return Session(
        source,
        ports=options.ports,
        limits=options.limits,
        tables=with_needed(tables, options.filter),
        ring=ring,
        tls_keylog=args.tls_keylog,
    )


def _choose(args: argparse.Namespace, options: LiveOptions) -> tuple[str, ...]:
    names = [name.strip() for text in args.table for name in text.split(",")]
    tables = chosen_tables(names or None, some_calls=options.filter is not None)
    if args.output is not None:
        return tables
    wanted = READ if args.metrics or not args.json or args.lines else _SHOWN
    if options.capture is not None and options.ports:
        wanted = (*wanted, "connections")  # which show the ports
    return tuple(name for name in wanted if name in tables)


def _choose_output(
    args: argparse.Namespace, options: LiveOptions, session: Session, window: Window
) -> Output:
    if args.json and args.lines:
        return IntervalLines(window, options.interval, interval_json)
    if args.json:
        return JsonLines(options.interval)
    if args.lines or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return IntervalLines(window, options.interval, partial(interval_line, zone=zone_of(args)))
    return Screen(window, session, options.interval, zone_of(args))


@contextmanager
def _stopped_by_signals(session: Session) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the capture; the second Ctrl-C ends everything."""
    asked = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked = True
        session.stop()

    before: dict[int, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            before[int(number)] = signal.signal(number, stop)
    try:
        yield
    finally:
        for caught, handler in before.items():
            signal.signal(caught, handler)


def _watch(session: Session, options: LiveOptions) -> Watch:
    limits = Limits.with_changes(options.limits)
    return Watch(session.read_snapshot, most_rows=limits.finding_rows, memory=limits.memory)


def _say_how_it_was(run: _Run, directory: str | None) -> bool:
    """Whether a capture that was replayed to its end has anything that was asked for."""
    if run.session.ending:
        print_message(run.session.ending)
    if run.session.ring_trouble:
        print_message(run.session.ring_trouble)
    if run.watch and run.watch.trouble:
        print_message(run.watch.trouble)
    if run.watch and run.watch.shortened:
        limit = "memory" if run.watch.lacked_memory else "finding_rows"
        print_message(f"with many calls, findings cover fewer than {WINDOW_S:.0f} s (--limit {limit}=N)")
    progress, window, files = run.session.progress(), run.window, run.files
    dropped = progress.dropped_by_kernel
    told = f"{plural(window.calls, 'call')} in {plural(progress.packets, 'packet')}"
    if not run.session.source.capture:
        here = progress.dropped_here
        told += (
            f"; dropped by the kernel: {'unknown' if dropped is None else f'{dropped:,}'}, "
            f"dropped by kwsniff: {'unknown' if here is None else f'{here:,}'}"
        )
    print_message(told)
    there, source = True, run.session.source
    if isinstance(source, Replay) and run.session.ended_by_itself and not run.session.ending:
        missed = source.times.missed
        there = say_there(0 if missed else progress.packets, run.ports, missed=missed)
    if files:
        print_message(f"{plural(files.rows, 'row')} in {plural(len(files.closed), 'file')} under {directory}")
    return there
