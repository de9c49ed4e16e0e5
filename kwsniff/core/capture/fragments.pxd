# cython: language_level=3
# IP fragments to whole datagrams (RFC 791, RFC 8200 4.5). fragments.pyx has the rules.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from kwsniff.core.bytes.span cimport Span

cdef enum:
    DATAGRAM_BYTES = 65536

cdef struct Datagram:
    uint8_t source[16]
    uint8_t target[16]
    uint32_t id
    uint64_t network            # that the fragments came from; 0: none was named
    bint used
    bint lent                   # whole, and read: no other one takes its place
    int64_t age
    uint32_t total              # bytes of the whole payload, 0 until its last fragment was seen
    uint32_t units              # units that are there
    uint8_t have[1024]          # one bit per unit
    uint8_t* bytes

cdef struct Fragments:
    Datagram* datagrams
    uint32_t num
    uint32_t limit
    int64_t clock

cdef Span join_fragment(Fragments* fragments, const uint8_t* source, const uint8_t* target, uint32_t id,
                          uint64_t network, uint32_t offset, bint more, Span payload, uint32_t length) noexcept nogil
cdef void release_datagram(Fragments* fragments, Span whole) noexcept nogil
cdef void free_fragments(Fragments* fragments) noexcept nogil
