"""The address space of this process, if limited (`ulimit -v`): libraries reserve much of it."""

import mmap
import resource


def are_bounded() -> bool:
    """Whether the address space is limited."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def demand(size: int) -> None:
    """Raises OSError (ENOMEM) if `size` bytes of address space are not available; reserves nothing.

    Used before loading a library that aborts the process when a thread cannot allocate memory.
    """
    if size and are_bounded():
        mmap.mmap(-1, size).close()
