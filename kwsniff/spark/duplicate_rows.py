"""Twins among the connections of all buckets, marked in the files that tasks wrote."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

import pyarrow as pa

from kwsniff.sources.ports import AskedPorts
from kwsniff.spark.parts import Part, part_writer
from kwsniff.spark.storage import Place
from kwsniff.tables.connection_ports import ports_of
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.timelines.duplicates.duplicate_connections import Twins, find_twins


def twins_among(
    parts: Sequence[Part], *, staging: Place, most: int, places: Mapping[str, int] | None = None
) -> Twins:
    """On the driver, because duplicates are in different buckets and only the driver has all connections.
    `places`: as for find_twins."""
    paths = [part.path for part in parts if part.table == "connections"]

    def source(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for path in paths:
            with staging.open_parquet(path) as file:
                yield from file.iter_batches(columns=list(columns), use_threads=False)

    return find_twins(source, most, places)


def absent_ports(parts: Sequence[Part], ports: Sequence[int], *, staging: Place) -> tuple[int, ...]:
    """Those of `ports` that no connection has."""
    asked = AskedPorts(ports)
    for path in [part.path for part in parts if part.table == "connections"] if ports else ():
        with staging.open_parquet(path) as file:
            for batch in file.iter_batches(columns=["client_port", "broker_port"], use_threads=False):
                asked.note(ports_of(batch))
    return tuple(sorted(asked.absent))


def mark_parts(parts: Sequence[Part], twins: Twins, *, staging: Place) -> dict[Part, Part]:
    """Of the files of connections those that hold twins, each with the one that says so."""
    files = [part for part in parts if part.table == "connections"] if twins else []
    return {part: _mark(part, twins, staging) for part in files if _holds(part, twins, staging)}


def _holds(part: Part, twins: Twins, staging: Place) -> bool:
    with staging.open_parquet(part.path) as file:
        batches = file.iter_batches(columns=["connection_id"], use_threads=False)
        return any(twins.without(batch).num_rows < batch.num_rows for batch in batches)


def _mark(part: Part, twins: Twins, staging: Place) -> Part:
    old = PurePosixPath(part.path)
    path = old.with_name(f"twins-{uuid.uuid4().hex[:12]}-{old.name[-48:]}")
    schema = arrow_schema(TABLES["connections"])
    with staging.open_parquet(part.path) as file, staging.open_output(str(path)) as target:
        with part_writer(target, "connections", schema) as writer:
            for group in range(file.num_row_groups):
                marked = [twins.mark(batch) for batch in file.read_row_group(group).to_batches()]
                writer.write_table(pa.Table.from_batches(marked).cast(schema))
        size = target.tell()
    return replace(part, path=str(path), size=size)
