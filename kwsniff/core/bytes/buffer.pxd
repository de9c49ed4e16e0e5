# cython: language_level=3
# A growing run of bytes, and the only writer of captured bytes into memory.
#
# Rule 1: a buffer grows as bytes arrive, by doubling, or fourfold where a frame declares that number;
#         never from a length that the wire claims alone.
# Rule 2: a failed allocation leaves the buffer as it was and says so; nothing is half-appended.

from libc.stdint cimport uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from kwsniff.core.bytes.span cimport Span, make_span

cdef struct Buffer:
    uint8_t* data
    size_t len
    size_t cap

cdef inline bint reserve(Buffer* buffer, size_t more) noexcept nogil:
    """Room for `more` bytes behind the last one; false when memory is refused."""
    cdef size_t cap = buffer.cap
    cdef uint8_t* grown
    if more <= cap - buffer.len:
        return True
    if cap == 0:
        cap = 64
    while cap - buffer.len < more:
        if cap > (<size_t>1 << 46):
            return False
        cap *= 2
    grown = <uint8_t*>realloc(buffer.data, cap)
    if grown == NULL:
        return False
    buffer.data = grown
    buffer.cap = cap
    return True

cdef inline void reserve_towards(Buffer* kept, size_t more, size_t whole) noexcept nogil:
    """Where `more` bytes do not fit: room for four times what is there, but not above `whole`; else nothing is done.
    A message in many segments is copied a third as often as by doubling."""
    cdef uint8_t* grown
    cdef size_t cap = kept.cap * 4 if kept.cap * 4 < whole else whole
    if more <= kept.cap - kept.len or cap <= kept.cap or cap - kept.len < more:
        return
    grown = <uint8_t*>realloc(kept.data, cap)
    if grown != NULL:
        kept.data = grown
        kept.cap = cap

cdef inline bint append(Buffer* buffer, Span span) noexcept nogil:
    if span.num == 0:
        return True
    if not reserve(buffer, span.num):
        return False
    memcpy(buffer.data + buffer.len, span.at, span.num)
    buffer.len += span.num
    return True

cdef inline bint append_raw(Buffer* buffer, const void* at, size_t num) noexcept nogil:
    return append(buffer, make_span(<const uint8_t*>at, num))

cdef inline Span contents(Buffer* buffer) noexcept nogil:
    return make_span(buffer.data, buffer.len)

cdef inline void shrink(Buffer* buffer, size_t cap) noexcept nogil:
    """Empties the buffer and gives memory above `cap` back."""
    buffer.len = 0
    if buffer.cap > cap:
        free(buffer.data)
        buffer.data = NULL
        buffer.cap = 0

cdef inline void release(Buffer* buffer) noexcept nogil:
    free(buffer.data)
    buffer.data = NULL
    buffer.len = 0
    buffer.cap = 0

# What is left of memory that another part owns, and that is being filled.
cdef struct Room:
    uint8_t* at
    size_t num

cdef inline Room make_room(uint8_t* at, size_t num) noexcept nogil:
    cdef Room room
    room.at = at
    room.num = num
    return room

cdef inline uint8_t* take_room(Room* room, size_t num) noexcept nogil:
    """Where the next `num` bytes belong; NULL where there is no room for them."""
    cdef uint8_t* at = room.at
    if num > room.num:
        return NULL
    room.at = room.at + num
    room.num -= num
    return at
