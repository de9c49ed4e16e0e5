"""Percentiles of any number of latencies in bounded memory."""

from typing import Any

import numpy as np

Numbers = np.ndarray[Any, np.dtype[np.int64]]

_MANTISSA_BITS = 7
_SHIFT = 52 - _MANTISSA_BITS
_ONE = 1023 << _MANTISSA_BITS
_BUCKETS = 64 << _MANTISSA_BITS


class LatencySketch:
    """Percentiles by nearest rank: exact up to 4096 latencies, then within 0.4 %; the greatest is exact.

    Beyond `EXACT` values a histogram takes over whose buckets are an octave cut into 128: the upper bits of a
    double are the bucket's number, so that filling it is a shift and a count. It takes 64 KiB.
    """

    EXACT = 4096

    def __init__(self) -> None:
        self.count = 0
        self.greatest = 0
        self._values: list[Numbers] = []
        self._buckets: Numbers | None = None

    def add(self, values: Numbers) -> None:
        """Counts `values`, in nanoseconds; negative ones (the clock was set back) count as 0."""
        if not len(values):
            return
        self.count += len(values)
        self.greatest = max(self.greatest, int(values.max()))
        if self._buckets is None:
            self._values.append(np.array(values))
            if self.count <= self.EXACT:
                return
            self._buckets = np.zeros(_BUCKETS, np.int64)
            values = np.concatenate(self._values)
            self._values.clear()
        self._buckets += np.bincount(_bucket_of(values), minlength=_BUCKETS)

    def percentile(self, percent: float) -> int | None:
        """The latency that `percent` of all are not above, in nanoseconds; None without any."""
        if not self.count:
            return None
        rank = max(int(np.ceil(self.count * percent / 100)), 1)
        if self._buckets is None:
            values = np.sort(np.concatenate(self._values))
            return max(int(values[rank - 1]), 0)
        bucket = int(np.searchsorted(np.cumsum(self._buckets), rank))
        return min(_middle_of(bucket), self.greatest)


def _bucket_of(values: Numbers) -> Numbers:
    bits = np.maximum(values, 1).astype(np.float64).view(np.int64)
    buckets: Numbers = (bits >> _SHIFT) - _ONE
    return buckets


def _middle_of(bucket: int) -> int:
    edges = np.array([bucket + _ONE, bucket + 1 + _ONE], np.int64) << _SHIFT
    return round(float(edges.view(np.float64).mean()))
