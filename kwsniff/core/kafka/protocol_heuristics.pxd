# cython: language_level=3
# What the first bytes of a direction are: a Kafka request, TLS, something else. protocol_heuristics.pyx has
# the rules.

from libc.stdint cimport int32_t, int64_t, uint8_t

from kwsniff.core.kafka.apis cimport Apis
from kwsniff.core.bytes.span cimport Span

cdef enum Asker:            # who sends first bytes; with the numbers of sides in protocols.pxd
    ASKS = 0
    ANSWERS = 1
    NEITHER = 3             # not known: what either side begins with will do

cdef int look_at_request(Apis* apis, Span data, int64_t frame_bytes) noexcept nogil
cdef bint is_surely(Span data, int protocol) noexcept nogil
cdef bint may_be_foreign(Span data) noexcept nogil
cdef int64_t measure_proxy_header(Span data) noexcept nogil
cdef int32_t read_proxy_header(Span data, uint8_t* address, int32_t* port) noexcept nogil
cdef bint is_gssapi_token(Span data) noexcept nogil
cdef bint is_tls(Span data) noexcept nogil
cdef int name_protocol(Span data, int side) noexcept nogil
cdef int name_midway(Span data) noexcept nogil
cdef bint may_become(Span data, int side) noexcept nogil
