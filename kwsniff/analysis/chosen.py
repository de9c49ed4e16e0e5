"""Tables of some calls alone: these calls, what belongs to them, and their connections."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.analyzers import core_tables
from kwsniff.errors import UsageError
from kwsniff.tables.arrays import whole_numbers
from kwsniff.tables.compute import filter_rows
from kwsniff.tables.schema import TABLES
from kwsniff.texts import suggest
from kwsniff.timelines.timelines import sources_of

TABLES_OF_CALLS: Final = (
    "api_calls", "latencies", "error_codes", "connections", "anomalies", "partitions", "record_batches",
    "tcp_events", "captures",
)  # fmt: skip
"""What is made of some calls. The others tell of what many calls do together: a group, a transaction."""
_BY_CONNECTION: Final = frozenset({"connections", "anomalies", "tcp_events"})
_NONE: Final = -1  # an anomaly of a file has no connection, and stays


class Chosen:
    """Calls, by their numbers, and the numbers of their connections."""

    def __init__(self, calls: Iterable[int], connections: Iterable[int]) -> None:
        self._calls = np.unique(np.fromiter(calls, np.int64))
        self._connections = np.unique(np.fromiter((_NONE, *connections), np.int64))

    def of(self, table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that belong to them."""
        column, chosen = (
            ("connection_id", self._connections) if table in _BY_CONNECTION else ("call_id", self._calls)
        )
        if batch.num_rows == 0 or column not in batch.schema.names:
            return batch
        return filter_rows(batch, np.isin(whole_numbers(batch[column], null=_NONE), chosen))


def chosen_tables(tables: str | Sequence[str] | None, *, some_calls: bool = False) -> tuple[str, ...]:
    """Names of tables in the order they are declared.

    Raises UsageError for a name that is none, or that is not made of some calls alone.
    """
    if tables is None:
        return tuple(name for name in TABLES if not some_calls or name in TABLES_OF_CALLS)
    tables = (tables,) if isinstance(tables, str) else tables
    unknown = [name for name in tables if name not in TABLES]
    if unknown:
        raise UsageError(f"there is no table {unknown[0]!r}; {suggest(unknown[0], TABLES)}")
    if some_calls and (others := [name for name in tables if name not in TABLES_OF_CALLS]):
        raise UsageError(
            f"{others[0]} is not made of chosen calls: it tells what many calls do together; "
            f"there are {', '.join(TABLES_OF_CALLS)}"
        )
    return tuple(name for name in TABLES if name in tables)


def delivered_tables(chosen: Sequence[str]) -> tuple[str, ...]:
    """The tables that the core must make for these, and for the summary to tell what the capture is."""
    needed = {*chosen, "api_calls", "connections", "anomalies", *sources_of(chosen)}
    return core_tables(needed)
