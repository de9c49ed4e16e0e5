"""Twins among the connections of all buckets, marked in the files that tasks wrote."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from kwsniff.sources.ports import AskedPorts
from kwsniff.spark.parts import Part
from kwsniff.spark.rewritten_parts import rewrite_part
from kwsniff.spark.storage import Place
from kwsniff.tables.connection_ports import ports_of
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
                asked.add(ports_of(batch))
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
    def mark(rows: pa.Table) -> pa.Table:
        return pa.Table.from_batches([twins.mark(batch) for batch in rows.to_batches()])

    return rewrite_part(part, mark, "twins", staging=staging)
