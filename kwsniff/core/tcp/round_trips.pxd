# cython: language_level=3
# How long the way to the receiver of one direction takes, and when the latest bytes were acknowledged or sent again.
#
# Rule 1: rtt_samples.pxd, retransmissions.pxd and acknowledgements.pxd write it; capture_point.pyx and timing.pyx read
#         it per call. An answer that was quicker than `near` is written by timing.pyx.
# Rule 2: what every acknowledgement touches comes first, the rings last.
#
#     segment ---- timed ----> acknowledgement     near: the smallest of the latest NEAR_TRIPS
#
# Source: RFC 6298 3 (Karn's rule).

from libc.stdint cimport int64_t, uint32_t

# A segment that was sent again before it was acknowledged.
cdef struct Again:
    int64_t offset      # stream position of its first byte
    int64_t time
    int64_t since       # when this direction had sent something before
    bint proven         # the receiver had asked for it by repeating its acknowledgement

cdef enum:
    AGAIN = 4                   # the number of the latest that are remembered
    NEAR_TRIPS = 8

# When a receiver first acknowledged the bytes before a position, and those until soon after.
cdef struct Passed:
    int64_t offset
    int64_t time

cdef enum:
    PASSED = 32                 # the number of the latest that are remembered: a power of two

cdef extern from *:
    """
    #define PASSED_TOGETHER 4000000LL
    """
    const int64_t PASSED_TOGETHER     # acknowledgements that are one entry

cdef struct RoundTrips:
    bint timed              # a segment waits for its acknowledgement:
    uint32_t timed_seq      # the number behind it
    int64_t timed_at
    int64_t smallest        # time from a segment of this direction to its acknowledgement, or -1
    int64_t floor           # the handshake's, or 0
    int64_t near[2]         # smallest of the latest NEAR_TRIPS or fewer that nothing held up, and of as many before; or a quicker answer
    int64_t farthest[2]     # the largest of the same ones
    int64_t num_near        # how many of these there were
    int64_t num_passed
    int64_t sent_at         # its latest segment with payload
    int64_t loaded_until    # a queue on the way held up acknowledgements: until then it may do so again
    int64_t num_again
    Again again[4]
    Passed passed[32]


cdef inline int64_t near_trip(RoundTrips* own) noexcept nogil:
    """Of the latest that nothing held up the smallest one; 0 where there was none."""
    return (own.near[0] if own.near[0] < own.near[1] else own.near[1]) if own.num_near > NEAR_TRIPS else own.near[0]


cdef inline int64_t farthest_trip(RoundTrips* own) noexcept nogil:
    """The largest one of the same."""
    if own.num_near > NEAR_TRIPS and own.farthest[1] > own.farthest[0]:
        return own.farthest[1]
    return own.farthest[0]
