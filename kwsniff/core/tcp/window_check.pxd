# cython: language_level=3
"""Numbers far ahead that their sender never came to.

Rules
  1. Bytes in flight are never more than their receiver has room for. A sender that continues further below a number has
     not sent it: a segment, a FIN or an acknowledgement of another connection, or a forged one.
  2. What was seen up to it, held or acknowledged, confirms it.
  3. A segment without payload says exactly how far its sender has come; one with payload may be sent again, and is
     believed only where much more is between than was ever in flight.
  4. Nothing comes behind a FIN that was reached.
  5. A receiver never acknowledges less than before. One that continues below has not sent what was not shown: far below
     one such acknowledgement is enough, else FEWER_ACKS in a row, which never overtake each other.

    next_seq             + flight, LEAST_WINDOW or more
    ---|--- segment --------------|---------------- FIN, held
    ---| acked ... acked again ---|---------------- acked
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free

from kwsniff.core.capture.packets cimport TCP_FIN, TCP_SYN, Segment
from kwsniff.core.tcp.connections cimport (
    DROP_OUT_OF_WINDOW, ODD_OUT_OF_WINDOW, Arrival, Connection, Direction, QueuedSegment, Streams,
)
from kwsniff.core.tcp.reorder_queue cimport unhold_next
from kwsniff.core.tcp.progress cimport LEAST_WINDOW, WINDOW, fits, furthest
from kwsniff.core.tcp.segments cimport distance

cdef enum:
    FEWER_ACKS = 3              # in a row
    UNHEARD_OF = 1 << 20        # never in flight on a connection that is not known to have had much


cdef inline void doubt(Streams* streams, Connection* connection, int sender, Segment* segment,
                       Arrival* arrival) noexcept nogil:
    """What this segment of `sender` contradicts of what it seemed to have sent."""
    cdef Direction* own = &connection.direction[sender]
    if own.sent_known:
        doubt_sent(streams, connection, sender, segment, arrival)
    if own.queued != NULL:
        doubt_queued(streams, connection, sender, segment)


cdef inline int64_t room_of(Direction* own) noexcept nogil:
    return own.flight if own.flight > LEAST_WINDOW else LEAST_WINDOW


cdef inline void doubt_sent(Streams* streams, Connection* connection, int sender, Segment* segment,
                            Arrival* arrival) noexcept nogil:
    """Takes back how far the sender seemed to have come, and its FIN, where it continues far below."""
    cdef Direction* own = &connection.direction[sender]
    cdef Arrival stray = arrival[0]
    cdef uint32_t far = own.sent
    cdef uint32_t shown = segment.seq + segment.length
    if distance(far, shown) <= LEAST_WINDOW or not own.known or own.beginning or not fits(own, shown):
        return
    own.sent_known = False
    if distance(furthest(own), shown) > 0:
        shown = furthest(own)
    if distance(far, shown) <= room_of(own):
        own.sent_known = True
        return
    stray.frame = own.sent_frame
    stray.time = own.sent_time
    streams.sink.oddity(streams.sink.context, connection, sender, &stray, ODD_OUT_OF_WINDOW, distance(far, shown))
    if not own.fin or distance(own.fin_seq, shown) <= room_of(own):
        return
    own.fin = False
    if connection.closer == sender and connection.fin_by == sender and connection.reset_by < 0:
        connection.closer = -1
    if connection.fin_by == sender:
        connection.fin_by = -1


cdef inline void doubt_queued(Streams* streams, Connection* connection, int sender, Segment* segment) noexcept nogil:
    """Passes over what is held far ahead of where its sender continues."""
    cdef Direction* own = &connection.direction[sender]
    cdef uint32_t shown = segment.seq + segment.length
    cdef int64_t room = room_of(own)
    cdef QueuedSegment* before = NULL
    cdef QueuedSegment* queued = own.queued
    if own.beginning or segment.flags & TCP_SYN or not fits(own, shown):
        return
    if segment.length and not segment.flags & TCP_FIN:
        if segment.seq != own.next_seq:
            return
        room = 4 * room if 4 * room > UNHEARD_OF else UNHEARD_OF
    if distance(own.queue_last.seq, shown) <= room:
        return
    if distance(own.next_seq, shown) > 0:
        shown = own.next_seq
    if own.acked_known and 0 < distance(own.acked, shown) <= WINDOW:
        shown = own.acked
    while queued != NULL and (distance(queued.seq, shown) <= room or is_sacked(own, queued.seq)):
        if distance(queued.seq + queued.length, shown) > 0:
            shown = queued.seq + queued.length
        before = queued
        queued = queued.next
    skip_queued(streams, connection, sender, before, shown)


cdef inline bint is_sacked(Direction* own, uint32_t seq) noexcept nogil:
    cdef uint32_t i
    for i in range(own.num_sacked):
        if distance(seq, own.sacked[i].start) >= 0 and distance(own.sacked[i].end, seq) > 0:
            return True
    return False


cdef inline void skip_queued(Streams* streams, Connection* connection, int sender, QueuedSegment* before,
                                uint32_t shown) noexcept nogil:
    """All that is held behind `before`, or all where that is NULL."""
    cdef Direction* own = &connection.direction[sender]
    cdef QueuedSegment* queued
    while (own.queued if before == NULL else before.next) != NULL:
        queued = unhold_next(streams, own, before)
        streams.sink.oddity(streams.sink.context, connection, sender, &queued.arrival, ODD_OUT_OF_WINDOW,
                            distance(queued.seq, shown))
        if queued.captured:
            streams.sink.dropped(streams.sink.context, queued.arrival.capture, DROP_OUT_OF_WINDOW, queued.captured)
        own.out_of_order -= not queued.is_rest
        free(queued)


cdef inline bint is_at_fin(Direction* own) noexcept nogil:
    return own.fin and own.known and own.next_seq == own.fin_seq


cdef inline void note_acked_ahead(Direction* other, Segment* segment) noexcept nogil:
    """More is acknowledged than was shown."""
    other.fewer_acks = 0
    other.acked_frame = segment.frame
    other.acked_time = segment.time


cdef inline void doubt_acked(Streams* streams, Connection* connection, int sender, Segment* segment,
                             Arrival* arrival) noexcept nogil:
    """Endpoint `sender` acknowledges less than it seemed to have done."""
    cdef Direction* other = &connection.direction[1 - sender]
    cdef Arrival stray = arrival[0]
    cdef uint32_t shown = other.next_seq
    if not other.known or other.beginning or distance(other.acked, shown) <= 0:
        return
    if other.queue_last != NULL and distance(other.queue_last.seq + other.queue_last.length, shown) > 0:
        shown = other.queue_last.seq + other.queue_last.length
    if other.sent_known and distance(other.sent, shown) > 0:
        shown = other.sent
    if distance(other.acked, shown) <= 0:
        return
    if other.fewer_acks == 0 or distance(segment.ack, other.fewer_acked) > 0:
        other.fewer_acked = segment.ack
    other.fewer_acks += 1
    if distance(other.fewer_acked, shown) > 0:
        shown = other.fewer_acked
    if other.fewer_acks < FEWER_ACKS and distance(other.acked, shown) <= room_of(other):
        return
    stray.frame = other.acked_frame
    stray.time = other.acked_time
    streams.sink.oddity(streams.sink.context, connection, sender, &stray, ODD_OUT_OF_WINDOW, distance(other.acked, shown))
    other.acked = other.fewer_acked
    other.fewer_acks = 0
    other.evidence_at = 0
