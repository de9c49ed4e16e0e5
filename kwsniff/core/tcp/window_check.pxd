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
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stream_table cimport DROP_OUT_OF_WINDOW, ODD_OUT_OF_WINDOW, Streams
from kwsniff.core.tcp.control_block cimport Direction, block_of
from kwsniff.core.tcp.reorder_queue cimport QueuedSegment
from kwsniff.core.tcp.reorder_queue cimport unhold_next
from kwsniff.core.tcp.progress cimport fits, furthest
from kwsniff.core.tcp.segments cimport LEAST_WINDOW, WINDOW, distance

cdef enum:
    FEWER_ACKS = 3              # in a row
    UNHEARD_OF = 1 << 20        # never in flight on a connection that is not known to have had much


cdef inline void doubt(Streams* streams, Connection* connection, int sender, Segment* segment,
                       Arrival* arrival) noexcept nogil:
    """What this segment of `sender` contradicts of what it seemed to have sent."""
    cdef Direction* own = &block_of(connection).direction[sender]
    if own.snd.sent_known:
        doubt_sent(streams, connection, sender, segment, arrival)
    if own.queue.first != NULL:
        doubt_queued(streams, connection, sender, segment)


cdef inline int64_t room_of(Direction* own) noexcept nogil:
    return own.snd.flight if own.snd.flight > LEAST_WINDOW else LEAST_WINDOW


cdef inline void doubt_sent(Streams* streams, Connection* connection, int sender, Segment* segment,
                            Arrival* arrival) noexcept nogil:
    """Takes back how far the sender seemed to have come, and its FIN, where it continues far below."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Arrival stray = arrival[0]
    cdef uint32_t far = own.snd.sent
    cdef uint32_t shown = segment.seq + segment.length
    if distance(far, shown) <= LEAST_WINDOW or not own.snd.known or own.snd.beginning or not fits(own, shown):
        return
    own.snd.sent_known = False
    if distance(furthest(own), shown) > 0:
        shown = furthest(own)
    if distance(far, shown) <= room_of(own):
        own.snd.sent_known = True
        return
    stray.frame = own.check.sent_frame
    stray.time = own.check.sent_time
    streams.sink.oddity(streams.sink.context, connection, sender, &stray, ODD_OUT_OF_WINDOW, distance(far, shown))
    if not own.snd.fin or distance(own.snd.fin_seq, shown) <= room_of(own):
        return
    own.snd.fin = False
    if block_of(connection).closing.closer == sender and block_of(connection).closing.fin_by == sender and block_of(connection).reset.by < 0:
        block_of(connection).closing.closer = -1
    if block_of(connection).closing.fin_by == sender:
        block_of(connection).closing.fin_by = -1


cdef inline void doubt_queued(Streams* streams, Connection* connection, int sender, Segment* segment) noexcept nogil:
    """Passes over what is held far ahead of where its sender continues."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef uint32_t shown = segment.seq + segment.length
    cdef int64_t room = room_of(own)
    cdef QueuedSegment* before = NULL
    cdef QueuedSegment* queued = own.queue.first
    if own.snd.beginning or segment.flags & TCP_SYN or not fits(own, shown):
        return
    if segment.length and not segment.flags & TCP_FIN:
        if segment.seq != own.snd.next_seq:
            return
        room = 4 * room if 4 * room > UNHEARD_OF else UNHEARD_OF
    if distance(own.queue.last.seq, shown) <= room:
        return
    if distance(own.snd.next_seq, shown) > 0:
        shown = own.snd.next_seq
    if own.snd.acked_known and 0 < distance(own.snd.acked, shown) <= WINDOW:
        shown = own.snd.acked
    while queued != NULL and (distance(queued.seq, shown) <= room or is_sacked(own, queued.seq)):
        if distance(queued.seq + queued.length, shown) > 0:
            shown = queued.seq + queued.length
        before = queued
        queued = queued.next
    skip_queued(streams, connection, sender, before, shown)


cdef inline bint is_sacked(Direction* own, uint32_t seq) noexcept nogil:
    cdef uint32_t i
    for i in range(own.sack.num):
        if distance(seq, own.sack.ranges[i].start) >= 0 and distance(own.sack.ranges[i].end, seq) > 0:
            return True
    return False


cdef inline void skip_queued(Streams* streams, Connection* connection, int sender, QueuedSegment* before,
                                uint32_t shown) noexcept nogil:
    """All that is held behind `before`, or all where that is NULL."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef QueuedSegment* queued
    while (own.queue.first if before == NULL else before.next) != NULL:
        queued = unhold_next(streams, &own.queue, before)
        streams.sink.oddity(streams.sink.context, connection, sender, &queued.arrival, ODD_OUT_OF_WINDOW,
                            distance(queued.seq, shown))
        if queued.captured:
            streams.sink.dropped(streams.sink.context, queued.arrival.capture, DROP_OUT_OF_WINDOW, queued.captured)
        own.traffic.out_of_order -= not queued.is_rest
        free(queued)


cdef inline bint is_at_fin(Direction* own) noexcept nogil:
    return own.snd.fin and own.snd.known and own.snd.next_seq == own.snd.fin_seq


cdef inline void note_acked_ahead(Direction* other, Segment* segment) noexcept nogil:
    """More is acknowledged than was shown."""
    other.check.fewer_acks = 0
    other.check.acked_frame = segment.frame
    other.check.acked_time = segment.time


cdef inline void doubt_acked(Streams* streams, Connection* connection, int sender, Segment* segment,
                             Arrival* arrival) noexcept nogil:
    """Endpoint `sender` acknowledges less than it seemed to have done."""
    cdef Direction* other = &block_of(connection).direction[1 - sender]
    cdef Arrival stray = arrival[0]
    cdef uint32_t shown = other.snd.next_seq
    if not other.snd.known or other.snd.beginning or distance(other.snd.acked, shown) <= 0:
        return
    if other.queue.last != NULL and distance(other.queue.last.seq + other.queue.last.length, shown) > 0:
        shown = other.queue.last.seq + other.queue.last.length
    if other.snd.sent_known and distance(other.snd.sent, shown) > 0:
        shown = other.snd.sent
    if distance(other.snd.acked, shown) <= 0:
        return
    if other.check.fewer_acks == 0 or distance(segment.ack, other.check.fewer_acked) > 0:
        other.check.fewer_acked = segment.ack
    other.check.fewer_acks += 1
    if distance(other.check.fewer_acked, shown) > 0:
        shown = other.check.fewer_acked
    if other.check.fewer_acks < FEWER_ACKS and distance(other.snd.acked, shown) <= room_of(other):
        return
    stray.frame = other.check.acked_frame
    stray.time = other.check.acked_time
    streams.sink.oddity(streams.sink.context, connection, sender, &stray, ODD_OUT_OF_WINDOW, distance(other.snd.acked, shown))
    other.snd.acked = other.check.fewer_acked
    other.check.fewer_acks = 0
    other.queue.evidence_at = 0
