"""Out of memory (`ulimit -v`, a container's limit): one line, wherever it happens."""

import errno
import os
from typing import Final

from kwsniff.address_space import are_bounded, demand

ADVICE: Final = (
    "out of memory before reaching `--limit memory`: check ulimit -v and the container's memory limit; "
    "kwsniff needs about 1 GB of address space"
)
_WORDS: Final = (
    "can't start new thread", "failed to map segment", "annot allocate memory",
    "Failed to launch worker thread",
)  # fmt: skip
"""Messages of Python, the dynamic loader and Arrow, which have no class or number for it."""
_WORDS_WHERE_BOUNDED: Final = ("NULL without setting an exception",)
"""Python's message for a module that ran out of memory; without a limit it is a bug of that module."""

_SPARING: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1", "ARROW_IO_THREADS": "2",
    "DUCKDB_JE_MALLOC_CONF": "narenas:1",
}  # fmt: skip

_ADDRESSES: Final = {"show": 0, "slice": 0, "decode": 0, "explain": 0, "sql": 300_000_000}
_OF_TABLES: Final = 220_000_000
"""Minimum bytes for numpy, Arrow and their libraries; OpenBLAS and jemalloc end the process if an allocation
fails. DuckDB loads them late."""


def spare_addresses(verb: str) -> None:
    """With a limited address space (`ulimit -v`), makes libraries that load later reserve little of it.

    Raises OSError (ENOMEM) if there is too little to load them.
    """
    if not are_bounded():
        return
    from kwsniff.core.columns.allocator import share_one_arena

    for name, value in _SPARING.items():
        os.environ.setdefault(name, value)
    share_one_arena()
    demand(_ADDRESSES.get(verb, _OF_TABLES))


def is_refused_memory(error: BaseException) -> bool:
    """Whether an error, or one of its causes, is a failed allocation."""
    words = _WORDS + (_WORDS_WHERE_BOUNDED if are_bounded() else ())
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, MemoryError) or type(seen).__name__ == "OutOfMemoryException":  # DuckDB's
            return True
        if isinstance(seen, OSError) and seen.errno == errno.ENOMEM:
            return True
        if any(word in str(seen) for word in words):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
