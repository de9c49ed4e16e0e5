# cython: language_level=3
from libc.stdint cimport int64_t

from kwsniff.core.tcp.round_trips cimport NEAR_TRIPS, RoundTrips

cdef int find_capture_point(RoundTrips* asks, RoundTrips* answers) noexcept nogil
cdef int64_t way_to_broker(RoundTrips* asks, RoundTrips* answers) noexcept nogil


cdef inline int64_t near_trip(RoundTrips* own) noexcept nogil:
    """Of the latest that nothing held up the smallest one; 0 where there was none."""
    return (own.near[0] if own.near[0] < own.near[1] else own.near[1]) if own.num_near > NEAR_TRIPS else own.near[0]
