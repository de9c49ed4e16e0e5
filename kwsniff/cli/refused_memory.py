"""Memory that the system refuses (`ulimit -v`, a container's limit): one line, wherever it happened."""

import errno
from typing import Final

ADVICE: Final = (
    "the system refuses memory below `--limit memory` (ulimit -v, or a limit of the container?); "
    "allow more, about 1.5 GB of addresses"
)
_WORDS: Final = ("can't start new thread", "failed to map segment", "annot allocate memory")
"""What Python and the dynamic loader say; they have no class or number for it."""


def is_refused_memory(error: BaseException) -> bool:
    """Whether an error, or what led to it, is the system's refusal of memory."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, MemoryError) or type(seen).__name__ == "OutOfMemoryException":  # DuckDB's
            return True
        if isinstance(seen, OSError) and seen.errno == errno.ENOMEM:
            return True
        if isinstance(seen, RuntimeError | ImportError) and any(word in str(seen) for word in _WORDS):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
