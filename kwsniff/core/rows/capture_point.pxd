# cython: language_level=3
# Where a capture was taken, and how far the broker is from there. capture_point.pyx has the rules.

from libc.stdint cimport int64_t

from kwsniff.core.tcp.round_trips cimport RoundTrips

cdef int find_capture_point(RoundTrips* asks, RoundTrips* answers) noexcept nogil
cdef bint is_way_known(RoundTrips* asks) noexcept nogil
cdef int64_t way_to_broker(RoundTrips* asks, RoundTrips* answers) noexcept nogil
