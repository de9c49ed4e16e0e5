"""Rows of tables that belong to chosen calls."""

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import Bits, distinct, whole_numbers
from kwsniff.tables.compute import filter_rows

TABLES_OF_CALLS: Final = (
    "api_calls", "latencies", "error_codes", "connections", "anomalies", "partitions", "record_batches",
    "tcp_events", "stalls", "captures",
)  # fmt: skip
"""What is made of some calls. The others tell of what many calls do together: a group, a transaction."""
_BY_CONNECTION: Final = frozenset({"connections", "anomalies", "tcp_events"})
_OF_CLUSTER: Final = frozenset({"brokers", "leaders", "api_ranges", "captures"})
_CALLS: Final = "call_ids"
_NONE: Final = -1  # an anomaly of a file has no connection, and stays


class Chosen:
    """Calls of one run, by their numbers, and the numbers of their connections."""

    def __init__(self, calls: Iterable[int], connections: Iterable[int]) -> None:
        self._calls = distinct(np.fromiter(calls, np.int64))
        self._connections = distinct(np.fromiter((_NONE, *connections), np.int64))

    def select(self, table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that belong to them."""
        return batch if batch.num_rows == 0 else filter_rows(batch, self.rows(table, batch))

    def rows(self, table: str, batch: pa.RecordBatch) -> Bits:
        """Which rows belong to them: by their call, their connection, or one of several calls that they
        list. What is known of the cluster and of captures belongs to all calls."""
        names = batch.schema.names
        if table in _OF_CLUSTER:
            return np.ones(batch.num_rows, np.bool_)
        if table in _BY_CONNECTION:
            return np.isin(whole_numbers(batch["connection_id"], null=_NONE), self._connections)
        if "call_id" in names:
            return np.isin(whole_numbers(batch["call_id"], null=_NONE), self._calls)
        if _CALLS in names:
            return self._among(batch[_CALLS])
        return np.ones(batch.num_rows, np.bool_)

    def _among(self, lists: pa.ListArray) -> Bits:
        fits = np.zeros(len(lists), np.bool_)
        if len(lists) and len(lists.values):
            ends = np.frombuffer(lists.buffers()[1], np.int32)[lists.offset :][: len(lists) + 1]
            rows = np.repeat(np.arange(len(lists)), np.diff(ends))
            there = np.isin(whole_numbers(lists.values, null=_NONE), self._calls)
            fits[rows[there[ends[0] : ends[-1]]]] = True
        return fits
