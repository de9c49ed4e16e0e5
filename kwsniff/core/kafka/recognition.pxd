# cython: language_level=3
from libc.stdint cimport int16_t, int64_t

from kwsniff.core.octets.octets cimport Octets

cdef enum:
    NUM_API_KEYS = 128          # keys that kwsniff can know; those of vendors begin at 500
    NUM_VERSIONS = 64           # versions per API that a program can be kept for
    NEVER_FLEXIBLE = 0x7FFF

cdef struct ApiRange:
    bint known
    int16_t first
    int16_t last
    int16_t flexible
    bint internal           # brokers and controllers speak it among themselves
    bint rendezvous         # the answer waits for other members of the group

cdef struct Apis:
    ApiRange ranges[128]

cdef int look_at_request(Apis* apis, Octets data, int64_t frame_bytes) noexcept nogil
cdef bint may_be_foreign(Octets data) noexcept nogil
cdef int64_t measure_proxy_header(Octets data) noexcept nogil
cdef bint is_gssapi_token(Octets data) noexcept nogil
cdef int name_protocol(Octets data) noexcept nogil
