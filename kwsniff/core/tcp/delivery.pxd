# cython: language_level=3
"""What is handed on of a stream: bytes in their order, and gaps where there are none.

Rules
  1. While a sink runs, `offset` is the position of the first byte it is handed.
  2. Held bytes are handed on after those of the other direction that their sender had received by then.
  3. What is missing is one gap or, where parts of it were received, several.
  4. What comes behind a reset that waits to be gainsaid is not handed on.

    next_seq v
    ---------[ payload ][ cut ]        deliver
    ---------[ hole ][######]          declare_gap, then deliver_first
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free

from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.declared cimport TCP_EVENT_RETRANSMISSION
from kwsniff.core.bytes.span cimport Span, drop, keep, make_span
from kwsniff.core.tcp.connections cimport (
    DROP_RETRANSMITTED, GAP_CUT, GAP_LOST, ODD_CONFLICT, Arrival, Connection, Direction, QueuedSegment, Streams,
)
from kwsniff.core.tcp.reorder_queue cimport unhold_first
from kwsniff.core.tcp.progress cimport WINDOW
from kwsniff.core.tcp.overlap cimport differs, remember
from kwsniff.core.tcp.retransmissions cimport tell_event
from kwsniff.core.tcp.resets cimport is_behind_reset, waits_behind_reset
from kwsniff.core.tcp.segments cimport distance
from kwsniff.core.tcp.sack cimport judge_hole, never_came


cdef inline void drop_payload(Streams* streams, Arrival* arrival, int cause, size_t num) noexcept nogil:
    if num:
        streams.sink.dropped(streams.sink.context, arrival.capture, cause, <int64_t>num)


cdef inline void deliver(Streams* streams, Connection* connection, int sender, Span payload, uint32_t length,
                  Arrival* arrival) noexcept nogil:
    """Hands `payload` on as the next bytes of the stream, and what is missing of `length` as a gap. While a sink
    runs, `offset` is the position of the first byte it is handed."""
    cdef Direction* own = &connection.direction[sender]
    own.next_seq += length
    arrival.end = own.offset + length
    if own.acked_known and 0 < distance(own.next_seq, own.acked) <= WINDOW:
        if own.next_seq - own.acked > own.flight:
            own.flight = own.next_seq - own.acked
    if payload.num:
        streams.sink.bytes(streams.sink.context, connection, sender, arrival, payload)
        own.bytes += <int64_t>payload.num
        own.offset += <int64_t>payload.num
    if payload.num < length:
        streams.sink.gap(streams.sink.context, connection, sender, arrival, <int64_t>(length - payload.num), GAP_CUT)
        own.missing += <int64_t>(length - payload.num)
        own.offset += <int64_t>(length - payload.num)


cdef inline void deliver_queued(Streams* streams, Connection* connection, int sender, bint given_up) noexcept nogil:
    """Hands on every held segment that the stream has reached, by itself or because a hole was given up."""
    cdef Direction* own = &connection.direction[sender]
    cdef Direction* other = &connection.direction[1 - sender]
    while own.queued != NULL and not connection.ended and distance(own.queued.seq, own.next_seq) <= 0:
        if waits_behind_reset(connection) and is_behind_reset(own, own.queued.seq, own.queued.length):
            break
        if given_up and own.queued.arrival.acked > other.offset and not other.catching_up:
            own.catching_up = True
            catch_up(streams, connection, 1 - sender, own.queued.arrival.acked)
            own.catching_up = False
        deliver_first(streams, connection, sender)
    if own.queued != NULL and (not own.mending or own.queued.arrival.time > own.hole_since):
        own.hole_since = own.queued.arrival.time
    own.mending = False
    own.evidence_at = 0
    if given_up and not other.catching_up and not other.beginning and other.queued != NULL and distance(other.queued.seq, other.next_seq) <= 0:
        deliver_queued(streams, connection, 1 - sender, False)


cdef inline void deliver_first(Streams* streams, Connection* connection, int sender) noexcept nogil:
    """Hands on the first held segment, which the stream has reached."""
    cdef Direction* own = &connection.direction[sender]
    cdef QueuedSegment* queued = unhold_first(streams, own)
    cdef uint32_t repeated = own.next_seq - queued.seq
    if own.mending and streams.now != NO_TIME:
        # Times may go back in a capture: what is handed on now was there neither before itself nor before what it follows.
        if streams.now > queued.arrival.ready:
            queued.arrival.ready = streams.now
        if own.queue_ready > queued.arrival.ready:
            queued.arrival.ready = own.queue_ready
        queued.arrival.mended = own.mended
        queued.arrival.retransmissions = own.retransmissions + connection.direction[1 - sender].retransmissions
    elif queued.arrival.ready != NO_TIME and own.queue_ready > queued.arrival.ready:
        # A hole before it was given up, another one was not: what it follows came later than itself.
        queued.arrival.mended += own.queue_ready - queued.arrival.ready
        queued.arrival.ready = own.queue_ready
    if repeated:
        tell_event(streams, connection, TCP_EVENT_RETRANSMISSION, sender, sender, own.offset - repeated,
                   repeated if repeated < queued.length else queued.length, -1, queued.arrival.time, queued.arrival.frame,
                   queued.arrival.capture)
    if repeated >= queued.length:
        own.retransmitted += queued.length
        own.retransmissions += not queued.is_rest and not queued.is_again
        if differs(own, queued.seq, make_span(queued.data, queued.captured)):
            streams.sink.oddity(streams.sink.context, connection, sender, &queued.arrival, ODD_CONFLICT, queued.length)
        drop_payload(streams, &queued.arrival, DROP_RETRANSMITTED, queued.captured)
    else:
        own.retransmitted += repeated
        if repeated and differs(own, queued.seq, keep(make_span(queued.data, queued.captured), repeated)):
            streams.sink.oddity(streams.sink.context, connection, sender, &queued.arrival, ODD_CONFLICT, repeated)
        drop_payload(streams, &queued.arrival, DROP_RETRANSMITTED, repeated if repeated < queued.captured else queued.captured)
        if repeated == 0:
            remember(own, queued.seq, queued.length, make_span(queued.data, queued.captured))
        own.queue_ready = queued.arrival.ready
        deliver(streams, connection, sender, drop(make_span(queued.data, queued.captured), repeated),
                queued.length - repeated, &queued.arrival)
    free(queued)


cdef inline void catch_up(Streams* streams, Connection* connection, int sender, int64_t acked) noexcept nogil:
    """Gives up the holes of the stream before position `acked`, which its receiver had, and hands on what is there."""
    cdef Direction* own = &connection.direction[sender]
    cdef int64_t ahead
    own.beginning = False
    while own.queued != NULL and own.offset < acked and not connection.ended:
        ahead = distance(own.queued.seq, own.next_seq)
        if ahead > 0:
            if ahead > acked - own.offset:
                ahead = acked - own.offset
            declare_gap(streams, connection, sender, own.next_seq + <uint32_t>ahead, &own.queued.arrival)
        else:
            deliver_first(streams, connection, sender)


cdef inline void declare_gap(Streams* streams, Connection* connection, int sender, uint32_t to_seq,
                      Arrival* arrival) noexcept nogil:
    """The bytes up to `to_seq` are missing: as one gap or, where parts of them were received, as several."""
    cdef Direction* own = &connection.direction[sender]
    cdef uint32_t num, end
    cdef int cause
    while distance(to_seq, own.next_seq) > 0 and not connection.ended:
        end = to_seq
        cause = judge_hole(own, &end)
        num = end - own.next_seq
        if cause == GAP_LOST and never_came(own, &connection.direction[1 - sender], end):
            own.lost += num
        own.next_seq = end
        own.evidence_at = 0
        streams.sink.gap(streams.sink.context, connection, sender, arrival, num, cause)
        own.missing += num
        own.offset += num


cdef inline void drain_queue(Streams* streams, Connection* connection, int sender) noexcept nogil:
    """Hands on everything held, with gaps where bytes are missing."""
    cdef Direction* own = &connection.direction[sender]
    own.beginning = False
    while own.queued != NULL and not connection.ended:
        if distance(own.queued.seq, own.next_seq) > 0:
            declare_gap(streams, connection, sender, own.queued.seq, &own.queued.arrival)
        deliver_queued(streams, connection, sender, True)
