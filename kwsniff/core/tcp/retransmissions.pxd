# cython: language_level=3
"""What lost segments and closed windows took: what timing.pyx asks of a direction.

Rules
  1. A segment that comes again after it was acknowledged is not a loss.
  2. What fills a hole was sent again where its sender's stamps, or its receiver, prove it; else it may have been
     overtaken on its way.
  3. A hole counts from the segment that showed it to the one that fills it; one that is given up does not.

    sent   ---- 1 ---- 2 ------- 2 again ->        seen   ---- 1 ---- 3 ---- 4 ---- 2 ->
                       [ Again ]                                      [ `mended` ]
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

from kwsniff.core.declared cimport (
    TCP_EVENT_DUPLICATE_ACKS, TCP_EVENT_ZERO_WINDOW, TCP_EVENT_ZERO_WINDOW_END,
)
from kwsniff.core.capture.packets cimport NO_TIME, TCP_FIN, Segment
from kwsniff.core.tcp.segments cimport distance
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stream_table cimport Streams
from kwsniff.core.tcp.control_block cimport Direction, block_of
from kwsniff.core.tcp.events cimport TcpEvent
from kwsniff.core.tcp.round_trips cimport AGAIN, Again

cdef enum:
    REPEATED_ACKS = 3           # this number shows that a segment is missing (RFC 5681 3.2)


cdef inline void note_data(Direction* own, Segment* segment) noexcept nogil:
    """Its latest segment with payload."""
    own.trips.sent_at = segment.time
    own.marks.sent_frame = segment.frame
    own.snd.latest_ack = segment.ack


cdef inline void note_again(Direction* own, Segment* segment, int32_t ahead) noexcept nogil:
    cdef Again* again
    if segment.time == NO_TIME or own.snd.acked_known and distance(segment.seq + segment.length, own.snd.acked) <= 0:
        return
    again = &own.trips.again[own.trips.num_again & (AGAIN - 1)]
    own.trips.num_again += 1
    again.offset = own.snd.offset + ahead
    again.time = segment.time
    again.since = own.trips.sent_at if own.trips.sent_at != NO_TIME else segment.time
    again.proven = own.dup_acks.num >= REPEATED_ACKS


cdef inline bint was_lost(Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """Whether what comes next in its stream was sent before and lost on its way here. What was sent in order has stamps
    in order: a later one than that of bytes behind it says so. Without stamps the receiver's requests do, once the
    sender had time to meet them; a segment that was overtaken is not that late."""
    if own.queue.first == NULL and (not own.snd.sent_known or distance(own.snd.sent, segment.seq + segment.length) < 0):
        return False
    if segment.stamped:
        if own.queue.first != NULL:
            return own.queue.first.stamped and distance(segment.stamp, own.queue.first.stamp) > 0
        return own.check.sent_stamped and distance(segment.stamp, own.check.sent_stamp) > 0
    return (own.dup_acks.num >= REPEATED_ACKS and own.snd.acked == segment.seq and other.trips.smallest >= 0
            and segment.time != NO_TIME and own.dup_acks.time != NO_TIME
            and segment.time - own.dup_acks.time >= other.trips.smallest)


cdef inline void note_mended(Direction* own, Segment* segment, Arrival* arrival) noexcept nogil:
    """The segment is one of those missing; does it close the hole that others are held behind?"""
    if segment.time > own.queue.ready:
        own.queue.ready = segment.time
    if distance(own.queue.first.seq, segment.seq + segment.length) > 0:
        return
    if own.queue.hole_since != NO_TIME and segment.time > own.queue.hole_since:
        own.queue.mended += segment.time - own.queue.hole_since
    own.queue.hole_since = segment.time
    own.queue.mending = True
    arrival.mended = own.queue.mended


cdef inline int64_t zero_window_until(Direction* own, int64_t time) noexcept nogil:
    if own.traffic.closed_since == NO_TIME or time <= own.traffic.closed_since:
        return own.traffic.zero_window
    return own.traffic.zero_window + (time - own.traffic.closed_since)


cdef inline void tell_event(Streams* streams, Connection* connection, int kind, int sender, int stream, int64_t offset,
                            int64_t bytes, int64_t count, int64_t time, int64_t frame, int64_t capture,
                            bint lost_before=False) noexcept nogil:
    """`offset` in the stream of endpoint `stream`, `bytes` and `count` are -1 where there is none."""
    cdef TcpEvent event
    cdef bint had_room = connection.events != NULL
    event.kind = kind
    event.sender = sender
    event.stream = stream
    event.offset = offset
    event.bytes = bytes
    event.count = count
    event.time = time
    event.frame = frame
    event.capture = capture
    event.lost_before = lost_before
    streams.sink.event(streams.sink.context, connection, &event)
    # The sink that keeps the event may have taken room for it, and does not know these totals.
    streams.event_rooms += connection.events != NULL and not had_room


cdef inline void end_repeated_acks(Streams* streams, Connection* connection, int sender) noexcept nogil:
    """The run of acknowledgements of what endpoint `sender` sent is over."""
    cdef Direction* own = &block_of(connection).direction[sender]
    if own.dup_acks.num >= REPEATED_ACKS and own.snd.known:
        tell_event(streams, connection, TCP_EVENT_DUPLICATE_ACKS, 1 - sender, sender,
                   own.snd.offset + distance(own.snd.acked, own.snd.next_seq), -1, own.dup_acks.num, own.dup_acks.time,
                   own.dup_acks.frame, own.dup_acks.capture)
    own.dup_acks.num = 0


cdef inline void note_window(Streams* streams, Connection* connection, int sender, Segment* segment) noexcept nogil:
    """How long the sender has had no room for what comes. One that says it is done needs none."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef int64_t offset = block_of(connection).direction[1 - sender].snd.offset
    if segment.time == NO_TIME:
        return
    if segment.window == 0 and not segment.flags & TCP_FIN:
        if own.traffic.closed_since == NO_TIME:
            own.traffic.closed_since = segment.time
            tell_event(streams, connection, TCP_EVENT_ZERO_WINDOW, sender, 1 - sender, offset, -1, -1, segment.time,
                       segment.frame, streams.capture)
    elif own.traffic.closed_since != NO_TIME:
        own.traffic.zero_window = zero_window_until(own, segment.time)
        own.marks.closed_from = own.traffic.closed_since
        own.marks.closed_until = segment.time
        own.traffic.closed_since = NO_TIME
        tell_event(streams, connection, TCP_EVENT_ZERO_WINDOW_END, sender, 1 - sender, offset, -1, -1, segment.time,
                   segment.frame, streams.capture)
