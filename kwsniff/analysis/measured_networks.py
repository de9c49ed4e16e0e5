"""Network time of calls, measured with captures of a place nearer to the broker.

client ---- place "client" ------------------ place "broker" ---- broker
              | request ..................... | request .......... |
              |                               | <- spent there --> |
              | <------------- spent here ---------------------->  |
              the difference was spent between the places, and no clock counts
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.memory import memory_left
from kwsniff.tables.arrays import numbers, whole_numbers
from kwsniff.tables.hops import NONE
from kwsniff.tables.schema import TABLES, coded_schema
from kwsniff.tables.write import TableWriter

READ: Final = ("api_calls", "connections", "latencies")
"""Tables that measured times are made of."""
_INSIDE: Final = ("broker_ns", "deliberate_wait_ns", "queue_wait_ns")
MOST: Final = 4_000_000
"""Calls that are measured where memory has no limit."""
_BYTES_OF_A_CALL: Final = 100  # while they are looked for; then 24
_TRIP, _ERROR = "broker_round_trip_ns", "broker_round_trip_error_ns"

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Batches = Mapping[str, list[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class MeasuredNetworks:
    """By call_id, which ascend: nanoseconds that the call spent at the broker, by the place nearest to it,
    and their error; NONE where that is not known."""

    calls: Numbers
    inside: Numbers
    errors: Numbers

    def __bool__(self) -> bool:
        return bool(len(self.calls))

    def correct(self, latencies: pa.RecordBatch) -> pa.RecordBatch:
        """The rows, in their schema, with measured times. Parts still add up."""
        if not self or not latencies.num_rows:
            return latencies
        ids = whole_numbers(latencies["call_id"], null=-1)
        at = np.minimum(np.searchsorted(self.calls, ids), len(self.calls) - 1)
        known = self.calls[at] == ids
        if not known.any():
            return latencies
        network = whole_numbers(latencies["network_ns"], null=0).astype(np.int64)
        parts = {name: whole_numbers(latencies[name], null=0).astype(np.int64) for name in _INSIDE}
        longer = np.where(known, np.maximum(sum(parts.values()) - self.inside[at], -network), 0)
        columns = {"network_ns": numbers(pa.int64(), network + longer)}
        left = longer
        for name, took in parts.items():
            moved = np.minimum(left, took)
            columns[name] = numbers(pa.int64(), took - moved)
            left = left - moved
        alone = known & (whole_numbers(latencies["retransmissions"], null=0) == 0)
        columns |= self._trips(latencies, longer, alone, self.errors[at])
        arrays = [columns.get(name, latencies[name]) for name in latencies.schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=latencies.schema)

    @staticmethod
    def _trips(
        latencies: pa.RecordBatch, longer: Numbers, known: Numbers, errors: Numbers
    ) -> dict[str, pa.Array]:
        trip, error = (whole_numbers(latencies[name], null=NONE) for name in (_TRIP, _ERROR))
        measured = np.where(trip == NONE, 0, trip) + longer
        told = {
            _TRIP: np.where(known, np.where(errors == NONE, NONE, measured), trip),
            _ERROR: np.where(known, errors, error),
        }
        return {name: numbers(pa.int64(), each, each != NONE) for name, each in told.items()}


NOT_MEASURED: Final = MeasuredNetworks(*(np.zeros(0, np.int64) for _ in range(3)))


def measure_networks(
    tables: Mapping[str, Sequence[str | PathLike[str]] | pa.Table],
    places: Mapping[str, int],
    memory: str,
    most: int = MOST,
) -> MeasuredNetworks:
    """`tables`: those of READ, whose connections know their twins; `places`, `memory`: as for SharedCalls;
    `most`: calls, of which more are not measured."""
    from kwsniff.analysis.shared_calls import SharedCalls

    with SharedCalls({**tables, "tcp_events": []}, places, memory) as calls:
        told = calls.at_the_broker(most)
    return MeasuredNetworks(*told) if len(told[0]) <= most else NOT_MEASURED


def measure_rows(
    writer: TableWriter | None, batches: Batches, places: Mapping[str, int], limit: int
) -> MeasuredNetworks:
    """The same of rows that were written, or are in memory. `limit`: bytes of memory for the process."""
    if not places or not {*READ} <= {*batches}:
        return NOT_MEASURED
    left = memory_left(limit)
    tables: dict[str, Any] = {name: [path] for name, path in writer.complete(READ).items()} if writer else {}
    for name in () if writer else READ:
        tables[name] = pa.Table.from_batches(batches[name], coded_schema(TABLES[name]))
    return measure_networks(tables, places, f"{left // 1_000_000}MB", left // _BYTES_OF_A_CALL)
