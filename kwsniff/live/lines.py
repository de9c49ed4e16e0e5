"""Calls as JSON lines, and intervals as lines of text, for other programs and for logs."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kwsniff.tables.column import RUN
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.texts import add_version, json_text

_TIMES = tuple(column.name for column in TABLES["api_calls"].columns if column.type == "time")


def call_lines(batch: pa.RecordBatch) -> Iterator[str]:
    """One JSON object per row of api_calls: version, then its columns without nulls, with times in ISO 8601
    UTC and microseconds."""
    plain = pa.schema([field for field in arrow_schema(TABLES["api_calls"]) if field.name != RUN])
    rows = pa.Table.from_batches([batch]).cast(plain)
    present = [name for name in rows.column_names if rows[name].null_count < len(rows)]
    columns = [_values(name, rows[name]) for name in present]
    for values in zip(*columns, strict=True):
        row = {name: value for name, value in zip(present, values, strict=True) if value is not None}
        yield json_text(add_version(row))


def _values(name: str, column: pa.ChunkedArray) -> list[Any]:
    if name not in _TIMES:
        values: list[Any] = column.to_pylist()
        return values
    return [value and f"{value:%Y-%m-%dT%H:%M:%S.%f}Z" for value in column.to_pylist()]
