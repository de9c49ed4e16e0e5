"""Bytes that end exactly where readable memory ends: one byte read too far kills the process."""

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


@contextmanager
def flush_against_guard_page(data: bytes) -> Iterator[memoryview]:
    """The data as a buffer whose last byte is the last before a page without any access."""
    page = mmap.PAGESIZE
    room = -(-max(len(data), 1) // page) * page
    area = mmap.mmap(-1, room + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    if _libc.mprotect(start + room, page, 0) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    ctypes.memmove(start + room - len(data), data, len(data))
    try:
        yield memoryview((ctypes.c_char * len(data)).from_address(start + room - len(data))).cast("B")
    finally:
        _libc.mprotect(start + room, page, mmap.PROT_READ | mmap.PROT_WRITE)
