"""Twins among the connections of all buckets, marked in the files that tasks wrote."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.spark.parts import Part, make_place, part_writer
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.timelines.twins import Twins, find_twins


def twins_among(parts: Sequence[Part], *, staging: str, most: int) -> Twins:
    """On the driver: twins are in different buckets, and nobody else knows all connections."""
    paths = [Path(staging, part.path) for part in parts if part.table == "connections"]

    def source(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for path in paths:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches(columns=list(columns), use_threads=False)

    return find_twins(source, most)


def mark_parts(parts: Sequence[Part], twins: Twins, *, staging: str) -> dict[Part, Part]:
    """Of the files of connections those that hold twins, each with the one that says so."""
    files = [part for part in parts if part.table == "connections"] if twins else []
    return {part: _mark(part, twins, staging) for part in files if _holds(part, twins, staging)}


def _holds(part: Part, twins: Twins, staging: str) -> bool:
    with pq.ParquetFile(Path(staging, part.path)) as file:
        batches = file.iter_batches(columns=["connection_id"], use_threads=False)
        return any(twins.without(batch).num_rows < batch.num_rows for batch in batches)


def _mark(part: Part, twins: Twins, staging: str) -> Part:
    old = Path(part.path)
    path = old.with_name(f"twins-{uuid.uuid4().hex[:12]}-{old.name[-48:]}")
    target = make_place(Path(staging), str(path))
    schema = arrow_schema(TABLES["connections"])
    with (
        pq.ParquetFile(Path(staging, old)) as file,
        part_writer(target, "connections", schema) as writer,
    ):
        for group in range(file.num_row_groups):
            marked = [twins.mark(batch) for batch in file.read_row_group(group).to_batches()]
            writer.write_table(pa.Table.from_batches(marked).cast(schema))
    return replace(part, path=str(path), size=target.stat().st_size)
