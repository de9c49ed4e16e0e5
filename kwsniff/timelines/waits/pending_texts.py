"""Bytes of texts that held rows keep in memory: each row keeps the dictionaries of its whole batch."""

from collections import deque
from typing import Final

import pyarrow as pa

from kwsniff.tables.arrays import Numbers, whole_numbers
from kwsniff.timelines.waits.evidence import WINDOW_US
from kwsniff.timelines.waits.settled_rows import held_ends

_KEPT_US: Final = 4 * WINDOW_US


class HeldTexts:
    """Adds the bytes of new batches, and subtracts those older than a few windows."""

    def __init__(self) -> None:
        self.bytes = 0
        self._brought: deque[tuple[int, int]] = deque()
        self._latest = 0

    def add(self, told: pa.RecordBatch, timed: pa.RecordBatch | None) -> None:
        """Offsets of calls, and their held rows."""
        if told.num_rows:
            self._add(_size_of(told), whole_numbers(told["response_end_time"], null=0))
        if timed is not None and timed.num_rows:
            self._add(_size_of(timed), held_ends(timed)[1])
        while self._brought and self._brought[0][0] < self._latest - _KEPT_US:
            self.bytes -= self._brought.popleft()[1]

    def _add(self, size: int, ends: Numbers) -> None:
        self._latest = max(self._latest, int(ends.max()))
        self.bytes += size
        self._brought.append((self._latest, size))


def _size_of(batch: pa.RecordBatch) -> int:
    arrays = (each.values if pa.types.is_list(each.type) else each for each in batch.columns)
    return sum(each.dictionary.nbytes for each in arrays if pa.types.is_dictionary(each.type))
