"""Reads that do not advance: bounds for the rule about consumers without progress."""

import os
import zlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.reader_offsets import add_readers, follow_reads
from kwsniff.findings.prefilter.dictionaries import Numbers, as_bytes, codes_in, column_in, from_bytes

_READERS: Final = 1 << 16
"""Readers that are followed at most; the rule is asked where there are more."""
_LEAST_US: Final = 3_000_000
"""`seconds` of the rule."""
_ROWS: Final = 5
"""Numbers of each reader; see reader_offsets."""
_NEVER: Final = np.iinfo(np.int64).max
_FIGURES: Final = ("empty_beyond", "repeated_reads", "repeated_beyond_start")
_NUMBERS: Final = (
    "partition", "connection_id", "requested_offset", "high_watermark", "record_bytes", "record_count",
    "time",
)  # fmt: skip


class StandingReads:
    """Fetches in a row that got nothing below the high watermark at one offset, and deliveries that are not
    beyond the one before.

    A reader is a partition on a connection. Each reader's offset is followed as the rule follows it. A
    consumer that delivers an offset again goes back to it first, so each such delivery counts; in another
    order of rows it still follows a later offset. A topic that gets its name in between is another
    reader: one delivery less counts then.
    """

    OF_PARTITIONS = ("topic", "topic_id", *_NUMBERS)

    def __init__(self) -> None:
        self._table = np.zeros((_ROWS, 0), np.int64)
        self._sums = np.array([0, 0, 0, 0, 0, _NEVER, -_NEVER], np.int64)
        self.in_order = True
        """Whether all rows came in the order of time on each connection."""
        self._seed = int.from_bytes(os.urandom(8))

    def add(self, batch: pa.RecordBatch) -> None:
        """Counts rows of partitions; `in_order` says whether they are in the order of time on each
        connection."""
        topics, names = codes_in(batch, "topic")
        ids, uuids = codes_in(batch, "topic_id")
        columns = (topics, ids, *(column_in(batch, name) for name in _NUMBERS))
        follow_reads(columns, _numbers(names), _numbers(uuids), self._places(), self._sums, self._seed)

    def figures(self) -> Mapping[str, float]:
        """`empty_beyond`: the most fetches in a row for which a reader stayed at one offset and got no record
        below the high watermark, or all such fetches where rows came in another order; `repeated_reads`:
        deliveries of an offset that is not beyond the one before; `repeated_beyond_start`: those of them that
        are not of offset 0. All are 0 where all fetches are too close together for the rule, and infinite
        where readers are too many to be followed."""
        readers, empty, most, *counts, first, last = map(int, self._sums)
        if last - first < _LEAST_US:
            return dict.fromkeys(_FIGURES, 0)
        if readers > _READERS:
            return dict.fromkeys(_FIGURES, float("inf"))
        return dict(zip(_FIGURES, (most if self.in_order else empty, *counts), strict=True))

    def state(self) -> tuple[Any, ...]:
        """What was counted, for `merge`."""
        return as_bytes(self._sums), as_bytes(self._table[:, self._table[0] != 0])

    def merge(self, state: tuple[Any, ...]) -> None:
        """Adds what another one counted."""
        sums, table = (from_bytes(data) for data in state)
        readers, *counts, first, last = map(int, sums[0])
        add_readers(table.reshape(_ROWS, -1), self._places(), self._sums, self._seed)
        if readers > _READERS:
            self._sums[0] = readers
        self._sums[1:-2] += counts
        self.in_order = False
        self._sums[-2:] = min(self._sums[-2], first), max(self._sums[-1], last)

    def _places(self) -> Numbers:
        if not self._table.size:
            self._table = np.zeros((_ROWS, 2 * _READERS), np.int64)
        return self._table


def _numbers(texts: list[str]) -> Numbers:
    """A number for each text; that of no text is last."""
    return np.array([*(zlib.crc32(text.encode()) for text in texts), 0], np.int64)
