# cython: language_level=3
"""How far away the other side is, what lost segments and closed windows took: what timing.pyx asks of a direction.

Rules
  1. Any acknowledgement tells how long the way takes at most. How long it takes tell those that nothing held up.
  2. A segment that comes again after it was acknowledged is not a loss.
  3. What fills a hole was sent again where its sender's stamps, or its receiver, prove it; else it may have been
     overtaken on its way.
  4. A hole counts from the segment that showed it to the one that fills it; one that is given up does not.

    sent   ---- 1 ---- 2 ------- 2 again ->        seen   ---- 1 ---- 3 ---- 4 ---- 2 ->
                       [ Again ]                                      [ `mended` ]
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

from kwsniff.core.declared cimport (
    TCP_EVENT_DUPLICATE_ACKS, TCP_EVENT_RETRANSMISSION, TCP_EVENT_ZERO_WINDOW, TCP_EVENT_ZERO_WINDOW_END,
)
from kwsniff.core.capture.packets cimport NO_TIME, TCP_FIN, Segment
from kwsniff.core.tcp.segments cimport distance
from kwsniff.core.tcp.connections cimport AGAIN, NEAR_TRIPS, Again, Arrival, Connection, Direction, Streams, TcpEvent

cdef enum:
    REPEATED_ACKS = 3           # this number shows that a segment is missing (RFC 5681 3.2)

cdef extern from *:
    """
    #define DELAYED_ACK 35000000LL
    """
    const int64_t DELAYED_ACK   # later by this: a receiver that waited for more (RFC 1122 4.2.3.2)


cdef inline void time_segment(Direction* own, Segment* segment, uint32_t length) noexcept nogil:
    """One segment at a time is timed until its acknowledgement, never a repeated one (RFC 6298, Karn's rule)."""
    if not own.timed and segment.time != NO_TIME:
        own.timed = True
        own.timed_seq = segment.seq + length
        own.timed_at = segment.time


cdef inline void note_round_trip(Direction* own, Segment* segment, int64_t took) noexcept nogil:
    """Nothing holds up a handshake's acknowledgement, nor those that come by themselves and immediately."""
    if own.round_trip < 0 or took < own.round_trip:
        own.round_trip = took
    if own.syn and own.timed_seq == own.isn + 1:
        if segment.length or segment.ack != own.isn + 1:
            return              # the capture missed the handshake's, and this came when there was something to say
        own.floor = took
    elif segment.length or took > own.floor + DELAYED_ACK:
        return
    if own.num_near % NEAR_TRIPS == 0:
        own.near[1] = own.near[0]
        own.near[0] = took
    elif took < own.near[0]:
        own.near[0] = took
    own.num_near += 1


cdef inline void note_again(Direction* own, Segment* segment, int32_t ahead) noexcept nogil:
    cdef Again* again
    if segment.time == NO_TIME or own.acked_known and distance(segment.seq + segment.length, own.acked) <= 0:
        return
    again = &own.again[own.num_again & (AGAIN - 1)]
    own.num_again += 1
    again.offset = own.offset + ahead
    again.time = segment.time
    again.since = own.sent_at if own.sent_at != NO_TIME else segment.time
    again.proven = own.repeated_acks >= REPEATED_ACKS


cdef inline bint was_lost(Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """Whether what comes next in its stream was sent before and lost on its way here. What was sent in order has stamps
    in order: a later one than that of bytes behind it says so. Without stamps the receiver's requests do, once the
    sender had time to meet them; a segment that was overtaken is not that late."""
    if own.queued == NULL and (not own.sent_known or distance(own.sent, segment.seq + segment.length) < 0):
        return False
    if segment.stamped:
        if own.queued != NULL:
            return own.queued.stamped and distance(segment.stamp, own.queued.stamp) > 0
        return own.sent_stamped and distance(segment.stamp, own.sent_stamp) > 0
    return (own.repeated_acks >= REPEATED_ACKS and own.acked == segment.seq and other.round_trip >= 0
            and segment.time != NO_TIME and own.repeated_time != NO_TIME
            and segment.time - own.repeated_time >= other.round_trip)


cdef inline void note_mended(Direction* own, Segment* segment, Arrival* arrival) noexcept nogil:
    """The segment is one of those missing; does it close the hole that others are held behind?"""
    if segment.time > own.queue_ready:
        own.queue_ready = segment.time
    if distance(own.queued.seq, segment.seq + segment.length) > 0:
        return
    if own.hole_since != NO_TIME and segment.time > own.hole_since:
        own.mended += segment.time - own.hole_since
    own.hole_since = segment.time
    own.mending = True
    arrival.mended = own.mended


cdef inline int64_t zero_window_until(Direction* own, int64_t time) noexcept nogil:
    if own.closed_since == NO_TIME or time <= own.closed_since:
        return own.zero_window
    return own.zero_window + (time - own.closed_since)


cdef inline void tell_event(Streams* streams, Connection* connection, int kind, int sender, int stream, int64_t offset,
                            int64_t bytes, int64_t count, int64_t time, int64_t frame, int64_t capture) noexcept nogil:
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
    streams.sink.event(streams.sink.context, connection, &event)
    # The sink that keeps the event may have taken room for it, and does not know these totals.
    streams.event_rooms += connection.events != NULL and not had_room


cdef inline void tell_again(Streams* streams, Connection* connection, int sender, Segment* segment, int32_t ahead,
                            uint32_t length) noexcept nogil:
    """`length` bytes that were sent before."""
    tell_event(streams, connection, TCP_EVENT_RETRANSMISSION, sender, sender,
               connection.direction[sender].offset + ahead, length, -1, segment.time, segment.frame, streams.capture)


cdef inline void end_repeated_acks(Streams* streams, Connection* connection, int sender) noexcept nogil:
    """The run of acknowledgements of what endpoint `sender` sent is over."""
    cdef Direction* own = &connection.direction[sender]
    if own.repeated_acks >= REPEATED_ACKS and own.known:
        tell_event(streams, connection, TCP_EVENT_DUPLICATE_ACKS, 1 - sender, sender,
                   own.offset + distance(own.acked, own.next_seq), -1, own.repeated_acks, own.repeated_time,
                   own.repeated_frame, own.repeated_capture)
    own.repeated_acks = 0


cdef inline void note_window(Streams* streams, Connection* connection, int sender, Segment* segment) noexcept nogil:
    """How long the sender has had no room for what comes. One that says it is done needs none."""
    cdef Direction* own = &connection.direction[sender]
    cdef int64_t offset = connection.direction[1 - sender].offset
    if segment.time == NO_TIME:
        return
    if segment.window == 0 and not segment.flags & TCP_FIN:
        if own.closed_since == NO_TIME:
            own.closed_since = segment.time
            tell_event(streams, connection, TCP_EVENT_ZERO_WINDOW, sender, 1 - sender, offset, -1, -1, segment.time,
                       segment.frame, streams.capture)
    elif own.closed_since != NO_TIME:
        own.zero_window = zero_window_until(own, segment.time)
        own.closed_since = NO_TIME
        tell_event(streams, connection, TCP_EVENT_ZERO_WINDOW_END, sender, 1 - sender, offset, -1, -1, segment.time,
                   segment.frame, streams.capture)
