"""Memory that the system refuses (`ulimit -v`, a container's limit): one line, wherever it happened."""

import errno
import os
from typing import Final

from kwsniff.address_space import are_bounded, demand

ADVICE: Final = (
    "the system refuses memory below `--limit memory` (ulimit -v, or a limit of the container?); "
    "allow more, about 1 GB of addresses"
)
_WORDS: Final = (
    "can't start new thread", "failed to map segment", "annot allocate memory",
    "Failed to launch worker thread",
)  # fmt: skip
"""What Python, the dynamic loader and Arrow say; they have no class or number for it."""
_WORDS_WHERE_BOUNDED: Final = ("NULL without setting an exception",)
"""What Python says of a module that found no memory; without a bound it is a fault of that module."""

_SPARING: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1", "ARROW_IO_THREADS": "2",
    "DUCKDB_JE_MALLOC_CONF": "narenas:1",
}  # fmt: skip

_ADDRESSES: Final = {"show": 0, "slice": 0, "decode": 0, "explain": 0, "sql": 300_000_000}
_OF_TABLES: Final = 220_000_000
"""Bytes that numpy, Arrow and what they need take at the least; OpenBLAS and jemalloc end the process where
they are refused some. DuckDB has them loaded late."""


def spare_addresses(verb: str) -> None:
    """Where addresses are bounded (`ulimit -v`), libraries that are not loaded yet will reserve few.

    Raises OSError (ENOMEM) where a verb could not even load them.
    """
    if not are_bounded():
        return
    from kwsniff.core.columns.freed import share_one_arena

    for name, value in _SPARING.items():
        os.environ.setdefault(name, value)
    share_one_arena()
    demand(_ADDRESSES.get(verb, _OF_TABLES))


def is_refused_memory(error: BaseException) -> bool:
    """Whether an error, or what led to it, is the system's refusal of memory."""
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
