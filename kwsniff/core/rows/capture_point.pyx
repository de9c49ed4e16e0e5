# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Where a capture was taken, and how far the broker is from there.

Rules
  1. One side has to be four times as near as the other.
  2. Round trips count when a handshake tells them, or enough acknowledgements that nothing held up.

    client ---- way of answers ---- [capture] ---- way of requests ---- broker
"""

from libc.stdint cimport int64_t

from kwsniff.core.declared cimport (
    CAPTURE_POINT_BETWEEN, CAPTURE_POINT_BROKER, CAPTURE_POINT_CLIENT, CAPTURE_POINT_SAME_MACHINE, CAPTURE_POINT_UNKNOWN,
)
from kwsniff.core.tcp.round_trips cimport RoundTrips, near_trip

cdef enum:
    ENOUGH_TRIPS = 3            # acknowledgements that tell a round trip; a handshake is as good
    TWO_TRIPS = 2               # of a connection whose SYN was sent again; only where the capture was taken needs more

cdef extern from *:
    """
    #define MILLISECOND 1000000LL
    #define SAME_MACHINE 100000LL
    """
    const int64_t MILLISECOND
    const int64_t SAME_MACHINE      # round trips below: no network


cdef inline bint is_told(RoundTrips* own) noexcept nogil:
    return own.floor > 0 or own.num_near >= ENOUGH_TRIPS


cdef inline int64_t smallest_trip(RoundTrips* own) noexcept nogil:
    cdef int64_t near = near_trip(own)
    return own.floor if 0 < own.floor < near else near


cdef int find_capture_point(RoundTrips* asks, RoundTrips* answers) noexcept nogil:
    """Where the capture looks to have been taken, from the round trips to either side."""
    cdef int64_t client, broker
    if not is_told(asks) or not is_told(answers):
        return CAPTURE_POINT_UNKNOWN
    client = smallest_trip(answers)
    broker = smallest_trip(asks)
    if client < SAME_MACHINE and broker < SAME_MACHINE:
        return CAPTURE_POINT_SAME_MACHINE
    if client < broker // 4:
        return CAPTURE_POINT_CLIENT
    return CAPTURE_POINT_BROKER if broker < client // 4 else CAPTURE_POINT_BETWEEN


cdef bint is_way_known(RoundTrips* asks) noexcept nogil:
    """Whether the round trip from the capture to the broker is known."""
    return asks.num_near > 0 and (asks.floor > 0 or asks.num_near >= TWO_TRIPS)


cdef int64_t way_to_broker(RoundTrips* asks, RoundTrips* answers) noexcept nogil:
    """The round trip from the capture to the broker as of now; 0 where it is unknown, and at the broker."""
    cdef int64_t way
    cdef int capture_point = find_capture_point(asks, answers)
    if not is_way_known(asks) or capture_point == CAPTURE_POINT_SAME_MACHINE:
        return 0
    way = near_trip(asks)
    if way < SAME_MACHINE or capture_point == CAPTURE_POINT_BROKER and way < MILLISECOND:
        return 0
    return way
