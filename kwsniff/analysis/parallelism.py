"""The number of parallel analyzers: as many as pay off, and one where only one can work.

One alone reads
- what cannot be read twice (pipes, standard input): whether it takes one is known behind the captures;
- what is opened with TLS secrets: sessions that are resumed and secrets that are tried are those of others;
- with little memory, or with lower bounds of what connections keep together than usual: a burst
  may pass them.
What only shows while captures are read is a OneAnalyzerNeeded, and they are read again.
"""

import os
from typing import Final

from kwsniff.errors import UsageError
from kwsniff.limits import Limits
from kwsniff.sources.tls import KeyLog

MOST: Final = 64
_WORTH_SHARING: Final = 64_000_000
"""Bytes of captures below which starting threads takes longer than they save."""
_MOST_OF_ITSELF: Final = 3
"""More have nothing left to do: all rows go one way."""
_LEAST_MEMORY: Final = 300_000_000
_INTERPRETER: Final = 180_000_000
_LEAST_ROWS: Final = 4_000_000
_TOGETHER: Final = ("reorder_bytes_total", "frame_kept_bytes_total", "in_flight_bytes_total")
"""Bounds over all connections,"""
_AT_ONCE: Final = ("packet_bytes", "orphan_bytes", "request_context_bytes", "session_partitions")
"""and of bursts."""


class OneAnalyzerNeeded(Exception):
    """Only one analyzer of all connections gives its rows: captures are to be read again by one."""


def num_analyzers(jobs: int | None, size: int | None, bounds: Limits, tls_keylog: KeyLog) -> int:
    """`jobs`: as many as the user asked for. `size`: bytes of the captures; None where they cannot be read
    again. Raises UsageError."""
    if jobs is not None and not 0 < jobs <= MOST:
        raise UsageError(f"jobs must be between 1 and {MOST}, not {jobs}")
    if size is None or tls_keylog or bounds.memory < _LEAST_MEMORY or _are_tight(bounds):
        return 1
    if jobs is not None:
        return jobs
    # One core is for rows, which cost about as much as what they are made of.
    return 1 if size < _WORTH_SHARING else max(1, min(_cores() - 1, _MOST_OF_ITSELF))


def _are_tight(bounds: Limits) -> bool:
    usual = Limits()
    return any(getattr(bounds, name) < getattr(usual, name) for name in _TOGETHER) or any(
        getattr(bounds, name) > getattr(usual, name) for name in _AT_ONCE
    )


def rows_beside(memory: int) -> int:
    """Bytes of rows that wait at most in several analyzers together, of all memory: while they do, those
    before them are there three times, as they came, in one order, and on their way to files."""
    return max((memory - _INTERPRETER) // 16, _LEAST_ROWS)


def _cores() -> int:
    """Those that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not everywhere
        return os.cpu_count() or 1
