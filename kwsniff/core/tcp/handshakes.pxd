# cython: language_level=3
# SYNs: at the beginning, repeated, and unexpected. handshakes.pyx has the rules.

from kwsniff.core.capture.packets cimport TCP_ACK, TCP_RST, TCP_SYN, Segment
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stream_table cimport Streams
from kwsniff.core.tcp.control_block cimport Direction
from kwsniff.core.tcp.segments cimport LEAST_WINDOW, distance

cdef bint opens_anew(Connection* connection, Segment* segment, int sender) noexcept nogil
cdef void take_syn(Streams* streams, Connection* connection, Direction* own, Segment* segment, int sender) noexcept nogil
cdef void begin_behind_syn(Streams* streams, Connection* connection) noexcept nogil
cdef void pass_over_syn(Streams* streams, Connection* connection, int sender, Arrival* arrival) noexcept nogil


cdef inline bint goes_on_elsewhere(Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """Whether this is the segment behind a SYN that was not believed: a new connection after all."""
    if (not own.snd.other_syn or segment.flags & (TCP_SYN | TCP_RST) or segment.seq != own.snd.other_isn + 1
            or own.snd.known and segment.seq == own.snd.next_seq):
        return False
    if other.snd.other_syn:
        return segment.flags & TCP_ACK and 0 <= distance(segment.ack, other.snd.other_isn + 1) <= LEAST_WINDOW
    return segment.length > 0
