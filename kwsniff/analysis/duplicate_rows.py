"""Twins among the connections of a run, marked at its end, when all rows are known."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.findings.prefilter.figures import Figures
from kwsniff.tables.captures import CaptureRow
from kwsniff.tables.schema import TABLES
from kwsniff.tables.write import TableWriter
from kwsniff.timelines.duplicates.duplicate_connections import Source, Twins, find_twins

Batches = Mapping[str, list[pa.RecordBatch]]


def twins_among(
    writer: TableWriter | None, batches: Batches, most: int, places: Mapping[str, int] | None = None
) -> Twins:
    """Of the table of connections, written or in memory; nothing more can be written to it. `places`: as for
    find_twins."""
    with connections_of(writer, batches) as connections:
        return find_twins(connections, most, places)


@contextmanager
def connections_of(writer: TableWriter | None, batches: Batches) -> Iterator[Source]:
    """The table of connections, written or in memory; nothing more can be written to it."""
    if writer is None:
        yield partial(_select_columns, batches["connections"])
        return
    path = writer.complete(["connections"])["connections"]
    with pq.ParquetFile(path) as file:
        yield partial(_read_columns, file)


def mark_late(
    writer: TableWriter | None, batches: dict[str, list[pa.RecordBatch]], figures: Figures, twins: Twins
) -> None:
    """Gives connections that are there already their `twin_of`, of which `figures` learns."""
    if not twins:
        return
    if writer is None:
        batches["connections"] = [twins.mark(batch) for batch in batches["connections"]]
        return
    writer.rewrite("connections", partial(_mark, twins=twins))
    figures.add_twins(len(twins.found))


def move_repeated(captures: Sequence[CaptureRow], twins: Twins) -> None:
    """What twins show sent again was sent again once: the rest of it are copies."""
    for row in captures:
        moved = min(twins.repeated.get(row["capture"], 0), row["retransmitted_bytes"])
        row["retransmitted_bytes"] -= moved
        row["captured_twice_bytes"] += moved


def _select_columns(batches: Sequence[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    return (batch.select(list(columns)) for batch in batches)


def _read_columns(file: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    found: Iterator[pa.RecordBatch] = file.iter_batches(columns=list(columns), use_threads=False)
    return found


def _mark(table: pa.Table, twins: Twins) -> pa.Table:
    return pa.Table.from_batches([twins.mark(batch) for batch in table.to_batches()], table.schema)


def twins_anomalies(twins: Twins) -> list[dict[str, Any]]:
    """A row of anomalies where not all connections were compared."""
    columns = dict.fromkeys(column.name for column in TABLES["anomalies"].columns)
    return [{**columns, "name": "twins_limit", "value": twins.left_out}] if twins.left_out else []
