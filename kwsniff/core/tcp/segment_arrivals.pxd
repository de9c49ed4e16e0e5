# cython: language_level=3
"""What is known of a segment when it comes: its place in the capture, and how far everything had gone by then."""

from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.control_block cimport Direction
from kwsniff.core.tcp.stream_table cimport Streams
from kwsniff.core.tcp.tail_loss cimport left_earlier
from kwsniff.core.tcp.timestamps cimport take_stamp


cdef inline void begin_arrival(Arrival* arrival, Streams* streams, Direction* own, Direction* other,
                               Segment* segment) noexcept nogil:
    arrival.time = segment.time
    arrival.frame = segment.frame
    arrival.acked = -1
    arrival.capture = streams.capture
    arrival.repeated_before = own.traffic.retransmissions + other.traffic.retransmissions
    arrival.retransmissions = arrival.repeated_before
    arrival.ready = segment.time
    arrival.mended = own.queue.mended
    arrival.mended_back = other.queue.mended
    arrival.late = take_stamp(&own.clock, segment)
    if own.seen.unseen:
        arrival.late += left_earlier(own, other, segment)
