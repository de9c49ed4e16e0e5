"""Where rows of captures go: counted, then to the writer or into memory."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kwsniff.analysis.measured_networks import MeasuredNetworks
from kwsniff.analysis.summary import Summary
from kwsniff.analysis.worker import Worker
from kwsniff.core.analyzer import Analyzer
from kwsniff.filter.rows_of_calls import Chosen
from kwsniff.findings.prefilter.figures import Figures
from kwsniff.layout.catalog import Catalog
from kwsniff.memory import keep_below
from kwsniff.tables.merged_rows import (
    CALLS,
    Names,
    Part,
    concat_coded,
    fill_topic_names,
    merge_parts,
    part_of,
)
from kwsniff.tables.schema import DETAILS
from kwsniff.tables.write import ROW_GROUP_ROWS, TableWriter
from kwsniff.timelines.duplicates.duplicate_connections import Twins
from kwsniff.timelines.metadata.late_topic_names import ShownIds
from kwsniff.timelines.row_path import TOGETHER, Columns, RowPath, large_tables, public_rows
from kwsniff.timelines.timelines import Timelines, without_twins

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from kwsniff.analysis.parallel import Taken

_TIMELINE_ROWS: Final = 4096
_FEW_BYTES: Final = 4_000_000
_WRITERS: Final = 4
"""Threads that write tables, where there are several analyzers."""


class Rows:
    """Where rows go: counted, then to the writer or into memory, in a thread of their own.

    Another thread writes the rows of one step while the next step is taken. One step of work waits at most:
    rows never pile up when writing is slower than reading. A failure there is raised by a later call here.
    """

    def __init__(  # noqa: PLR0917
        self,
        catalog: Catalog,
        summary: Summary,
        writer: TableWriter | None,
        chosen: Sequence[str],
        twins: Twins,
        only: Chosen | None,
        networks: MeasuredNetworks,
        *,
        memory: int,
        beside: bool,
    ) -> None:
        """`chosen`: tables. `beside`: several analyzers give rows; tables are then written beside each
        other."""
        self.summary = summary
        self._only = only
        self._twins = twins
        self._networks = networks
        self.figures = Figures()
        """Of what is written, where findings are wanted."""
        self.batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in chosen}
        self.shown_ids = ShownIds()
        """Ids of topics that rows show instead of names: no message had named them by then."""
        self._path = RowPath(catalog, chosen)
        self._writer = writer
        self._memory = memory
        self._kept_bytes = 0
        """Of rows that the caller gets: they come in addition to the limit."""
        self._timelines = Timelines(catalog, memory, chosen)
        self._worker = Worker("kwsniff-tables")
        self._writing = Worker("kwsniff-writing")
        self._unwritten: list[tuple[str, pa.RecordBatch]] | None = None
        """Rows of the step that is being taken; None between two steps, when rows are written directly."""
        self._pool = _start_pool() if beside else None
        self._being_written: dict[str, Future[None]] = {}
        self._few: dict[str, list[pa.RecordBatch]] = {}

    def __enter__(self) -> "Rows":
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()
        self._writing.close()
        if self._pool:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def drain_large(self, analyzer: Analyzer) -> None:
        """Takes the larger tables once one of them fills a row group."""
        if large := large_tables(analyzer):
            self.drain(analyzer, large)

    def drain(self, analyzer: Analyzer, tables: Iterable[str]) -> None:
        """Takes tables off the analyzer, after what was taken before is settled."""
        self.flush()
        keep_below(self._memory + self._kept_bytes)
        # Tables without rows, too: the summary counts them.
        columns = {table: analyzer.drain(table) for table in tables}
        self._worker.submit(self._take_in, columns)

    def take_turn(self, parts: "Sequence[Taken]", names: Names, last: bool) -> None:
        """Takes what several analyzers gave of the same packets, those of each one behind the other. `names`:
        what was learned of topics by then. `last`: no more comes."""
        self.flush()
        keep_below(self._memory + self._kept_bytes)
        self._worker.submit(self._take_in_turn, parts, names, last)

    def flush(self) -> None:
        """Waits until everything taken is counted, and all but the last step written."""
        self._worker.wait()

    def finish(self) -> None:
        """Everything was taken: what is computed over all rows becomes rows, too, and all are written."""
        self.flush()
        self._writing.wait()
        self._timelines.finish()
        self._keep_timelines(at_least=0)
        for written in self._being_written.values():
            written.result()
        if self._pool:
            self._pool.shutdown()
            self._pool = None

    def write_rows(self, table: str, batch: pa.RecordBatch) -> None:
        """Writes rows, or remembers them when nothing is written."""
        if table not in self.batches:
            return
        self.shown_ids.add(table, batch)
        if self._writer:
            self._write(self._writer, table, batch)
            if "findings" in self.batches:
                self.figures.add(table, batch)
        else:
            self.batches[table].append(batch)
            self._kept_bytes += batch.nbytes

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Rows that are not the core's."""
        self.flush()
        if batch.num_rows:
            self.summary.add(table, batch)
            self.write_rows(table, batch)

    def _write(self, writer: TableWriter, table: str, batch: pa.RecordBatch) -> None:
        """One batch of each table is written at a time."""
        if self._unwritten is not None:
            self._unwritten.append((table, batch))
        elif not self._pool:
            writer.write(table, batch)
        else:
            if table in self._being_written:
                self._being_written[table].result()
            self._being_written[table] = self._pool.submit(writer.write, table, batch)

    def _take_in_turn(self, parts: "Sequence[Taken]", names: Names, last: bool) -> None:
        if not self._pool:
            raise AssertionError("rows of several analyzers come where they were not expected")
        tables = list(parts[0])
        alone = [[table] for table in tables if table not in {CALLS, DETAILS}]
        together = [table for table in tables if table in {CALLS, DETAILS}]
        batches: dict[str, pa.RecordBatch] = {}
        for rows in self._pool.map(partial(self._merge, parts, names), [together, *alone]):
            batches |= rows
        enough = [table for table in tables if self._is_enough(table, batches, last)]
        self._take_batches({table: batches[table] for table in enough})

    def _merge(
        self, parts: "Sequence[Taken]", names: Names, tables: Sequence[str]
    ) -> dict[str, pa.RecordBatch]:
        """Some tables of all parts, which are taken out of them: these need not be there twice."""
        given: list[dict[str, Part]] = []
        for part in parts:
            built = {}
            for table in tables:
                columns, order = part.pop(table)
                rows = part_of(self._path.build(table, columns), order)
                built[table] = fill_topic_names(table, rows, names)
                del columns, rows
            given.append(built)
        return merge_parts(given, tables)

    def _is_enough(self, table: str, batches: dict[str, pa.RecordBatch], last: bool) -> bool:
        """Whether rows of a table are passed on; a few of them wait, and are passed on with later ones."""
        if table in TOGETHER:
            return True
        waiting = self._few.setdefault(table, [])
        waiting.append(batches[table])
        size = sum(each.nbytes for each in waiting)
        if not last and sum(each.num_rows for each in waiting) < ROW_GROUP_ROWS // 2 and size < _FEW_BYTES:
            return False
        batches[table] = concat_coded(waiting)
        waiting.clear()
        return True

    def _take_in(self, columns: Columns) -> None:
        self._unwritten = []
        self._take_batches(self._path.build_all(columns))
        unwritten, self._unwritten = self._unwritten, None
        if self._writer:
            self._writing.wait()
            self._writing.submit(_write_all, self._writer, unwritten)

    def _take_batches(self, batches: dict[str, pa.RecordBatch]) -> None:
        noted = self._path.extract(batches)
        calls = batches.get("api_calls")
        for table, batch in batches.items():
            if table == "connections":
                self.summary.note_ports(batch)
            self._take_rows(table, batch, calls)
            if self._path.follows:
                self._timelines.add_rows(table, self._twins.without(batch))
            if table == "api_calls" and noted:
                self._timelines.add(without_twins(noted, self._twins))
                self._keep_timelines(at_least=_TIMELINE_ROWS)

    def _keep_timelines(self, at_least: int) -> None:
        for table, batch in self._timelines.drain(at_least):
            self._take_rows(table, batch, batch)

    def _take_rows(self, table: str, batch: pa.RecordBatch, calls: pa.RecordBatch | None) -> None:
        if table == "latencies" and self._networks:
            measured = self._networks.correct(batch)
            batch, calls = measured, measured if calls is batch else calls
        rows = self._only.select(table, batch) if self._only else batch
        self.summary.add(table, rows, calls)
        if calls is batch:
            rows = public_rows(table, rows)
        self.write_rows(table, self._twins.mark(rows) if self._twins and table == "connections" else rows)


def _write_all(writer: TableWriter, rows: list[tuple[str, pa.RecordBatch]]) -> None:
    while rows:  # and lets each batch go
        writer.write(*rows.pop(0))


def _start_pool() -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_WRITERS, "kwsniff-writing")
