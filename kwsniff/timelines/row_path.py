"""The path of rows from the core to tables, the same in analyze, live and Spark.

core ─ take ─▶ columns ─ build ─▶ batches ─ note ─▶ batches to count and keep
                                              └───▶ calls to follow, latencies that wait for proof
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyarrow import ipc

from kwsniff.analyzers import CORE_OUTPUT
from kwsniff.core.analyzer import Analyzer
from kwsniff.core.declared import COLUMNS, ENUMS
from kwsniff.layout.catalog import Catalog
from kwsniff.tables.build import Builder, ColumnData
from kwsniff.tables.merged_rows import concat_coded
from kwsniff.tables.schema import DETAILS, TABLES, coded_schema
from kwsniff.tables.write import ROW_GROUP_ROWS
from kwsniff.timelines.timelines import (
    BATCHES_OF,
    FOLLOWED,
    HELD,
    OFFSETS_OF,
    Noted,
    extract_events,
    needs_deliveries,
)
from kwsniff.timelines.waits.pending_rows import hold_back

TOGETHER: Final = {"api_calls", HELD, OFFSETS_OF, BATCHES_OF, DETAILS}
"""Taken together: every latency, partition and record batch comes with its call."""

Columns = Mapping[str, Sequence[ColumnData]]
"""Table -> its columns from the core."""


def take_rows(analyzer: Analyzer, tables: Iterable[str]) -> Columns:
    """Takes the rows of `tables` off the analyzer; tables without rows are left out."""
    return {table: analyzer.drain(table) for table in tables if analyzer.rows(table)}


def large_tables(analyzer: Analyzer) -> list[str]:
    """Tables to take once one of them fills a row group; none before."""
    rows = {table: analyzer.rows(table) for table in COLUMNS}
    if max(rows.values()) < ROW_GROUP_ROWS:
        return []
    large = {table for table in COLUMNS if rows[table] > ROW_GROUP_ROWS // 2}
    if large & TOGETHER:
        large |= TOGETHER
    return [table for table in CORE_OUTPUT if table in large]


class RowPath:
    """Builds batches, and notes in them the calls that timelines follow."""

    def __init__(self, catalog: Catalog, tables: Container[str]) -> None:
        """`tables`: those that the caller keeps."""
        self._catalog = catalog
        self._tables = tables
        self._builder = Builder(catalog, ENUMS)
        self._holds = HELD in tables
        self.follows = any(table in tables for table in FOLLOWED)
        """Whether some of these tables come from timelines."""
        self._early: pa.RecordBatch | None = None
        """Record batches that came without partitions, since those that did."""

    def build(self, table: str, columns: Sequence[ColumnData]) -> pa.RecordBatch:
        """The rows of one table, in the coded schema."""
        return self._builder.build(table, columns)

    def build_all(self, columns: Columns) -> dict[str, pa.RecordBatch]:
        """Table -> rows."""
        return {table: self._builder.build(table, each) for table, each in columns.items()}

    def extract(self, batches: dict[str, pa.RecordBatch]) -> Noted | None:
        """Removes from `batches`, taken together, the details and the latencies that wait for proof. Returns
        the calls to follow; None without calls, or if the caller keeps no table in FOLLOWED."""
        calls, details, timed = batches.get("api_calls"), batches.pop(DETAILS, None), None
        records = self._gather(batches.get(BATCHES_OF)) if needs_deliveries(self._tables) else None
        if HELD in batches and self._holds:
            batches[HELD], timed = hold_back(batches[HELD], calls, self._catalog)
        if calls is None or not self.follows:
            return None
        partitions = batches.get(OFFSETS_OF)
        if partitions is not None and partitions.num_rows:
            self._early = None
        return extract_events(
            calls, details, partitions, self._catalog, timed, batches=records, tables=self._tables
        )

    def state(self) -> bytes:
        """The record batches whose calls come later, for `resume`."""
        if self._early is None:
            return b""
        sink = pa.BufferOutputStream()
        with ipc.new_stream(sink, self._early.schema) as writer:
            writer.write_batch(self._early)
        return bytes(sink.getvalue())

    def resume(self, state: bytes) -> None:
        """Continues from a saved state."""
        if state:
            with ipc.open_stream(state) as reader:
                self._early = reader.read_next_batch()

    def _gather(self, records: pa.RecordBatch | None) -> pa.RecordBatch | None:
        """The record batches since calls with partitions came last."""
        both = [each for each in (self._early, records) if each is not None and each.num_rows]
        self._early = concat_coded(both) if both else None
        return self._early


def public_rows(table: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows from timelines in the public schema; latencies have the topics of their calls, too."""
    return rows.select(coded_schema(TABLES[HELD]).names) if table == HELD else rows
