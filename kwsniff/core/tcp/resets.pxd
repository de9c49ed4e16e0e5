# cython: language_level=3
# Which resets (RST) end a connection. resets.pyx has the rules.

from libc.stdint cimport int64_t, uint32_t

from kwsniff.core.capture.packets cimport NO_TIME, TCP_ACK, TCP_RST, Segment
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stream_table cimport Streams
from kwsniff.core.tcp.control_block cimport Direction, block_of
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
    if own.seen.most_ttl == 0 or segment.ttl < own.seen.least_ttl:
        own.seen.least_ttl = segment.ttl
    if segment.ttl > own.seen.most_ttl:
        own.seen.most_ttl = segment.ttl


cdef void mark_reset(Direction* own, Segment* segment) noexcept nogil
cdef bint goes_on_after_reset(Connection* connection, int sender, Segment* segment) noexcept nogil
cdef bint doubt_reset(Streams* streams, Connection* connection, int sender, Segment* segment,
                      Arrival* arrival) noexcept nogil
cdef void drop_behind_reset(Streams* streams, Connection* connection, int sender) noexcept nogil


cdef inline bint waits_behind_reset(Connection* connection) noexcept nogil:
    """Whether a reset with the number expected waits to be gainsaid: what comes behind it is held, not handed on."""
    return block_of(connection).reset.by >= 0 and block_of(connection).reset.ahead == 0 and not connection.ended


cdef inline bint is_behind_reset(Direction* own, uint32_t seq, uint32_t length) noexcept nogil:
    return distance(seq + length, own.snd.at_reset) > 0


cdef inline bint is_reset(Connection* connection, int64_t time) noexcept nogil:
    """Whether the reset has been there for long enough not to be contradicted any more."""
    return (block_of(connection).reset.by >= 0 and not connection.ended and time != NO_TIME
            and block_of(connection).reset.since != NO_TIME and time - block_of(connection).reset.since > RESET_PATIENCE)


cdef inline uint32_t end_of(Direction* own) noexcept nogil:
    """The number behind everything that is known of a direction, its FIN included."""
    cdef uint32_t end = furthest(own)
    return own.snd.fin_seq + 1 if own.snd.fin and distance(own.snd.fin_seq + 1, end) > 0 else end


cdef inline bint is_told_whole(Direction* own, Direction* other) noexcept nogil:
    """Whether a side had closed, and nothing is missing that an acknowledgement behind the reset could prove."""
    return ((own.snd.fin or other.snd.fin) and distance(end_of(own), own.snd.next_seq) <= own.snd.fin
            and distance(end_of(other), other.snd.next_seq) <= other.snd.fin)


cdef inline bint answers_unseen(Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """Whether this RST may answer a packet that was not seen. Who has closed answers what takes numbers and comes too late
    by one that acknowledges nothing: its number is the acknowledgement of what it answers (RFC 9293 3.10.7.1). Where
    its sender had not shown that it had come so far, a FIN may be missing."""
    if segment.flags & TCP_ACK or not own.snd.fin and (
            distance(segment.seq, own.snd.next_seq) <= 0 or own.snd.sent_known and distance(segment.seq, own.snd.sent) <= 0):
        return False
    return other.snd.latest_ack != segment.seq or other.snd.acked_known and distance(other.snd.acked, end_of(other)) >= 0
