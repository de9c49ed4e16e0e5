"""Reads that may not advance: bounds for the rule about consumers without progress."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.prefilter.dictionaries import Numbers, numbers_of

_BITS: Final = 17
_LEAST_US: Final = 3_000_000
"""`seconds` of the rule."""
_NEVER: Final = 0
_FACTORS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
"""Odd numbers whose bits are well mixed: golden ratio, and two primes of xxHash."""


class StandingReads:
    """Fetches that got nothing below the high watermark, and offsets that were delivered more than once.

    Both figures are upper bounds. Offsets are marked in a bitmap: two that share a bit count as one, which
    makes the bound larger, never smaller. Topics do not matter, since their names may become known later.
    """

    OF_PARTITIONS = (
        "time", "connection_id", "partition", "requested_offset", "high_watermark", "record_bytes",
        "record_count",
    )  # fmt: skip

    def __init__(self) -> None:
        self._empty = 0
        self._delivered = 0
        self._times: list[int] = []
        """The first and the last time of a fetch in microseconds; none before there is one."""
        self._marked = np.zeros(1 << _BITS, np.bool_)

    def add(self, batch: pa.RecordBatch) -> None:
        """Counts rows of partitions."""
        ends = numbers_of(batch, "high_watermark", null=-1)
        fetched = np.flatnonzero(ends >= 0)
        if not fetched.size:
            return
        times = numbers_of(batch, "time", null=_NEVER)[fetched]
        self._span([int(each) for each in (times.min(), times.max())])
        # A request of a fetch session leaves out an offset that has not changed.
        asked = numbers_of(batch, "requested_offset", null=-1)[fetched]
        records = numbers_of(batch, "record_count", null=1)[fetched]
        sizes = numbers_of(batch, "record_bytes", null=-1)[fetched]
        self._empty += int(np.count_nonzero(((sizes == 0) | (records == 0)) & (ends[fetched] > asked)))
        full = np.flatnonzero((sizes > 0) & (records > 0))
        self._delivered += int(full.size)
        known = full[asked[full] >= 0]
        places = fetched[known]
        columns = (
            asked[known],
            numbers_of(batch, "partition", null=-1)[places],
            numbers_of(batch, "connection_id", null=-1)[places],
        )
        self._marked[_hash(columns)] = True

    def figures(self) -> Mapping[str, float]:
        """`empty_beyond`: fetches without a record below the high watermark; `repeated_reads`: deliveries of
        an offset that the same connection had got before. Both are 0 where all fetches are too close together
        for the rule, and too large where one has no time."""
        if not self._times or self._times[-1] - self._times[0] < _LEAST_US:
            return {"empty_beyond": 0, "repeated_reads": 0}
        repeated = self._delivered - int(np.count_nonzero(self._marked))
        return {"empty_beyond": self._empty, "repeated_reads": repeated}

    def state(self) -> tuple[Any, ...]:
        """What was counted, for `merge`."""
        return self._empty, self._delivered, self._times, np.packbits(self._marked).tobytes()

    def merge(self, state: tuple[Any, ...]) -> None:
        """Adds what another one counted."""
        empty, delivered, times, marked = state
        self._span(times)
        self._empty += empty
        self._delivered += delivered
        self._marked |= np.unpackbits(np.frombuffer(marked, np.uint8)).view(np.bool_)

    def _span(self, times: Sequence[int]) -> None:
        both = sorted((*self._times, *times))
        self._times = [both[0], both[-1]] if both else []


def _hash(columns: tuple[Numbers, ...]) -> Numbers:
    """A place in the bitmap for each row: the highest bits of a sum of products (multiply-shift hashing)."""
    mixed = np.zeros(columns[0].size, np.uint64)
    for values, factor in zip(columns, _FACTORS, strict=True):
        mixed += values.astype(np.int64, copy=False).view(np.uint64) * np.uint64(factor)
    places: Numbers = (mixed >> np.uint64(64 - _BITS)).view(np.int64)
    return places
