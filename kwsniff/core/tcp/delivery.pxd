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
from kwsniff.core.tcp.arrivals cimport GAP_CUT, GAP_LOST, Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stream_table cimport DROP_FILLED, DROP_RETRANSMITTED, ODD_CONFLICT, ODD_FILLED, Streams
from kwsniff.core.tcp.control_block cimport Direction, block_of
from kwsniff.core.tcp.holes cimport Fill, find_fill, hole_end, is_of, note_hole
from kwsniff.core.tcp.reorder_queue cimport QueuedSegment
from kwsniff.core.tcp.reorder_queue cimport unhold_first
from kwsniff.core.tcp.overlap cimport differs, remember
from kwsniff.core.tcp.retransmissions cimport tell_event
from kwsniff.core.tcp.resets cimport is_behind_reset, waits_behind_reset
from kwsniff.core.tcp.segments cimport WINDOW, distance
from kwsniff.core.tcp.sack cimport judge_hole, never_came


cdef inline void drop_payload(Streams* streams, Arrival* arrival, int cause, size_t num) noexcept nogil:
    if num:
        streams.sink.dropped(streams.sink.context, arrival.capture, cause, <int64_t>num)


cdef inline void deliver(Streams* streams, Connection* connection, int sender, Span payload, uint32_t length,
                  Arrival* arrival) noexcept nogil:
    """Hands `payload` on as the next bytes of the stream, and what is missing of `length` as a gap. While a sink
    runs, `offset` is the position of the first byte it is handed."""
    cdef Direction* own = &block_of(connection).direction[sender]
    own.snd.next_seq += length
    arrival.end = own.snd.offset + length
    if own.snd.acked_known and 0 < distance(own.snd.next_seq, own.snd.acked) <= WINDOW:
        if own.snd.next_seq - own.snd.acked > own.snd.flight:
            own.snd.flight = own.snd.next_seq - own.snd.acked
    if payload.num:
        streams.sink.bytes(streams.sink.context, connection, sender, arrival, payload)
        own.traffic.bytes += <int64_t>payload.num
        own.snd.offset += <int64_t>payload.num
    if payload.num < length:
        streams.sink.gap(streams.sink.context, connection, sender, arrival, <int64_t>(length - payload.num), GAP_CUT)
        own.traffic.missing += <int64_t>(length - payload.num)
        own.snd.offset += <int64_t>(length - payload.num)


cdef inline void deliver_queued(Streams* streams, Connection* connection, int sender, bint given_up) noexcept nogil:
    """Hands on every held segment that the stream has reached, by itself or because a hole was given up."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Direction* other = &block_of(connection).direction[1 - sender]
    while own.queue.first != NULL and not connection.ended and distance(own.queue.first.seq, own.snd.next_seq) <= 0:
        if waits_behind_reset(connection) and is_behind_reset(own, own.queue.first.seq, own.queue.first.length):
            break
        if given_up and own.queue.first.arrival.acked > other.snd.offset and not other.queue.catching_up:
            own.queue.catching_up = True
            catch_up(streams, connection, 1 - sender, own.queue.first.arrival.acked)
            own.queue.catching_up = False
        deliver_first(streams, connection, sender)
    if own.queue.first != NULL and (not own.queue.mending or own.queue.first.arrival.time > own.queue.hole_since):
        own.queue.hole_since = own.queue.first.arrival.time
    own.queue.mending = False
    own.queue.evidence_at = 0
    if given_up and not other.queue.catching_up and not other.snd.beginning and other.queue.first != NULL and distance(other.queue.first.seq, other.snd.next_seq) <= 0:
        deliver_queued(streams, connection, 1 - sender, False)


cdef inline void deliver_first(Streams* streams, Connection* connection, int sender) noexcept nogil:
    """Hands on the first held segment, which the stream has reached."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef QueuedSegment* queued = unhold_first(streams, &own.queue)
    cdef uint32_t repeated = own.snd.next_seq - queued.seq
    if own.queue.mending and streams.now != NO_TIME:
        # Times may go back in a capture: what is handed on now was there neither before itself nor before what it follows.
        if streams.now > queued.arrival.ready:
            queued.arrival.ready = streams.now
        if own.queue.ready > queued.arrival.ready:
            queued.arrival.ready = own.queue.ready
        queued.arrival.mended = own.queue.mended
        queued.arrival.retransmissions = own.traffic.retransmissions + block_of(connection).direction[1 - sender].traffic.retransmissions
    elif queued.arrival.ready != NO_TIME and own.queue.ready > queued.arrival.ready:
        # A hole before it was given up, another one was not: what it follows came later than itself.
        queued.arrival.mended += own.queue.ready - queued.arrival.ready
        queued.arrival.ready = own.queue.ready
    if repeated:
        tell_event(streams, connection, TCP_EVENT_RETRANSMISSION, sender, sender, own.snd.offset - repeated,
                   repeated if repeated < queued.length else queued.length, -1, queued.arrival.time, queued.arrival.frame,
                   queued.arrival.capture)
    if repeated >= queued.length:
        own.traffic.retransmitted += queued.length
        own.traffic.retransmissions += not queued.is_rest and not queued.is_again
        if differs(&own.recent, queued.seq, make_span(queued.data, queued.captured)):
            streams.sink.oddity(streams.sink.context, connection, sender, &queued.arrival, ODD_CONFLICT, queued.length)
        drop_payload(streams, &queued.arrival, DROP_RETRANSMITTED, queued.captured)
    else:
        own.traffic.retransmitted += repeated
        if repeated and differs(&own.recent, queued.seq, keep(make_span(queued.data, queued.captured), repeated)):
            streams.sink.oddity(streams.sink.context, connection, sender, &queued.arrival, ODD_CONFLICT, repeated)
        drop_payload(streams, &queued.arrival, DROP_RETRANSMITTED, repeated if repeated < queued.captured else queued.captured)
        if repeated == 0:
            remember(&own.recent, queued.seq, queued.length, make_span(queued.data, queued.captured))
        own.queue.ready = queued.arrival.ready
        deliver(streams, connection, sender, drop(make_span(queued.data, queued.captured), repeated),
                queued.length - repeated, &queued.arrival)
    free(queued)


cdef inline void catch_up(Streams* streams, Connection* connection, int sender, int64_t acked) noexcept nogil:
    """Gives up the holes of the stream before position `acked`, which its receiver had, and hands on what is there."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef int64_t ahead
    own.snd.beginning = False
    while own.queue.first != NULL and own.snd.offset < acked and not connection.ended:
        ahead = distance(own.queue.first.seq, own.snd.next_seq)
        if ahead > 0:
            if ahead > acked - own.snd.offset:
                ahead = acked - own.snd.offset
            declare_gap(streams, connection, sender, own.snd.next_seq + <uint32_t>ahead, &own.queue.first.arrival)
        else:
            deliver_first(streams, connection, sender)


cdef inline bint fill_hole(Streams* streams, Connection* connection, int sender, Arrival* arrival, uint32_t to_seq) noexcept nogil:
    """Hands on what is known of the missing bytes from the next one on, before `to_seq`; whether there is any."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Direction* other = &block_of(connection).direction[1 - sender]
    cdef Arrival filled
    cdef Fill* fill
    cdef int64_t number, skipped, num
    cdef bint any = False
    while not connection.ended and distance(to_seq, own.snd.next_seq) > 0:
        number = find_fill(streams, connection, sender, own.snd.offset)
        fill = &(<Fill*>streams.fills)[number]
        if not is_of(streams, number, connection, sender) or fill.offset > own.snd.offset:
            break
        skipped = own.snd.offset - fill.offset
        num = fill.num - skipped
        if num > distance(to_seq, own.snd.next_seq):
            num = distance(to_seq, own.snd.next_seq)
        filled = arrival[0]
        filled.time = filled.ready = NO_TIME
        filled.acked = -1
        if fill.ack >= 0 and other.snd.known:
            filled.acked = other.snd.offset + distance(<uint32_t>fill.ack, other.snd.next_seq)
        filled.late = 0
        filled.mended = own.queue.mended
        filled.mended_back = other.queue.mended
        if streams.now > own.trips.sent_at:
            own.trips.sent_at = streams.now
        streams.sink.dropped(streams.sink.context, arrival.capture, DROP_FILLED, num)
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_FILLED, num)
        deliver(streams, connection, sender, keep(drop(streams.filled, <size_t>(fill.begin + skipped)), <size_t>num),
                <uint32_t>num, &filled)
        any = True
    return any


cdef inline void declare_gap(Streams* streams, Connection* connection, int sender, uint32_t to_seq,
                      Arrival* arrival) noexcept nogil:
    """The bytes up to `to_seq` are missing: as one gap or, where parts of them were received, as several."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef uint32_t num, end
    cdef int cause
    while distance(to_seq, own.snd.next_seq) > 0 and not connection.ended:
        end = to_seq
        if streams.num_fills:
            if fill_hole(streams, connection, sender, arrival, to_seq):
                continue
            end = hole_end(streams, connection, sender, to_seq)
        cause = judge_hole(&own.sack, &own.snd, &end)
        num = end - own.snd.next_seq
        if cause == GAP_LOST and never_came(&own.sack, &own.snd, &block_of(connection).direction[1 - sender].snd, own.dup_acks.num > 0, end):
            own.traffic.lost += num
        if streams.most_holes:
            note_hole(streams, connection, sender, num, cause)
        own.snd.next_seq = end
        own.queue.evidence_at = 0
        streams.sink.gap(streams.sink.context, connection, sender, arrival, num, cause)
        own.traffic.missing += num
        own.snd.offset += num


cdef inline void drain_queue(Streams* streams, Connection* connection, int sender) noexcept nogil:
    """Hands on everything held, with gaps where bytes are missing."""
    cdef Direction* own = &block_of(connection).direction[sender]
    own.snd.beginning = False
    while own.queue.first != NULL and not connection.ended:
        if distance(own.queue.first.seq, own.snd.next_seq) > 0:
            declare_gap(streams, connection, sender, own.queue.first.seq, &own.queue.first.arrival)
        deliver_queued(streams, connection, sender, True)
