"""`kwsniff.sniff`: a live interface as a stream of Arrow tables."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import pyarrow as pa

from kwsniff.analysis.result import Analysis
from kwsniff.analysis.table_selection import chosen_tables
from kwsniff.errors import UsageError
from kwsniff.filter.expression import Filter
from kwsniff.filter.parser import parse_filter
from kwsniff.layout.catalog import Layouts
from kwsniff.live.batches import Batches
from kwsniff.live.filtered_rows import FilteredRows, check_filter, with_needed
from kwsniff.live.session import Progress, Session
from kwsniff.sources.live import BUFFER_MB, SNAPLEN, kernel_filter, open_live
from kwsniff.sources.ports import check_ports
from kwsniff.sources.tls import KeyLog
from kwsniff.tables.run import add_run_id, new_run_id
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.timelines.metadata.late_topic_names import late_names

Tables = dict[str, pa.Table]
"""Table name -> rows in plain types, as in the parquet files; tables without new rows are left out."""


class Sniffer:
    """A live capture. Either iterate for rows as they arrive, or get the `result` at the end.

    `kwsniff.sniff` starts the capture. Leaving the `with` block ends it.
    """

    def __init__(
        self,
        session: Session,
        *,
        interval: float,
        duration: float | None,
        stop_after: int | None,
        where: Filter | None = None,
        tables: Sequence[str] = (),
    ) -> None:
        self._tables = session.tables if where is None else tuple(tables)
        self._only = FilteredRows(where, lambda: session.first_time) if where else None
        self._session = session
        self._interval = interval
        self._until = None if duration is None else time.monotonic() + duration
        self._left = stop_after
        self._used = False
        self.run_id = new_run_id()
        """The value of the column `run_id` in all tables."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def __iter__(self) -> Iterator[Tables]:
        """The new rows of each interval that has any; at the end, those of open calls and connections."""
        for batches in self._batches():
            yield {table: _plain(table, [batch], self.run_id) for table, batch in batches.items()}

    def stop(self) -> None:
        """Ends the capture; a running iteration yields the last rows and ends. Other threads may call
        it."""
        self._session.stop()

    @property
    def ending(self) -> str | None:
        """Why the capture ended by itself (the interface vanished); None if it was stopped."""
        return self._session.ending

    def progress(self) -> Progress:
        """Packets, drops and calls in flight at this moment."""
        return self._session.progress()

    def result(self) -> Analysis:
        """Waits for the end and returns all tables and the summary, as `kwsniff.analyze` does; they stay in
        memory."""
        found: dict[str, list[pa.RecordBatch]] = {name: [] for name in self._tables}
        for batches in self._batches():
            for table, batch in batches.items():
                found[table].append(batch)
        summary = self._session.summary
        changes = late_names(summary.late_topics, self._tables)
        return Analysis(summary, {}, found, changes, self._tables, run_id=self.run_id)

    def _batches(self) -> Iterator[Batches]:
        if self._used:
            raise UsageError("the rows of this capture were already taken; call kwsniff.sniff again")
        self._used = True
        try:
            while not self._is_over():
                if batches := self._choose(self._session.drain()):
                    yield batches
            if batches := self._choose(self._session.finish()):
                yield batches
        finally:
            self._session.close()

    def _choose(self, batches: Batches) -> Batches:
        if self._only:
            batches = self._only.select(batches)
        if self._left is not None and "api_calls" in batches:
            self._left -= batches["api_calls"].num_rows
        return {table: batch for table, batch in batches.items() if table in self._tables}

    def _is_over(self) -> bool:
        if self._left is not None and self._left <= 0:
            return True
        left = self._interval
        if self._until is not None:
            left = min(left, self._until - time.monotonic())
            if left <= 0:
                return True
        return self._session.wait(left)


def sniff(
    interface: str,
    *,
    ports: int | Sequence[int] = (),
    bpf: str | None = None,
    tunnels: bool = False,
    duration: float | None = None,
    stop_after: int | None = None,
    interval: float = 1.0,
    tables: str | Sequence[str] | None = None,
    limits: Mapping[str, int] | None = None,
    tool: str | None = None,
    snaplen: int = SNAPLEN,
    buffer_mb: int = BUFFER_MB,
    layouts: Layouts | None = None,
    tls_keylog: KeyLog = None,
    where: str | None = None,
) -> Sniffer:
    """Captures Kafka on a live interface until stopped.

    `ports`: broker ports, or one; the kernel drops all other packets. By default kwsniff recognises Kafka on
    any port. `tunnels`: also all packets of VXLAN, Geneve, GRE, ERSPAN, GTP-U and IP in IP. `bpf`: a libpcap
    filter. `duration`: seconds. `stop_after`: ends after this number of calls, and those that arrive with
    the last one. `interval`: seconds between steps of an iteration. `tables`: the tables to make (default:
    all). `limits`: name -> value, see kwsniff.limits. `tool`: dumpcap, tcpdump or scapy. `buffer_mb`: the
    kernel's packet buffer. `layouts`: a vendor's layouts. `tls_keylog`: key logs, which may still grow.
    `where`: a filter (docs/filters.md); leaves out tables of many calls. Raises CaptureError, UsageError.

        with kwsniff.sniff("eth0", ports=[9092]) as live:
            for tables in live:
                print(tables.get("error_codes"))
    """
    only = parse_filter(where) if where else None
    if only:
        check_filter(only)
    known, chosen = check_ports(ports), _check(interval, tables, some_calls=only is not None)
    bpf = kernel_filter(known, bpf, tunnels=tunnels)
    source = open_live(interface, expression=bpf, tool=tool, snaplen=snaplen, buffer_mb=buffer_mb)
    try:
        needed = with_needed(chosen, only)
        session = Session(
            source, ports=known, limits=limits, tables=needed, layouts=layouts, tls_keylog=tls_keylog
        )
    except BaseException:
        source.stop()
        source.close()
        raise
    return Sniffer(
        session, interval=interval, duration=duration, stop_after=stop_after, where=only, tables=chosen
    )


def _check(interval: float, tables: str | Sequence[str] | None, *, some_calls: bool) -> tuple[str, ...]:
    """The tables to make. Raises UsageError for invalid arguments."""
    if interval <= 0:
        raise UsageError(f"interval must be more than 0 seconds, not {interval}")
    chosen = chosen_tables(tables, some_calls=some_calls)
    if not chosen:
        raise UsageError("tables must not be empty")
    return chosen


def _plain(table: str, batches: Sequence[pa.RecordBatch], run_id: str) -> pa.Table:
    marked = [add_run_id(table, batch, run_id) for batch in batches]
    return pa.Table.from_batches(marked).cast(arrow_schema(TABLES[table]))
