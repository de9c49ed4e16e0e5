# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Which resets (RST) end a connection.

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
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.connections cimport unlink_reset
from kwsniff.core.tcp.stream_table cimport DROP_AFTER_END, ODD_AFTER_END, ODD_RESET_TAKEN_BACK, Streams
from kwsniff.core.tcp.control_block cimport Direction, block_of
from kwsniff.core.tcp.lifecycle cimport ResetMarks
from kwsniff.core.tcp.reorder_queue cimport QueuedSegment
from kwsniff.core.tcp.reorder_queue cimport held_to, unhold_next
from kwsniff.core.tcp.progress cimport furthest
from kwsniff.core.tcp.segments cimport LEAST_WINDOW, WINDOW, distance


cdef bint resets(Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """Whether a receiver would take this RST: one that answers a SYN by its acknowledgement (RFC 9293 3.10.7.3), any
    other by its number. The receiver's position is not known better than between its last acknowledgement and the
    furthest number sent; what it has room for not better than by what was in flight before."""
    cdef int32_t room = LEAST_WINDOW
    if other.snd.syn and not own.snd.syn and not own.snd.known and segment.flags & TCP_ACK and segment.seq == 0:
        return segment.ack == other.snd.isn + 1 or distance(segment.ack, furthest(other)) == 0
    if not own.snd.known and not own.snd.acked_known:
        return True
    if <int32_t>own.snd.flight > room:
        room = <int32_t>own.snd.flight
    if distance(segment.seq, furthest(own)) > room:
        return False
    if distance(segment.seq, own.snd.next_seq if own.snd.known else own.snd.acked) >= -1:
        return True
    return own.snd.acked_known and distance(segment.seq, own.snd.acked) >= -1


cdef void mark_reset(Direction* own, Segment* segment) noexcept nogil:
    """What this RST has in common with what its sender sent before; before it is remembered itself."""
    cdef ResetMarks* marks = &own.reset_marks
    marks.acknowledges = (segment.flags & TCP_ACK) != 0
    marks.stamped = segment.stamped
    marks.others_stamped = own.clock.stamped
    marks.compared = own.seen.most_ttl > 0
    marks.ttl_step = 0
    if marks.compared and segment.ttl > own.seen.most_ttl:
        marks.ttl_step = <int32_t>(segment.ttl - own.seen.most_ttl)
    elif segment.ttl < own.seen.least_ttl:
        marks.ttl_step = -<int32_t>(own.seen.least_ttl - segment.ttl)
    marks.ident_step = <int32_t>((segment.ident - own.seen.last_ident) & 0xFFFF) if own.seen.numbered else -1
    marks.window = segment.window


cdef bint goes_on_after_reset(Connection* connection, int sender, Segment* segment) noexcept nogil:
    """Whether this acknowledges what was sent behind the reset: a receiver that took it answers nothing more."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Direction* other = &block_of(connection).direction[1 - sender]
    if connection.end != ENDING_RESET or segment.flags & (TCP_RST | TCP_SYN):
        return False
    if segment.length and 0 < distance(segment.seq + segment.length, own.snd.at_reset) <= WINDOW:
        own.snd.sent = segment.seq + segment.length
        own.snd.sent_known = True
    return (segment.flags & TCP_ACK and other.snd.sent_known and distance(other.snd.sent, other.snd.at_reset) > 0
            and 0 < distance(segment.ack, other.snd.at_reset) <= distance(other.snd.sent, other.snd.at_reset))


cdef bint doubt_reset(Streams* streams, Connection* connection, int sender, Segment* segment,
                      Arrival* arrival) noexcept nogil:
    """Whether the reset is taken back. A side that sent one says nothing more, and one that took it answers nothing more:
    what was sent behind it is answered only if there was none."""
    cdef int by = block_of(connection).reset.by
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Direction* other = &block_of(connection).direction[1 - sender]
    cdef bint seen = (waits_behind_reset(connection) and other.queue.last != NULL
                      and is_behind_reset(other, other.queue.last.seq, other.queue.last.length))
    if not segment.flags & TCP_ACK or distance(segment.ack, other.snd.at_reset) <= 0:
        return False
    # An acknowledgement alone may be of segments before the reset that the capture has not.
    if sender != by and not seen and (segment.length == 0 or not is_behind_reset(own, segment.seq, segment.length)):
        return False
    unlink_reset(streams, connection)
    block_of(connection).reset.by = -1
    block_of(connection).closing.closer = block_of(connection).closing.fin_by
    block_of(connection).closing.close_frame = block_of(connection).closing.fin_frame
    block_of(connection).closing.close_time = block_of(connection).closing.fin_time
    streams.sink.oddity(streams.sink.context, connection, by, arrival, ODD_RESET_TAKEN_BACK, block_of(connection).reset.ahead)
    return True


cdef inline void forget_behind_reset(Direction* own) noexcept nogil:
    """What follows a reset that holds shows nothing of the stream before."""
    cdef uint32_t i
    if own.snd.sent_known and distance(own.snd.sent, own.snd.at_reset) > 0:
        own.snd.sent = own.snd.at_reset
    if own.snd.acked_known and distance(own.snd.acked, own.snd.at_reset) > 0:
        own.snd.acked = own.snd.at_reset
    for i in range(own.sack.num):
        if distance(own.sack.ranges[i].end, own.snd.at_reset) > 0:
            own.sack.ranges[i].end = own.snd.at_reset
        if distance(own.sack.ranges[i].start, own.snd.at_reset) > 0:
            own.sack.ranges[i].start = own.snd.at_reset


cdef void drop_behind_reset(Streams* streams, Connection* connection, int sender) noexcept nogil:
    """Nothing contradicted the reset: what was sent after it had no receiver."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef QueuedSegment* before = NULL
    cdef QueuedSegment* queued = own.queue.first
    cdef uint32_t end = furthest(own)
    own.snd.goes_on_unseen = own.snd.known and distance(end, held_to(&own.queue, own.snd.next_seq)) > (own.snd.fin and end == own.snd.fin_seq + 1)
    forget_behind_reset(own)
    while queued != NULL:
        if is_behind_reset(own, queued.seq, queued.length):
            unhold_next(streams, &own.queue, before)
            streams.sink.dropped(streams.sink.context, queued.arrival.capture, DROP_AFTER_END, queued.captured)
            streams.sink.oddity(streams.sink.context, connection, sender, &queued.arrival, ODD_AFTER_END, queued.length)
            free(queued)
        else:
            before = queued
        queued = before.next if before != NULL else own.queue.first
