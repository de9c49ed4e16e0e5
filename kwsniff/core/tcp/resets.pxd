# cython: language_level=3
from libc.stdint cimport int64_t, uint32_t

from kwsniff.core.capture.packets cimport NO_TIME, TCP_ACK, TCP_RST, Segment
from kwsniff.core.tcp.connections cimport Arrival, Connection, Direction, Streams
from kwsniff.core.tcp.progress cimport furthest
from kwsniff.core.tcp.segments cimport distance

cdef extern from *:
    """
    #define RESET_PATIENCE 10000000000LL
    """
    const int64_t RESET_PATIENCE    # nanoseconds in which two peers that took no reset say something more

cdef bint resets(Direction* own, Direction* other, Segment* segment) noexcept nogil
cdef inline void note_ttl(Direction* own, Segment* segment) noexcept nogil:
    """Packets of one sender differ where they were captured at several places, or took several ways."""
    if segment.flags & TCP_RST:
        return
    if own.most_ttl == 0 or segment.ttl < own.least_ttl:
        own.least_ttl = segment.ttl
    if segment.ttl > own.most_ttl:
        own.most_ttl = segment.ttl


cdef void mark_reset(Direction* own, Segment* segment) noexcept nogil
cdef bint goes_on_after_reset(Connection* connection, int sender, Segment* segment) noexcept nogil
cdef bint doubt_reset(Streams* streams, Connection* connection, int sender, Segment* segment,
                      Arrival* arrival) noexcept nogil
cdef void drop_behind_reset(Streams* streams, Connection* connection, int sender) noexcept nogil


cdef inline bint waits_behind_reset(Connection* connection) noexcept nogil:
    """Whether a reset with the number expected waits to be gainsaid: what comes behind it is held, not handed on."""
    return connection.reset_by >= 0 and connection.reset_ahead == 0 and not connection.ended


cdef inline bint is_behind_reset(Direction* own, uint32_t seq, uint32_t length) noexcept nogil:
    return distance(seq + length, own.at_reset) > 0


cdef inline bint is_reset(Connection* connection, int64_t time) noexcept nogil:
    """Whether the reset has been there for long enough not to be contradicted any more."""
    return (connection.reset_by >= 0 and not connection.ended and time != NO_TIME
            and connection.reset_time != NO_TIME and time - connection.reset_time > RESET_PATIENCE)


cdef inline uint32_t end_of(Direction* own) noexcept nogil:
    """The number behind everything that is known of a direction, its FIN included."""
    cdef uint32_t end = furthest(own)
    return own.fin_seq + 1 if own.fin and distance(own.fin_seq + 1, end) > 0 else end


cdef inline bint is_told_whole(Direction* own, Direction* other) noexcept nogil:
    """Whether a side had closed, and nothing is missing that an acknowledgement behind the reset could prove."""
    return ((own.fin or other.fin) and distance(end_of(own), own.next_seq) <= own.fin
            and distance(end_of(other), other.next_seq) <= other.fin)


cdef inline bint answers_unseen(Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """Whether this RST may answer a packet that was not seen. Who has closed answers what takes numbers and comes too late
    by one that acknowledges nothing: its number is the acknowledgement of what it answers (RFC 9293 3.10.7.1). Where
    its sender had not shown that it had come so far, a FIN may be missing."""
    if segment.flags & TCP_ACK or not own.fin and (
            distance(segment.seq, own.next_seq) <= 0 or own.sent_known and distance(segment.seq, own.sent) <= 0):
        return False
    return other.told_ack != segment.seq or other.acked_known and distance(other.acked, end_of(other)) >= 0
