# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Windows of a capture: bytes that runs name by offset, read as they are fed.

Rules
  1. Captures are read by offset, never mapped: one that shrinks is an error, not the end of the process.
  2. What is near each other is read by one request, with what lies between; what was read is not copied.

    capture   ... | record of ours | others' | record of ours | ...
                  [ window: one request                             ]
"""

from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc

from kwsniff.core.bytes.buffer cimport Room, make_room, take_room

cdef extern from "unistd.h" nogil:
    ssize_t pread(int descriptor, void* target, size_t num, int64_t at)

cdef enum:
    WINDOW = 1 << 20            # stays in the processor's cache


cdef void look_through(Window* window, int descriptor) noexcept nogil:
    """Another capture, or one that may have changed."""
    window.descriptor = descriptor
    window.num = 0


cdef void close_window(Window* window) noexcept nogil:
    free(window.data)
    window.data = NULL
    window.num = 0


cdef int read_at(Window* window, uint64_t at, uint64_t least, uint64_t most) noexcept nogil:
    cdef Room room = make_room(window.data, <size_t>most)
    cdef ssize_t done
    window.offset = at
    window.num = 0
    while window.num < least:
        done = pread(window.descriptor, room.at, room.num, <int64_t>(at + window.num))
        if done < 0 and errno == EINTR:
            continue
        if done <= 0:
            window.why = errno if done else 0
            return SEEN_ERROR if done else SEEN_SHORT
        window.num += <uint64_t>done
        take_room(&room, <size_t>done)
    return SEEN_ALL


cdef int look_at(Window* window, uint64_t at, uint64_t num, uint64_t least) noexcept nogil:
    """Moves the window to this offset: to `num` bytes, or as many as it holds, and to no less than `least` where the
    capture has them."""
    cdef uint64_t take = min(num, <uint64_t>WINDOW)
    cdef int seen
    if window.data == NULL:
        window.data = <uint8_t*>malloc(WINDOW)
        if window.data == NULL:
            return SEEN_NO_MEMORY
    seen = read_at(window, at, take, min(max(take, least), <uint64_t>WINDOW))
    if seen != SEEN_ALL:
        window.num = 0
    return seen
