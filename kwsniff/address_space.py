"""Addresses that this process may have (`ulimit -v`), where they are bounded: libraries reserve many."""

import mmap
import resource


def are_bounded() -> bool:
    """Whether the system refuses addresses beyond some number."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def demand(size: int) -> None:
    """Raises OSError (ENOMEM) where `size` bytes of addresses are bounded away; nothing is kept of them.

    Asked before a library that ends the process when one of its threads is refused memory.
    """
    if size and are_bounded():
        mmap.mmap(-1, size).close()
