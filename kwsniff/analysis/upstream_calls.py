"""Fills the column `upstream_call_id` of calls that a proxy passed on, once all rows of a run are known."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.analysis.proxies import COLUMNS, find_possible_proxies
from kwsniff.layout.catalog import Catalog
from kwsniff.layout.traits import FETCHED
from kwsniff.memory import memory_left
from kwsniff.tables.schema import TABLES, coded_schema
from kwsniff.tables.write import TableWriter

READ: Final = ("connections", "api_calls", "record_batches")
"""Tables that calls are joined by; without the last one, members and producers alone prove connections."""


def fill_upstream_calls(
    writer: TableWriter | None,
    batches: dict[str, list[pa.RecordBatch]],
    places: Mapping[str, int],
    catalog: Catalog,
    limit: int,
) -> None:
    """Fills `upstream_call_id` of the calls that a proxy passed on, in files or in memory; nothing more can
    be written to these tables. `places`: name of a capture -> where it was taken. `limit`: bytes of memory
    for the process."""
    made = [name for name in READ if name in (writer.paths if writer else batches)]
    if made[:2] != [*READ[:2]]:
        return
    if not (proxies := find_possible_proxies(_read_connections(writer, batches))).endpoints:
        return
    from kwsniff.analysis.proxied_calls import join_upstream_calls
    from kwsniff.findings.database import lacks_memory

    tables: dict[str, Any] = {name: [path] for name, path in writer.complete(made).items()} if writer else {}
    for name in () if writer else made:
        tables[name] = pa.Table.from_batches(batches[name], coded_schema(TABLES[name]))
    fetches = keys_of_fetches(catalog)
    try:
        found = join_upstream_calls(tables, proxies, places, fetches, memory_left(limit))
    except Exception as error:
        if not lacks_memory(error):
            raise
        return
    if not found:
        return
    if writer:
        writer.rewrite("api_calls", found.fill, coded=True)
    else:
        batches["api_calls"] = found.fill(tables["api_calls"]).to_batches()


def keys_of_fetches(catalog: Catalog) -> list[int]:
    """The APIs that fetch records."""
    return [key for key, api in catalog.apis.items() if api.traits.records == FETCHED]


def _read_connections(
    writer: TableWriter | None, batches: Mapping[str, list[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    if writer is None:
        yield from (batch.select([*COLUMNS]) for batch in batches["connections"])
        return
    with pq.ParquetFile(writer.complete(["connections"])["connections"]) as file:
        yield from file.iter_batches(columns=[*COLUMNS], use_threads=False)
