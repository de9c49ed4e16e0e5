"""The memory of this process: what it may take, what it gives back, and whether an allocation was refused."""

import errno
import gc
import mmap
import os
import resource
import sys
from pathlib import Path
from typing import Final

_PAGE: Final = resource.getpagesize()
_DUCKDB_UNCOUNTED: Final = 110_000_000
"""Bytes that DuckDB takes in addition to the memory that it counts: its code, threads, texts in progress."""
_LEAST_FOR_RULES: Final = 48_000_000
"""With fewer bytes, DuckDB cannot evaluate any rule."""
_INTERPRETER: Final = 150_000_000
"""Bytes of Python and of the libraries that kwsniff loads; `--limit memory` includes them."""

_SPARING: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1", "ARROW_IO_THREADS": "2",
    "DUCKDB_JE_MALLOC_CONF": "narenas:1",
}  # fmt: skip

_REFUSALS: Final = (
    "can't start new thread", "failed to map segment", "annot allocate memory",
    "Failed to launch worker thread",
)  # fmt: skip
"""Messages of Python, the dynamic loader and Arrow, which have no class or number for it."""
_REFUSALS_WHERE_LIMITED: Final = ("NULL without setting an exception",)
"""Python's message for a module that ran out of memory; without a limit it is a bug of that module."""

_USUAL_THRESHOLDS: Final = gc.get_threshold()
_THRESHOLD_WHILE_LOADING: Final = 100_000


# -- address space ----------------------------------------------------------------------------------


def has_address_limit() -> bool:
    """Whether the address space is limited (`ulimit -v`); libraries reserve much of it."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def check_addresses(size: int) -> None:
    """Raises OSError (ENOMEM) if `size` bytes of address space are not available; reserves nothing.

    Used before loading a library that aborts the process when a thread cannot allocate memory.
    """
    if size and has_address_limit():
        mmap.mmap(-1, size).close()


def spare_addresses(size: int) -> None:
    """With a limited address space, makes libraries that load later reserve little of it.

    Raises OSError (ENOMEM) if fewer than `size` bytes are left, which these libraries need.
    """
    if not has_address_limit():
        return
    from kwsniff.core.columns.allocator import share_one_arena

    for name, value in _SPARING.items():
        os.environ.setdefault(name, value)
    share_one_arena()
    check_addresses(size)


def is_refused_memory(error: BaseException) -> bool:
    """Whether an error, or one of its causes, is a failed allocation."""
    refusals = _REFUSALS + (_REFUSALS_WHERE_LIMITED if has_address_limit() else ())
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, MemoryError) or type(seen).__name__ == "OutOfMemoryException":  # DuckDB's
            return True
        if isinstance(seen, OSError) and seen.errno == errno.ENOMEM:
            return True
        if any(text in str(seen) for text in refusals):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


# -- resident memory --------------------------------------------------------------------------------


def memory_left(limit: int) -> int:
    """Bytes that DuckDB may take, of `limit` for the process, once all rows are written; never 0."""
    release_memory()
    return max((limit - resident_bytes() - _DUCKDB_UNCOUNTED) * 9 // 10, _LEAST_FOR_RULES)


def foreign_bytes() -> int:
    """Resident bytes that are not kwsniff's when an analysis starts: data of a notebook, for example. They
    are added to a limit, which is kwsniff's own."""
    return max(resident_bytes() - _INTERPRETER, 0)


def keep_below(limit: int) -> None:
    """Releases freed memory where the process comes near its limit: taking it again costs page faults."""
    if resident_bytes() > limit * 7 // 8:
        release_memory()


def release_memory() -> None:
    """Returns freed memory of Arrow and of the C library to the system."""
    from kwsniff.core.columns.allocator import give_memory_back

    release_arrow_memory()
    give_memory_back()


def release_arrow_memory() -> None:
    """Returns freed memory of Arrow to the system or the C library."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def resident_bytes() -> int:
    """Resident set size of this process; its peak where the system does not have the current one."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * _PAGE
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


# -- Python's garbage collector ---------------------------------------------------------------------


def collect_rarely() -> None:
    """For short-running verbs. Loading one makes hundreds of thousands of long-lived objects; the collector
    would walk through them 250 times, a tenth of the start time; one that reads a capture makes 70,000."""
    gc.set_threshold(_THRESHOLD_WHILE_LOADING)


def collect_as_usual() -> None:
    """For long-running verbs, once everything is loaded."""
    gc.freeze()
    gc.set_threshold(*_USUAL_THRESHOLDS)
