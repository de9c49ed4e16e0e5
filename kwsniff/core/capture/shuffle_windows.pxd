# cython: language_level=3
# Windows of a capture: bytes that runs name by offset, read as they are fed. shuffle_windows.pyx has the
# rules.

from libc.stdint cimport int64_t, uint8_t, uint64_t

from kwsniff.core.bytes.span cimport Span, drop, keep, make_span

# What was read of a capture last.
cdef struct Window:
    int descriptor          # negative: there is no capture to read in
    int why                 # errno, where reading failed
    uint64_t offset         # in the capture
    uint64_t num
    uint64_t total          # bytes that were fed of it, and of others before
    uint8_t* data           # once something was read

cdef enum Seen:
    SEEN_ALL = 0
    SEEN_SHORT = 1          # the capture is shorter by now
    SEEN_ERROR = 2
    SEEN_NO_MEMORY = 3

cdef void look_through(Window* window, int descriptor) noexcept nogil
cdef void close_window(Window* window) noexcept nogil
cdef int look_at(Window* window, uint64_t at, uint64_t num, uint64_t least) noexcept nogil


cdef inline bint is_seen(Window* window, uint64_t at) noexcept nogil:
    return window.offset <= at < window.offset + window.num


cdef inline Span seen_from(Window* window, uint64_t at, uint64_t num) noexcept nogil:
    """What is seen of the `num` bytes at an offset that is."""
    cdef Span found = drop(make_span(window.data, <size_t>window.num), <size_t>(at - window.offset))
    return found if found.num <= num else keep(found, <size_t>num)
