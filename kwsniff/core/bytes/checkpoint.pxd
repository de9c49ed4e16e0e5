# cython: language_level=3
# Parts of a saved state as bytes, written and read back in the same order (state.pyx).
#
# Rule 1: every length is checked against the bytes left before anything is allocated.
# Rule 2: once something was not there, nothing more is read, and what would have been is zero.

from libc.stdint cimport uint64_t
from libc.string cimport memset

from kwsniff.core.bytes.buffer cimport Buffer, append, append_raw
from kwsniff.core.bytes.span cimport Span, copy_out, drop, has, keep, make_span

# What is left to read; failed: it ended early, or memory was refused.
cdef struct Source:
    Span left
    bint failed

cdef inline bint put(Buffer* out, const void* at, size_t num) noexcept nogil:
    return append_raw(out, at, num)

cdef inline bint put_bytes(Buffer* out, Span data) noexcept nogil:
    cdef uint64_t num = data.num
    return put(out, &num, 8) and append(out, data)

cdef inline bint get(Source* source, void* to, size_t num) noexcept nogil:
    if source.failed or not has(source.left, 0, num):
        source.failed = True
        memset(to, 0, num)
        return False
    copy_out(source.left, 0, to, num)
    source.left = drop(source.left, num)
    return True

cdef inline Span get_span(Source* source) noexcept nogil:
    cdef uint64_t num = 0
    cdef Span span
    if not get(source, &num, 8) or not has(source.left, 0, <size_t>num):
        source.failed = True
        return make_span(NULL, 0)
    span = keep(source.left, <size_t>num)
    source.left = drop(source.left, <size_t>num)
    return span

cdef inline void get_bytes(Source* source, Buffer* to) noexcept nogil:
    memset(to, 0, sizeof(Buffer))
    if not append(to, get_span(source)):
        source.failed = True
