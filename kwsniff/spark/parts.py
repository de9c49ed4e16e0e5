"""Rows of a task -> parquet files of its own, in a folder per table and day.

    STAGING/<table>/date=2026-11-20/<task>-<attempt>-<number>.parquet

A day's folder is what readers skip by; inside, rows keep their order, and row groups say the least and
greatest value of the columns people filter by.
"""

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.errors import OutputError
from kwsniff.spark.serialization import register
from kwsniff.spark.storage import Place, in_threads
from kwsniff.tables.arrays import whole_numbers
from kwsniff.tables.column import TableSchema
from kwsniff.tables.compute import filter_rows
from kwsniff.tables.run import add_run_id
from kwsniff.tables.schema import TABLES, arrow_schema, file_metadata, stored_schema
from kwsniff.tables.write import ROW_GROUP_ROWS, parquet_writer
from kwsniff.timelines.metadata.late_topic_names import shown_ids

if TYPE_CHECKING:
    from collections.abc import Mapping

DATED: Final["Mapping[str, tuple[str, ...]]"] = {
    "api_calls": ("request_time", "response_time"),
    "latencies": ("request_time",),
    "error_codes": ("response_time",),
    "connections": ("first_time",),
    "anomalies": ("time",),
    "partitions": ("time",),
    "record_batches": ("time",),
    "tcp_events": ("time",),
    "stalls": ("start_time",),
    "hops": (),
    "groups": ("begin_time", "end_time"),
    "transactions": ("begin_time", "end_time"),
    "commits": ("time",),
    "deliveries": ("produced_time", "fetched_time"),
    "members": ("joined_time", "last_time", "left_time"),
    "brokers": ("first_time",),
    "leaders": ("first_time",),
    "api_ranges": ("first_time",),
    "clients": ("first_time",),
    "servers": ("first_time",),
    "captures": ("first_time",),
    "findings": ("first_time",),
    "finding_calls": (),
}
"""Table -> the times that say which day a row belongs to: the first of them that is not null."""

NO_DATE: Final = "__HIVE_DEFAULT_PARTITION__"
_MICROSECONDS_A_DAY: Final = 86_400_000_000
_NO_DAY: Final = np.iinfo(np.int64).min
_MOST_OPEN = 64


@register
@dataclass(frozen=True, slots=True)
class Part:
    """One complete file, by its path inside the staging folder."""

    table: str
    path: str
    rows: int
    size: int
    """Size in bytes, as its writer saw it."""
    ids: frozenset[str] = frozenset()
    """Topic ids that it shows for want of a name."""


@dataclass(slots=True)
class _Open:
    """A file being written; `waiting` are batches that are too small for a row group of their own."""

    table: str
    path: str
    file: Any
    writer: pq.ParquetWriter
    rows: int = 0
    ids: set[str] = field(default_factory=set)
    waiting: list[pa.RecordBatch] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        self.ids |= shown_ids(self.table, batch)
        self.waiting.append(batch)
        if sum(each.num_rows for each in self.waiting) >= ROW_GROUP_ROWS // 2:
            self.flush()

    def flush(self) -> None:
        if self.waiting:
            rows = pa.Table.from_batches(self.waiting)
            if len(self.waiting) > 1:
                rows = rows.unify_dictionaries()
            self.writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
            self.waiting.clear()


class PartWriter:
    """Writes the rows of one attempt of one task; `close` returns the parts that are complete."""

    def __init__(self, staging: Place, task: str, run_id: str) -> None:
        self._staging = staging
        self._run_id = run_id
        self._task = f"{task}-{uuid.uuid4().hex[:12]}"
        self._open: dict[tuple[str, str], _Open] = {}
        self._parts: list[Part] = []

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Appends rows, given in the table's coded schema."""
        for date, rows in by_date(table, add_run_id(table, batch, self._run_id)):
            self._part(table, date).add(rows)

    def close(self) -> list[Part]:
        """Completes all files."""
        for table, date in list(self._open):
            self._close(table, date)
        return self._parts

    def _part(self, table: str, date: str) -> _Open:
        part = self._open.pop((table, date), None)
        if part is None:
            if len(self._open) >= _MOST_OPEN:
                self._close(*next(iter(self._open)))
            path = f"{table}/date={date}/{self._task}-{len(self._parts) + len(self._open)}.parquet"
            file = self._staging.open_output(path)
            part = _Open(table, path, file, part_writer(file, table, stored_schema(TABLES[table])))
        self._open[table, date] = part  # the last one is the one that was used last
        return part

    def _close(self, table: str, date: str) -> None:
        part = self._open.pop((table, date))
        part.flush()
        part.writer.close()
        size = part.file.tell()
        part.file.close()
        self._parts.append(Part(table, part.path, part.rows, size, frozenset(part.ids)))


def check_parts(place: Place, parts: Iterable[Part]) -> None:
    """Raises OutputError unless every part is in `place`, with the size that its writer saw."""
    for part, size in in_threads(lambda part: (part, place.size(part.path)), parts):
        _check_size(part.path, size, part.size)


def check_file(place: Place, path: str, size: int | None = None) -> None:
    """Raises OutputError unless the file that a task wrote is there, with its size."""
    _check_size(path, place.size(path), size)


def _check_size(path: str, seen: int | None, size: int | None) -> None:
    name = path.rpartition("/")[2]
    if seen is None:
        raise OutputError(
            f"{name}: a task wrote it, but it is missing; the output folder must be on storage that the "
            f"driver and all workers share"
        )
    if size is not None and seen != size:
        raise OutputError(
            f"{name}: a task wrote {size} bytes, but the file has {seen}; "
            "check the storage of the output folder, then run the pipeline again"
        )


def part_writer(file: Any, table: str, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of a part: as those of `kwsniff analyze`, but for smaller files."""
    return parquet_writer(file, TABLES[table], schema, compression="zstd")


def write_empty(place: Place, table: TableSchema) -> Part:
    """A table without rows is a file without rows: readers find its columns."""
    path = empty_path(table)
    with place.open_output(path) as file:
        with pq.ParquetWriter(file, arrow_schema(table), store_schema=False) as writer:
            writer.add_key_value_metadata(file_metadata(table))
        size = file.tell()
    return Part(table.name, path, 0, size)


def empty_path(table: TableSchema) -> str:
    """Which file that is."""
    return f"{table.name}/date={NO_DATE}/empty.parquet"


def by_date(table: str, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each day (YYYY-MM-DD, in UTC), in their order."""
    if not batch.num_rows:
        return
    days = np.full(batch.num_rows, _NO_DAY, np.int64)
    for name in reversed(DATED[table]):
        micros = whole_numbers(batch[name], null=_NO_DAY)
        days = np.where(micros == _NO_DAY, days, micros // _MICROSECONDS_A_DAY)
    if (first := days.min()) == days.max():  # nearly always: nothing is sorted
        yield _date(int(first)), batch
        return
    for day in np.unique(days).tolist():
        yield _date(day), filter_rows(batch, days == day)


def _date(day: int) -> str:
    return NO_DATE if day == _NO_DAY else str(np.datetime64(day, "D"))
