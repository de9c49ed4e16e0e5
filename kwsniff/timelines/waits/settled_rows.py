"""Held rows of latencies: the facts on their calls, and the rows completed with proofs."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.core.declared import ENUMS
from kwsniff.tables.arrays import Numbers, numbers, texts, whole_numbers
from kwsniff.tables.compute import cast
from kwsniff.tables.schema import TABLES, coded_schema
from kwsniff.timelines.decoded_messages import PLACE
from kwsniff.timelines.waits.mark_lines import WaitingCalls
from kwsniff.timelines.waits.pending_rows import TOPICS

WAITS: Final = ENUMS["wait"]
_SAID: Final = (
    "request_time", "total_ns", "request_transmission_ns", "network_ns", "queue_wait_ns",
    "response_transmission_ns",
)  # fmt: skip
_MOMENT: Final = ("end", "number", "clock")
_SCHEMA: Final = coded_schema(TABLES["latencies"])


def held_ends(rows: pa.RecordBatch | None) -> tuple[Numbers, Numbers]:
    """Positions and ends (microseconds) of held rows."""
    if rows is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    took = -(-whole_numbers(rows["total_ns"], null=0) // 1000)
    return whole_numbers(rows[PLACE], null=0), whole_numbers(rows["request_time"], null=0) + took


def with_moments(rows: pa.RecordBatch, moments: Sequence[Numbers]) -> pa.RecordBatch:
    """The rows, with the ends, numbers and clocks of their calls."""
    columns = [numbers(pa.int64(), np.ascontiguousarray(values)) for values in moments]
    return pa.RecordBatch.from_arrays([*rows.columns, *columns], names=[*rows.schema.names, *_MOMENT])


def held_calls(rows: pa.RecordBatch) -> WaitingCalls:
    """Facts on calls from rows of `with_moments`."""
    begun, total, asked, network, queue, answered = (whole_numbers(rows[name], null=0) for name in _SAID)
    end, number, clock = (whole_numbers(rows[name], null=0) for name in _MOMENT)
    return WaitingCalls(
        end,
        number,
        clock,
        turn=begun + (asked + network + queue) / 1000,
        done=begun + (total - answered) / 1000,
        network=network / 1000,
    )


class Found:
    """Rows of latencies that get their waits."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._rows = rows
        self._waits, self._behind_waits = (_codes(rows[name]) for name in ("wait", "queued_behind_wait"))
        self._broker, self._meant = (
            whole_numbers(rows[name], null=0).copy() for name in ("broker_ns", "deliberate_wait_ns")
        )
        self.behind: Numbers = whole_numbers(rows["queued_behind"], null=-1)
        """Ids of the calls ahead, or -1."""

    def prove(self, rows: Numbers, waited_us: Numbers, word: int) -> Numbers:
        """Sets the length and kind of waits, or no wait if not above 0; returns the resulting numbers of
        WAITS."""
        rest = self._broker[rows] + self._meant[rows]
        meant = np.clip((waited_us * 1000).astype(np.int64), 0, rest)
        words = np.where(meant > 0, word, WAITS.index("none"))
        self._meant[rows], self._broker[rows], self._waits[rows] = meant, rest - meant, words
        return words

    def stand_behind(self, rows: Numbers, words: Numbers) -> None:
        """Sets the waits of the calls ahead."""
        self._behind_waits[rows] = words

    def rebuilt(self) -> pa.RecordBatch:
        """The rows in their coded schema, and TOPICS if they had them."""
        changed = {
            "broker_ns": numbers(pa.int64(), self._broker),
            "deliberate_wait_ns": numbers(pa.int64(), self._meant),
            "wait": _words(self._waits),
            "queued_behind_wait": _words(self._behind_waits),
        }
        columns = {
            field.name: changed.get(field.name, _as(field.type, self._rows[field.name])) for field in _SCHEMA
        }
        if TOPICS in self._rows.schema.names:
            columns[TOPICS] = self._rows[TOPICS]
        return pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])


def _as(type_: pa.DataType, column: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(type_) or column.type == type_:
        return column
    return pa.DictionaryArray.from_arrays(cast(column.indices, type_.index_type), column.dictionary)


def _words(codes: Numbers) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(numbers(pa.int8(), codes, codes >= 0), texts(WAITS), safe=False)


def _codes(column: pa.DictionaryArray) -> Numbers:
    """Numbers of the words of `wait`; -1 for null."""
    places = np.array([*(WAITS.index(word) for word in column.dictionary.to_pylist()), -1], np.int8)
    return places[whole_numbers(column.indices, null=-1)]


def serialize_rows(batch: pa.RecordBatch) -> bytes:
    """Rows as bytes, for a saved state."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def deserialize_rows(data: bytes) -> pa.RecordBatch:
    """The inverse."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()
