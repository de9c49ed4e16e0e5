"""A filter over a folder of tables: the calls that it chooses, by their runs and numbers."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.errors import UsageError
from kwsniff.filter import error_rows
from kwsniff.filter.error_rows import ErrorRows, runs_in
from kwsniff.filter.expression import Filter
from kwsniff.filter.rows_of_calls import Chosen
from kwsniff.tables.arrays import Numbers, whole_numbers
from kwsniff.tables.column import RUN
from kwsniff.tables.compute import filter_rows
from kwsniff.tables.schema import TABLES

_TEXTS: Final = frozenset(column.name for column in TABLES["api_calls"].columns if column.type == "string")
_MICROSECOND: Final = 1_000
_NONE: Final = -1
_NO_CALLS: Final = Chosen((), ())

Files = Mapping[str, Sequence[str]]
"""Table -> its parquet files."""


def choose_stored(files: Files, filter_: Filter) -> dict[str | None, Chosen]:
    """Run -> its chosen calls. Raises UsageError for tables without api_calls, and of an earlier kwsniff."""
    filter_ = resolve_stored(files, filter_)
    errors = stored_errors(files, filter_)
    found: dict[str | None, list[tuple[Numbers, Numbers]]] = {}
    for batch in stored_batches(files, "api_calls", {*filter_.columns, "call_id", "connection_id", RUN}):
        fits = filter_.rows(batch, errors)
        calls, connections = (whole_numbers(batch[name], null=_NONE) for name in ("call_id", "connection_id"))
        for run, rows in runs_in(batch):
            chosen = rows & fits
            if chosen.any():
                found.setdefault(run, []).append((calls[chosen], connections[chosen]))
    return {
        run: Chosen(
            np.concatenate([calls for calls, _ in some]),
            np.unique(np.concatenate([connections for _, connections in some])),
        )
        for run, some in found.items()
    }


def chosen_rows(table: str, batch: pa.RecordBatch, runs: Mapping[str | None, Chosen]) -> pa.RecordBatch:
    """The rows of a stored table that belong to chosen calls of their run."""
    fits = np.zeros(batch.num_rows, np.bool_)
    for run, rows in runs_in(batch) if batch.num_rows else ():
        chosen = runs.get(run, _NO_CALLS)
        fits |= rows & chosen.rows(table, batch)
    return filter_rows(batch, fits)


def copy_chosen(files: Files, filter_: Filter, origin: Path, folder: Path) -> None:
    """Writes the rows of a folder of tables (`origin`) that belong to chosen calls into another folder,
    laid out alike. Aggregates, which are of all calls, are left out. Raises UsageError."""
    runs = choose_stored(files, filter_)
    for table in files:
        if table in TABLES:
            (folder / table).mkdir(exist_ok=True)
        for name in files[table] if table in TABLES else ():
            place = Path(name).relative_to(origin)
            copy = folder / (table / Path(place.name) if len(place.parts) == 1 else place)
            copy.parent.mkdir(parents=True, exist_ok=True)
            with pq.ParquetFile(name) as file, pq.ParquetWriter(copy, file.schema_arrow) as writer:
                for group in range(file.num_row_groups):
                    for batch in file.iter_batches(row_groups=[group]):
                        if (rows := chosen_rows(table, batch, runs)).num_rows:
                            writer.write_batch(rows)


def stored_errors(files: Files, filter_: Filter) -> ErrorRows | None:
    """Rows of error_codes, where the filter asks them."""
    if not filter_.asks_errors:
        return None
    return ErrorRows(stored_batches(files, "error_codes", {*error_rows.COLUMNS, RUN}), by_run=True)


def resolve_stored(files: Files, filter_: Filter) -> Filter:
    """The filter with its times as dates; they count from the first and the last packet that was read."""
    filter_.check_located()
    if not filter_.relative_kinds:
        return filter_.resolve(None)
    first: list[int] = []
    last: list[int] = []
    for batch in stored_batches(files, "captures", {"first_time", "last_time"}):
        for name, times in (("first_time", first), ("last_time", last)):
            values = whole_numbers(batch[name], null=_NONE)
            times.extend(values[values != _NONE].tolist())
    return filter_.resolve(
        min(first) * _MICROSECOND if first else None, max(last) * _MICROSECOND if last else None
    )


def stored_batches(files: Files, table: str, columns: set[str]) -> Iterator[pa.RecordBatch]:
    """Rows of a table. Raises UsageError where it, or one of the columns, is missing."""
    if table not in files:
        raise UsageError(f"this folder has no table {table}, which the filter needs")
    for name in files[table]:
        with pq.ParquetFile(name, read_dictionary=sorted(columns & _TEXTS)) as file:
            missing = columns - {*file.schema_arrow.names}
            if missing:
                raise UsageError(f"{name}: from an earlier kwsniff, without {min(missing)}; write it again")
            for group in range(file.num_row_groups):
                yield from file.iter_batches(row_groups=[group], columns=sorted(columns))
