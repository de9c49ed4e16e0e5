# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Which resets count.

Rules
  1. A reset counts where its receiver would take it: at a number between the last acknowledged and the furthest that the
     bytes in flight ever reached.
  2. It ends the connection when RESET_PATIENCE went by, or the connection's packets do; if both sides continue before that,
     there was none. Behind one with the number expected what is sent is held until then: it had no receiver, or nothing
     is lost. One beyond is a challenge to its receiver, or follows lost segments: what comes is handed on.
  3. Where a side was never seen, one with the number expected ends the connection immediately; so it does where one had
     closed already, unless bytes are missing, of which an acknowledgement may still come.
  4. A side that took a reset answers nothing more, and one that sent it says nothing more: that is how both are known.
  5. A reset that a box in between sends has its own time to live, numbers and options. Who knows the connection sends one
     with an acknowledgement; who does not know it sends one without (RFC 9293 3.10.7.1).

    acked          next_seq, held, sent     + flight, LEAST_WINDOW or more
    --[ held behind ]---|-----[ handed on ]---------|--[ none ]--

Source: RFC 9293 3.5.3, 3.10.7; RFC 5961 3; RFC 6864 (identification); RFC 7323 3.2 (timestamps of resets).
"""

from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport free

from kwsniff.core.declared cimport ENDING_RESET
from kwsniff.core.capture.packets cimport TCP_ACK, TCP_RST, TCP_SYN, Segment
from kwsniff.core.tcp.connections cimport (
    DROP_AFTER_END, ODD_AFTER_END, ODD_RESET_TAKEN_BACK, Arrival, Connection, Direction, QueuedSegment, ResetMarks, Streams,
    unlink_reset,
)
from kwsniff.core.tcp.reorder_queue cimport held_to, unhold_next
from kwsniff.core.tcp.progress cimport LEAST_WINDOW, WINDOW, furthest
from kwsniff.core.tcp.segments cimport distance


cdef bint resets(Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """Whether a receiver would take this RST: one that answers a SYN by its acknowledgement (RFC 9293 3.10.7.3), any
    other by its number. The receiver's position is not known better than between its last acknowledgement and the
    furthest number sent; what it has room for not better than by what was in flight before."""
    cdef int32_t room = LEAST_WINDOW
    if other.syn and not own.syn and not own.known and segment.flags & TCP_ACK and segment.seq == 0:
        return segment.ack == other.isn + 1 or distance(segment.ack, furthest(other)) == 0
    if not own.known and not own.acked_known:
        return True
    if <int32_t>own.flight > room:
        room = <int32_t>own.flight
    if distance(segment.seq, furthest(own)) > room:
        return False
    if distance(segment.seq, own.next_seq if own.known else own.acked) >= -1:
        return True
    return own.acked_known and distance(segment.seq, own.acked) >= -1


cdef void mark_reset(Direction* own, Segment* segment) noexcept nogil:
    """What this RST has in common with what its sender sent before; before it is remembered itself."""
    cdef ResetMarks* marks = &own.reset_marks
    marks.acknowledges = (segment.flags & TCP_ACK) != 0
    marks.stamped = segment.stamped
    marks.others_stamped = own.stamped
    marks.compared = own.most_ttl > 0
    marks.ttl_step = 0
    if marks.compared and segment.ttl > own.most_ttl:
        marks.ttl_step = <int32_t>(segment.ttl - own.most_ttl)
    elif segment.ttl < own.least_ttl:
        marks.ttl_step = -<int32_t>(own.least_ttl - segment.ttl)
    marks.ident_step = <int32_t>((segment.ident - own.last_ident) & 0xFFFF) if own.numbered else -1
    marks.window = segment.window


cdef bint goes_on_after_reset(Connection* connection, int sender, Segment* segment) noexcept nogil:
    """Whether this acknowledges what was sent behind the reset: a receiver that took it answers nothing more."""
    cdef Direction* own = &connection.direction[sender]
    cdef Direction* other = &connection.direction[1 - sender]
    if connection.end != ENDING_RESET or segment.flags & (TCP_RST | TCP_SYN):
        return False
    if segment.length and 0 < distance(segment.seq + segment.length, own.at_reset) <= WINDOW:
        own.sent = segment.seq + segment.length
        own.sent_known = True
    return (segment.flags & TCP_ACK and other.sent_known and distance(other.sent, other.at_reset) > 0
            and 0 < distance(segment.ack, other.at_reset) <= distance(other.sent, other.at_reset))


cdef bint doubt_reset(Streams* streams, Connection* connection, int sender, Segment* segment,
                      Arrival* arrival) noexcept nogil:
    """Whether the reset is taken back. A side that sent one says nothing more, and one that took it answers nothing more:
    what was sent behind it is answered only if there was none."""
    cdef int by = connection.reset_by
    cdef Direction* own = &connection.direction[sender]
    cdef Direction* other = &connection.direction[1 - sender]
    cdef bint seen = (waits_behind_reset(connection) and other.queue_last != NULL
                      and is_behind_reset(other, other.queue_last.seq, other.queue_last.length))
    if not segment.flags & TCP_ACK or distance(segment.ack, other.at_reset) <= 0:
        return False
    # An acknowledgement alone may be of segments before the reset that the capture has not.
    if sender != by and not seen and (segment.length == 0 or not is_behind_reset(own, segment.seq, segment.length)):
        return False
    unlink_reset(streams, connection)
    connection.reset_by = -1
    connection.closer = connection.fin_by
    connection.close_frame = connection.fin_frame
    connection.close_time = connection.fin_time
    streams.sink.oddity(streams.sink.context, connection, by, arrival, ODD_RESET_TAKEN_BACK, connection.reset_ahead)
    return True


cdef inline void forget_behind_reset(Direction* own) noexcept nogil:
    """What follows a reset that holds shows nothing of the stream before."""
    cdef uint32_t i
    if own.sent_known and distance(own.sent, own.at_reset) > 0:
        own.sent = own.at_reset
    if own.acked_known and distance(own.acked, own.at_reset) > 0:
        own.acked = own.at_reset
    for i in range(own.num_sacked):
        if distance(own.sacked[i].end, own.at_reset) > 0:
            own.sacked[i].end = own.at_reset
        if distance(own.sacked[i].start, own.at_reset) > 0:
            own.sacked[i].start = own.at_reset


cdef void drop_behind_reset(Streams* streams, Connection* connection, int sender) noexcept nogil:
    """Nothing contradicted the reset: what was sent after it had no receiver."""
    cdef Direction* own = &connection.direction[sender]
    cdef QueuedSegment* before = NULL
    cdef QueuedSegment* queued = own.queued
    cdef uint32_t end = furthest(own)
    own.goes_on_unseen = own.known and distance(end, held_to(own)) > (own.fin and end == own.fin_seq + 1)
    forget_behind_reset(own)
    while queued != NULL:
        if is_behind_reset(own, queued.seq, queued.length):
            unhold_next(streams, own, before)
            streams.sink.dropped(streams.sink.context, queued.arrival.capture, DROP_AFTER_END, queued.captured)
            streams.sink.oddity(streams.sink.context, connection, sender, &queued.arrival, ODD_AFTER_END, queued.length)
            free(queued)
        else:
            before = queued
        queued = before.next if before != NULL else own.queued
