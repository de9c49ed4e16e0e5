"""Fingerprints of connections: which ones may be twins, in bounded memory.

Every key of a connection (its sequence numbers, the hash of its messages; of captures of several places its
addresses and ports, too) is counted in one of many places, chosen by a hash of it. Those alone in their place
have no twin; the others are compared by their values.

    places  0 0 1 0 2 0 0 1 ...       2: two connections, with the same key or, rarely, another

While there are few, only the places that are not 0 are written down: the system gives memory in pieces that
are much larger than a place.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import Bits, Numbers, whole_numbers, words_of
from kwsniff.tables.compute import dictionary_encode

KEYS: Final = ("client_isn", "broker_isn", "messages_hash")
ENDS: Final = ("client_address", "client_port", "broker_address", "broker_port")
_PLACES: Final = 24  # bits: 16 MiB for each kind of key, of which the system gives what is touched
_FEW: Final = 1 << 16
"""Places that are written down, at most."""
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)


class Marks:
    """Takes batches of connections, then tells which of them are not alone."""

    def __init__(self, *, ends: bool = False) -> None:
        """`ends`: addresses and ports are a key, too."""
        self._counts = [_Counts(), _Counts(), *([_Counts()] if ends else [])]
        self.any = False
        """Whether any two share a place."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Connections, with the columns KEYS, and ENDS where these are a key."""
        for counts, (places, known) in zip(self._counts, _places_of(batch), strict=False):
            self.any |= counts.add(places[known])

    def are_shared(self, batch: pa.RecordBatch) -> Bits:
        """Which of these, added before, have a key in a place that another one has a key in."""
        shared = np.zeros(batch.num_rows, np.bool_)
        for counts, (places, known) in zip(self._counts, _places_of(batch), strict=False):
            shared |= known & (counts.take(places) > 1)
        return shared


class _Counts:
    """How many keys each place has: 0, 1, or 2 for more."""

    def __init__(self) -> None:
        self._used = np.zeros(0, np.int64)  # in order
        self._times = np.zeros(0, np.uint8)
        self._all: Numbers | None = None  # in place of both, of many

    def add(self, places: Numbers) -> bool:
        """Whether one of these is shared now."""
        ordered = np.sort(places)
        begins = np.flatnonzero(np.diff(ordered, prepend=-1))
        found, times = ordered[begins], np.diff(begins, append=len(ordered))
        now = np.minimum(self.take(found) + np.minimum(times, 2), 2).astype(np.uint8)
        if self._all is None and len(self._used) + len(found) > _FEW:
            self._all = np.zeros(1 << _PLACES, np.uint8)
            self._all[self._used] = self._times
        if self._all is not None:
            self._all[found] = now
        else:
            used, counts = np.append(self._used, found), np.append(self._times, now)
            order = np.argsort(used, kind="stable")
            latest = order[np.diff(used[order], append=-1) != 0]
            self._used, self._times = used[latest], counts[latest]
        return bool((now > 1).any())

    def take(self, places: Numbers) -> Numbers:
        """The counts of some places."""
        if self._all is not None:
            return self._all[places]
        if not len(self._used):
            return np.zeros(len(places), np.uint8)
        at = np.minimum(np.searchsorted(self._used, places), len(self._used) - 1)
        return np.where(self._used[at] == places, self._times[at], 0)


def _places_of(batch: pa.RecordBatch) -> Iterator[tuple[Numbers, Bits]]:
    client, broker, messages = (whole_numbers(batch[name], null=-1).astype(np.int64) for name in KEYS)
    yield _spread(client << 32 | broker), (client >= 0) & (broker >= 0)
    yield _spread(messages), messages >= 0
    yield _spread(hash_of_ends(batch)), np.ones(batch.num_rows, np.bool_)


def hash_of_ends(rows: pa.RecordBatch | pa.Table) -> Numbers:
    """A number of 63 bits for the addresses and ports of each connection."""
    hashes = np.zeros(rows.num_rows, np.uint64)
    for name in ENDS:
        column = rows[name]
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_string(column.type):
            column = dictionary_encode(column)
        if pa.types.is_dictionary(column.type):
            words = [
                blake2b((word or "").encode(), digest_size=8).digest() for word in words_of(column.dictionary)
            ]
            codes = whole_numbers(column.indices, null=len(words))
            values = np.frombuffer(b"".join([*words, bytes(8)]), np.uint64)[codes]
        else:
            values = whole_numbers(column, null=-1).astype(np.uint64)
        hashes = (hashes ^ values) * _ODD
        hashes ^= hashes >> np.uint64(29)
    return (hashes >> np.uint64(1)).astype(np.int64)


def _spread(keys: Numbers) -> Numbers:
    mixed = (keys.astype(np.uint64) ^ keys.astype(np.uint64) >> np.uint64(29)) * _ODD
    return (mixed >> np.uint64(64 - _PLACES)).astype(np.int64)
