"""Rows as a live capture delivers them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

Rows: TypeAlias = "pa.RecordBatch"
"""Rows of one table."""

Batches = Mapping[str, pa.RecordBatch]
"""Table name -> new rows, in the coded schema; tables without new rows are left out."""


def append_batches(parts: dict[str, list[pa.RecordBatch]], rows: Batches) -> None:
    """Appends rows to those of their tables."""
    for table, batch in rows.items():
        parts.setdefault(table, []).append(batch)


def concat_batches(many: Iterable[Batches]) -> Batches:
    """All rows as one set."""
    parts: dict[str, list[pa.RecordBatch]] = {}
    for rows in many:
        append_batches(parts, rows)
    return {table: one_batch(batches) for table, batches in parts.items()}


def one_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of one table as one, with unified dictionaries."""
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    rows: pa.RecordBatch = table.to_batches()[0]
    return rows
