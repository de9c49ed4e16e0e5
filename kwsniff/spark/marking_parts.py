"""Twins among the connections of all buckets, marked in the files that tasks wrote."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kwsniff.spark.parts import Part, make_place, part_writer
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.timelines.twins import COLUMNS, find_twins, mark_twins


def mark_parts(parts: Sequence[Part], *, staging: str) -> dict[Part, Part]:
    """Of the files of connections those that have a twin, each with the one that says so.

    On the driver: twins are in different buckets, and nobody else knows all connections.
    """
    files = [part for part in parts if part.table == "connections"]
    if not files:
        return {}
    marks = [pq.ParquetFile(Path(staging, part.path)).read(columns=list(COLUMNS)) for part in files]
    twins = find_twins(pa.concat_tables(marks))
    marked = pa.array(list(twins), pa.int64())
    return {
        part: _mark(part, twins, staging)
        for part, mark in zip(files, marks, strict=True)
        if pc.any(pc.is_in(mark["connection_id"], value_set=marked)).as_py()
    }


def _mark(part: Part, twins: dict[int, int], staging: str) -> Part:
    old = Path(part.path)
    path = old.with_name(f"twins-{uuid.uuid4().hex[:12]}-{old.name[-48:]}")
    target = make_place(Path(staging), str(path))
    schema = arrow_schema(TABLES["connections"])
    with (
        pq.ParquetFile(Path(staging, old)) as file,
        part_writer(target, "connections", schema) as writer,
    ):
        for group in range(file.num_row_groups):
            writer.write_table(mark_twins(file.read_row_group(group), twins).cast(schema))
    return replace(part, path=str(path), size=target.stat().st_size)
