# cython: language_level=3
"""RTT samples: from a segment to its acknowledgement. round_trips.pxd has what is kept of them.

Rule: any acknowledgement shows how long the way takes at most. How long it takes show those that nothing held up.

    segment ---- start_rtt_sample ----> acknowledgement: add_rtt_sample
"""

from libc.stdint cimport int64_t, uint32_t

from kwsniff.core.capture.packets cimport NO_TIME, Segment
from kwsniff.core.tcp.control_block cimport Direction
from kwsniff.core.tcp.round_trips cimport NEAR_TRIPS

cdef extern from *:
    """
    #define DELAYED_ACK 35000000LL
    """
    const int64_t DELAYED_ACK   # later by this: a receiver that waited for more (RFC 1122 4.2.3.2)


cdef inline void start_rtt_sample(Direction* own, Segment* segment, uint32_t length) noexcept nogil:
    """One segment at a time is timed until its acknowledgement, never a repeated one (RFC 6298, Karn's rule)."""
    if not own.trips.timed and segment.time != NO_TIME:
        own.trips.timed = True
        own.trips.timed_seq = segment.seq + length
        own.trips.timed_at = segment.time


cdef inline void add_rtt_sample(Direction* own, Segment* segment, int64_t took) noexcept nogil:
    """Nothing holds up a handshake's acknowledgement, nor those that come by themselves and immediately."""
    if own.trips.smallest < 0 or took < own.trips.smallest:
        own.trips.smallest = took
    own.marks.trip = took
    if own.snd.syn and own.trips.timed_seq == own.snd.isn + 1:
        if segment.length or segment.ack != own.snd.isn + 1:
            return              # the capture missed the handshake's, and this came when there was something to say
        own.trips.floor = took
    elif segment.length or took > own.trips.floor + DELAYED_ACK:
        return
    if own.trips.num_near % NEAR_TRIPS == 0:
        own.trips.near[1] = own.trips.near[0]
        own.trips.near[0] = took
        own.trips.farthest[1] = own.trips.farthest[0]
        own.trips.farthest[0] = took
    elif took < own.trips.near[0]:
        own.trips.near[0] = took
    elif took > own.trips.farthest[0]:
        own.trips.farthest[0] = took
    own.trips.num_near += 1
