# cython: language_level=3
from kwsniff.core.capture.packets cimport TCP_ACK, TCP_RST, TCP_SYN, Segment
from kwsniff.core.tcp.connections cimport Arrival, Connection, Direction, Streams
from kwsniff.core.tcp.progress cimport LEAST_WINDOW
from kwsniff.core.tcp.segments cimport distance

cdef bint opens_anew(Connection* connection, Segment* segment, int sender) noexcept nogil
cdef void take_syn(Streams* streams, Connection* connection, Direction* own, Segment* segment, int sender) noexcept nogil
cdef void begin_behind_syn(Streams* streams, Connection* connection) noexcept nogil
cdef void pass_over_syn(Streams* streams, Connection* connection, int sender, Arrival* arrival) noexcept nogil


cdef inline bint goes_on_elsewhere(Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """Whether this is the segment behind a SYN that was not believed: a new connection after all."""
    if (not own.other_syn or segment.flags & (TCP_SYN | TCP_RST) or segment.seq != own.other_isn + 1
            or own.known and segment.seq == own.next_seq):
        return False
    if other.other_syn:
        return segment.flags & TCP_ACK and 0 <= distance(segment.ack, other.other_isn + 1) <= LEAST_WINDOW
    return segment.length > 0
