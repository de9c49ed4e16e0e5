"""Which connections may be twins at all, told in memory that does not grow with their number.

Every key of a connection (its sequence numbers, the hash of its messages) is counted in one of many places,
chosen by a hash of it. Those alone in their place have no twin; the others are compared by their values.

    places  0 0 1 0 2 0 0 1 ...       2: two connections, with the same key or, rarely, another
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import Bits, Numbers, whole_numbers

KEYS: Final = ("client_isn", "broker_isn", "messages_hash")
_PLACES: Final = 24  # bits: 16 MiB for each kind of key, of which the system gives what is touched
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)


class Marks:
    """Takes batches of connections, then tells which of them are not alone."""

    def __init__(self) -> None:
        self._counts = [np.zeros(1 << _PLACES, np.uint8) for _ in range(2)]
        self.any = False
        """Whether any two share a place."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Connections, with the columns KEYS."""
        for counts, (places, known) in zip(self._counts, _places_of(batch), strict=True):
            found, times = np.unique(places[known], return_counts=True)
            counts[found] = np.minimum(counts[found] + np.minimum(times, 2), 2)
            self.any = self.any or bool((counts[found] > 1).any())

    def are_shared(self, batch: pa.RecordBatch) -> Bits:
        """Which of these, added before, have a key in a place that another one has a key in."""
        shared = np.zeros(batch.num_rows, np.bool_)
        for counts, (places, known) in zip(self._counts, _places_of(batch), strict=True):
            shared |= known & (counts[places] > 1)
        return shared


def _places_of(batch: pa.RecordBatch) -> Iterator[tuple[Numbers, Bits]]:
    client, broker, messages = (whole_numbers(batch[name], null=-1).astype(np.int64) for name in KEYS)
    yield _spread(client << 32 | broker), (client >= 0) & (broker >= 0)
    yield _spread(messages), messages >= 0


def _spread(keys: Numbers) -> Numbers:
    mixed = (keys.astype(np.uint64) ^ keys.astype(np.uint64) >> np.uint64(29)) * _ODD
    return (mixed >> np.uint64(64 - _PLACES)).astype(np.int64)
