"""What is left of `--limit memory` once all rows are written, for what is asked of them."""

import resource
import sys
from pathlib import Path
from typing import Final

from kwsniff.core.columns.allocator import give_memory_back

_PAGE: Final = resource.getpagesize()
_BESIDE: Final = 110_000_000
"""What DuckDB takes beside the memory that it counts: its code, threads, texts in progress."""
_LEAST: Final = 48_000_000
"""Below it no rule can be asked at all."""


def memory_left(limit: int) -> int:
    """Bytes that DuckDB may take, of `limit` for the process; some, even where nothing is left."""
    give_all_back()
    return max((limit - resident() - _BESIDE) * 9 // 10, _LEAST)


def keep_below(limit: int) -> None:
    """Gives back what was freed where the process comes near its limit; it is not looked for before."""
    if resident() > limit * 3 // 4:
        give_all_back()


def give_all_back() -> None:
    """What was freed of Arrow's memory and of the C library's goes back to the system."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    give_memory_back()


def resident() -> int:
    """Bytes of memory that this process has; where the system does not say, the most that it ever had."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * _PAGE
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
