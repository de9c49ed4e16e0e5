# cython: language_level=3
"""What is known of a segment when it comes: its place in the capture, and how far everything had gone by then."""

from libc.string cimport memset

from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.tcp.connections cimport Arrival, Connection, Direction, Streams
from kwsniff.core.tcp.timestamps cimport take_stamp
from kwsniff.core.tcp.tail_loss cimport left_earlier


cdef inline void begin_arrival(Arrival* arrival, Streams* streams, Direction* own, Direction* other,
                               Segment* segment) noexcept nogil:
    arrival.time = segment.time
    arrival.frame = segment.frame
    arrival.acked = -1
    arrival.capture = streams.capture
    arrival.repeated_before = own.retransmissions + other.retransmissions
    arrival.retransmissions = arrival.repeated_before
    arrival.ready = segment.time
    arrival.mended = own.mended
    arrival.mended_back = other.mended
    arrival.late = take_stamp(own, segment)
    if own.unseen:
        arrival.late += left_earlier(own, other, segment)


cdef inline Arrival latest_arrival(Connection* connection) noexcept nogil:
    """For what is noticed when no packet comes any more."""
    cdef Arrival arrival
    memset(&arrival, 0, sizeof(Arrival))
    arrival.time = connection.last_time
    arrival.frame = connection.last_frame
    arrival.acked = -1
    arrival.capture = connection.last_capture
    arrival.ready = arrival.time
    return arrival
