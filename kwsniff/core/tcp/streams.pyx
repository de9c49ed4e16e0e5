# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""TCP segments to ordered bytes and explicit gaps, per connection and direction.

Rules
  1. Sequence numbers are compared by signed 32-bit difference (RFC 9293 3.4); a stream position is a 64-bit count.
  2. The first copy of a byte wins. What a retransmission repeats is counted, not delivered again.
  3. A hole is waited for until the receiver has acknowledged it and `reorder_packets` more packets went by (a capture
     may record packets a little out of order), until a named limit is reached, or until the connection ends.
     Then it is delivered as a gap, and the stream continues after it.
  4. Memory held for out-of-order segments is bounded per direction and in all; connections are bounded: those
     that have ended make room, then the one that was silent longest.
  5. Bytes that were held are handed on after those of the other direction that their sender had received by then: when
     both directions have holes, the answer does not pass the question.
  6. A connection that was silent for `idle_seconds` of the capture's time is given up. Whether that is noticed at its own
     next packet, at another connection's or at the end makes no difference to any row.
  7. What a connection is called, and what it gives, depends on its own packets, not on which others are captured.
  8. What a receiver acknowledged was on the wire: how a direction ends, with its connection or with the capture,
     endings.pyx says.
  9. Resets count where their receiver would take them (resets.pyx); what comes behind one is held until other packets
     disprove it. A SYN in the middle of a connection counts from its SYN+ACK, or the segment behind it, on (handshakes.pyx).
 10. Copies of a packet (duplicates.pyx) are counted and change nothing.
 11. What a receiver acknowledged out of order (sack.pxd) was on the wire, too, wherever its acknowledgements end.
 12. Nothing here knows what the bytes mean.
 13. Where analyzers follow connections beside each other, every one hears the time of every packet, so that each ends
     its own when one analyzer of all had; `place` says where that is, `alone` that it may have been elsewhere.

    next_seq v        held          held
    ---------[ hole ][######][hole][####]
             ^ offset (64-bit)

A connection without a handshake begins, in each direction, at the number that a segment without payload showed, or at the
lowest payload byte of the first packets: until its receiver acknowledges more, or `reorder_packets` packets went by.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from kwsniff.core.declared cimport ENDING_EVICTED, ENDING_FIN, ENDING_OPEN, ENDING_RESET, ENDING_REUSED
from kwsniff.core.capture.packets cimport NO_TIME, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN, Segment
from kwsniff.core.bytes.buffer cimport release
from kwsniff.core.bytes.span cimport drop, keep
from kwsniff.core.tcp.acknowledgements cimport take_ack
from kwsniff.core.tcp.midstream cimport begin_earlier, begin_stream, drop_keep_alives
from kwsniff.core.tcp.arrivals cimport GAP_LOST, Arrival
from kwsniff.core.tcp.connection cimport Connection, latest_arrival
from kwsniff.core.tcp.connections cimport (
    add_connection, begin_connection, drop_events, find_connection, forget_ended, link_reset, remove_connection,
)
from kwsniff.core.tcp.stream_table cimport *
from kwsniff.core.tcp.control_block cimport ControlBlock, Direction, block_of
from kwsniff.core.tcp.duplicates cimport is_copy, remember_packet
from kwsniff.core.tcp.handshakes cimport begin_behind_syn, goes_on_elsewhere, opens_anew, pass_over_syn, take_syn
from kwsniff.core.tcp.delivery cimport declare_gap, deliver, deliver_queued, drain_queue, drop_payload
from kwsniff.core.tcp.endings cimport close_if_done, end_connection
from kwsniff.core.tcp.reorder_queue cimport (
    drop_queued, enqueue_segment, exceeds_bounds, held_to, is_queued, is_reached,
)
from kwsniff.core.tcp.fillings cimport fill_held
from kwsniff.core.tcp.progress cimport fits, is_keep_alive, note_sent
from kwsniff.core.tcp.overlap cimport differs, remember
from kwsniff.core.tcp.retransmissions cimport (
    note_again, note_data, note_mended, note_window, was_lost, zero_window_until,
)
from kwsniff.core.tcp.rtt_samples cimport start_rtt_sample
from kwsniff.core.tcp.resets cimport (
    answers_unseen, doubt_reset, end_of, goes_on_after_reset, is_behind_reset, is_reset, is_told_whole, note_ttl, resets,
    waits_behind_reset,
)
from kwsniff.core.tcp.segment_arrivals cimport begin_arrival
from kwsniff.core.tcp.segments cimport WINDOW, distance, source_endpoint
from kwsniff.core.tcp.stall_causes cimport STALL_LEAST, judge_stall, take_again
from kwsniff.core.tcp.window_check cimport doubt

cdef enum:
    STRANGE_SEGMENTS = 3        # this number in a row outside the window: it is the stream that moved

cdef extern from *:
    """
    #define SECOND 1000000000LL
    """
    const int64_t SECOND


cdef bint start_streams(Streams* streams, StreamSink sink, Limits limits, uint64_t seed) noexcept nogil:
    memset(streams, 0, sizeof(Streams))
    streams.sink = sink
    streams.limits = limits
    streams.seed = seed
    streams.block_bytes = sizeof(ControlBlock)
    streams.num_buckets = 1024
    streams.buckets = <Connection**>calloc(streams.num_buckets, sizeof(Connection*))
    return streams.buckets != NULL


cdef void free_streams(Streams* streams) noexcept nogil:
    free_connections(streams, streams.open.oldest)
    free_connections(streams, streams.ended.oldest)
    free(streams.buckets)
    release(&streams.holes)
    memset(streams, 0, sizeof(Streams))


cdef void free_connections(Streams* streams, Connection* connection) noexcept nogil:
    cdef Connection* newer
    while connection != NULL:
        newer = connection.newer
        drop_queued(streams, &block_of(connection).direction[0].queue)
        drop_queued(streams, &block_of(connection).direction[1].queue)
        drop_events(streams, connection)
        free(connection)
        connection = newer


cdef void end_streams(Streams* streams) noexcept nogil:
    """Every open connection delivers what it holds and ends as still open."""
    streams.place[0] = <int64_t>PLACE_LAST
    drop_silent(streams, streams.now, NULL)
    while streams.open.oldest != NULL:
        streams.place[1] = block_of(streams.open.oldest).links.touched
        end_connection(streams, streams.open.oldest, ENDING_OPEN)


# -- taking segments --------------------------------------------------------------------------------------------

cdef void take_segment(Streams* streams, Segment* segment) noexcept nogil:
    cdef int sender = source_endpoint(segment)
    cdef Connection* connection = find_connection(streams, segment, sender)
    cdef Direction* own
    cdef Direction* other
    cdef Arrival arrival
    cdef int i
    if connection == NULL:
        if streams.num >= streams.limits.connections:
            streams.alone = True
            evict_one(streams)
        connection = add_connection(streams, segment, sender)
    if connection == NULL:
        streams.no_memory = True
        streams.sink.dropped(streams.sink.context, streams.capture, DROP_NO_MEMORY, <int64_t>segment.payload.num)
        return
    if silent_too_long(streams, connection, segment.time):
        give_up(streams, connection)
        begin_connection(streams, connection)
    else:
        if is_reset(connection, segment.time):
            end_connection(streams, connection, ENDING_RESET)
        if segment.flags & TCP_SYN and opens_anew(connection, segment, sender):
            begin_again(streams, connection)
    drop_silent(streams, segment.time, connection)
    end_resets(streams, segment.time)
    streams.place[1] = <int64_t>PLACE_OWN
    note_time(streams, segment.time)
    own = &block_of(connection).direction[sender]
    other = &block_of(connection).direction[1 - sender]
    if segment.encapsulation and not connection.encapsulation:
        connection.encapsulation = segment.encapsulation
    note_ttl(own, segment)
    if is_copy(connection, sender, segment) and not differs(&own.recent, segment.seq, segment.payload):
        connection.duplicates += 1
        streams.now = segment.time
        if segment.payload.num:
            streams.sink.dropped(streams.sink.context, streams.capture, DROP_CAPTURED_TWICE,
                                 <int64_t>segment.payload.num)
        return
    if segment.mark:
        remember_packet(own, segment)
    note_packet(connection, own, segment)
    connection.last_capture = streams.capture
    block_of(connection).links.is_behind = connection.last_time < streams.latest
    if connection.ordinal != streams.ordinal:
        connection.ordinal = streams.ordinal
        connection.num_ids = 0
    streams.now = segment.time
    begin_arrival(&arrival, streams, own, other, segment)
    if goes_on_elsewhere(own, other, segment) and not connection.ended:
        begin_again(streams, connection)
    if connection.ended and goes_on_after_reset(connection, sender, segment):
        begin_connection(streams, connection)
        note_packet(connection, own, segment)
        streams.sink.oddity(streams.sink.context, connection, sender, &arrival, ODD_RESET_TAKEN_BACK, 0)
    if connection.ended:
        if segment.length:
            drop_payload(streams, &arrival, DROP_AFTER_END, segment.payload.num)
            streams.sink.oddity(streams.sink.context, connection, sender, &arrival, ODD_AFTER_END, segment.length)
        return
    if segment.flags & TCP_RST:
        take_reset(streams, connection, sender, segment, &arrival)
        return
    doubt(streams, connection, sender, segment, &arrival)
    note_window(streams, connection, sender, segment)
    arrival.zero_window = zero_window_until(own, segment.time) + zero_window_until(other, segment.time)
    if segment.flags & TCP_SYN:
        if own.snd.other_syn and segment.seq == own.snd.other_isn:
            drop_payload(streams, &arrival, DROP_OUT_OF_WINDOW, segment.payload.num)
            return
        take_syn(streams, connection, own, segment, sender)
    if segment.flags & TCP_ACK and fits(own, segment.seq):
        take_ack(streams, connection, sender, segment, &arrival)
        if other.snd.beginning and distance(other.snd.acked, other.snd.next_seq) > 0:
            settle_beginning(streams, connection, 1 - sender)
    if own.snd.beginning and connection.packets - own.snd.begun_at >= streams.limits.reorder_packets:
        settle_beginning(streams, connection, sender)
    if segment.length and is_keep_alive(own, segment):
        drop_payload(streams, &arrival, DROP_KEEP_ALIVE, segment.payload.num)
    elif segment.length:
        take_payload(streams, connection, sender, segment, &arrival)
        note_data(own, segment)
        if own.snd.other_syn and not connection.ended:
            pass_over_syn(streams, connection, sender, &arrival)
    elif not segment.flags & TCP_SYN:
        note_sent(own, segment, segment.seq)
    if block_of(connection).direction[1 - sender].snd.acked_known and not connection.ended:
        check_patience(streams, connection, 1 - sender, &arrival)
    if own.queue.first != NULL:
        check_patience(streams, connection, sender, &arrival)
    if segment.flags & TCP_FIN and not connection.ended:
        take_fin(connection, own, segment, sender)
        if own.snd.beginning:
            settle_beginning(streams, connection, sender)
    if block_of(connection).reset.by >= 0 and doubt_reset(streams, connection, sender, segment, &arrival):
        for i in range(2):
            if has_next(&block_of(connection).direction[i]) and not connection.ended:
                deliver_queued(streams, connection, i, True)
    close_if_done(streams, connection)


cdef void take_time(Streams* streams, int64_t time) noexcept nogil:
    """A segment of a connection that another analyzer follows: what its time says of those that are followed here."""
    streams.place[1] = <int64_t>PLACE_FIRST
    drop_silent(streams, time, NULL)
    end_resets(streams, time)
    note_time(streams, time)
    streams.now = time


cdef inline void note_time(Streams* streams, int64_t time) noexcept nogil:
    if time == NO_TIME:
        streams.alone = True
    elif time > streams.latest:
        streams.latest = time


cdef inline void end_resets(Streams* streams, int64_t time) noexcept nogil:
    while streams.first_reset != NULL and is_reset(streams.first_reset, time):
        streams.place[1] = <int64_t>PLACE_RESETS + block_of(streams.first_reset).links.reset_touched
        end_connection(streams, streams.first_reset, ENDING_RESET)


cdef inline bint silent_too_long(Streams* streams, Connection* connection, int64_t time) noexcept nogil:
    return (connection.last_time != NO_TIME and time != NO_TIME
            and time - connection.last_time > streams.limits.idle_seconds * SECOND)


cdef void drop_silent(Streams* streams, int64_t time, Connection* spared) noexcept nogil:
    """Gives up connections that were silent for too long by the capture's own clock, and forgets ended ones."""
    if streams.ended.oldest != NULL:
        forget_ended(streams, time)
    while (streams.open.oldest != NULL and streams.open.oldest != spared
            and silent_too_long(streams, streams.open.oldest, time)):
        streams.place[1] = block_of(streams.open.oldest).links.touched
        if block_of(streams.open.oldest).links.is_behind:
            streams.alone = True        # one that was silent for less long may be before it
        evict(streams, streams.open.oldest)


cdef bint evict_one(Streams* streams) noexcept nogil:
    """Of the connections that have ended, or else of the others, the one that was silent longest. Whether it was one of
    the others."""
    if streams.ended.oldest != NULL:
        remove_connection(streams, streams.ended.oldest)
        return False
    if streams.open.oldest == NULL:
        return False
    evict(streams, streams.open.oldest)
    return True


cdef void evict(Streams* streams, Connection* connection) noexcept nogil:
    """Ends a connection before its time, and forgets it."""
    give_up(streams, connection)
    remove_connection(streams, connection)


cdef void give_up(Streams* streams, Connection* connection) noexcept nogil:
    cdef Arrival arrival
    if connection.ended:
        return
    if block_of(connection).reset.by < 0:
        arrival = latest_arrival(connection)
        streams.sink.oddity(streams.sink.context, connection, 0, &arrival, ODD_EVICTED, connection.packets)
    end_connection(streams, connection, ENDING_EVICTED)


cdef void begin_again(Streams* streams, Connection* connection) noexcept nogil:
    """The same addresses and ports carry another connection now, whose SYN may have come already."""
    cdef bint[2] with_syn = [block_of(connection).direction[0].snd.other_syn, block_of(connection).direction[1].snd.other_syn]
    block_of(connection).direction[0].snd.other_syn = False
    block_of(connection).direction[1].snd.other_syn = False
    end_connection(streams, connection, ENDING_REUSED)
    block_of(connection).direction[0].snd.other_syn = with_syn[0]
    block_of(connection).direction[1].snd.other_syn = with_syn[1]
    begin_behind_syn(streams, connection)


cdef inline bint has_next(Direction* own) noexcept nogil:
    """Whether what comes next is held already."""
    return is_reached(&own.queue, own.snd.next_seq)


cdef inline void note_packet(Connection* connection, Direction* own, Segment* segment) noexcept nogil:
    connection.packets += 1
    own.traffic.packets += 1
    if connection.first_frame == 0:
        connection.first_frame = segment.frame
        connection.first_time = segment.time
    connection.last_frame = segment.frame
    if segment.time > connection.last_time:
        connection.last_time = segment.time


cdef void take_reset(Streams* streams, Connection* connection, int sender, Segment* segment,
                     Arrival* arrival) noexcept nogil:
    """What a reset carries is a text about it (RFC 9293 3.5.3), not the stream's."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Direction* other = &block_of(connection).direction[1 - sender]
    cdef int32_t ahead
    cdef int i
    drop_payload(streams, arrival, DROP_AFTER_END, segment.payload.num)
    if not resets(own, other, segment):
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_RESET,
                            distance(segment.seq, own.snd.next_seq if own.snd.known else own.snd.acked))
        return
    if waits_behind_reset(connection):
        # A side that is gone answers every segment that was in flight with another one.
        if sender == block_of(connection).reset.sender and answers_unseen(own, other, segment):
            block_of(connection).reset.answers_unseen = True
        return
    if segment.flags & TCP_ACK:
        take_ack(streams, connection, sender, segment, arrival)
    block_of(connection).reset.sender = sender
    block_of(connection).reset.seq = segment.seq
    block_of(connection).reset.answers_unseen = answers_unseen(own, other, segment)
    block_of(connection).reset.time = segment.time
    block_of(connection).reset.frame = segment.frame
    block_of(connection).reset.capture = streams.capture
    block_of(connection).reset.marks = own.reset_marks
    note_closer(connection, segment, sender)
    ahead = distance(segment.seq, end_of(own))
    for i in range(2):
        if ahead <= 0 and block_of(connection).direction[i].snd.beginning:
            settle_beginning(streams, connection, i)
        block_of(connection).direction[i].snd.at_reset = end_of(&block_of(connection).direction[i])
    if own.snd.fin and other.snd.fin:
        end_connection(streams, connection, ENDING_FIN)
    elif not own.snd.known or ahead <= 0 and (not other.snd.known or block_of(connection).reset.by >= 0
                                              or is_told_whole(own, other)):
        # Who acknowledged something was accepted, though the capture may have lost with what. So was who is reset with
        # another number than a SYN has to be: 0, with an acknowledgement (RFC 9293 3.10.7.1).
        connection.refused = (sender != connection.opener and other.snd.syn and not own.snd.syn and not own.snd.acked_known
                              and segment.flags & TCP_ACK and segment.seq == 0)
        end_connection(streams, connection, ENDING_RESET)
    elif block_of(connection).reset.by < 0:
        block_of(connection).reset.by = sender
        block_of(connection).reset.ahead = ahead if ahead > 0 else 0
        block_of(connection).reset.since = segment.time
        link_reset(streams, connection)


cdef void settle_beginning(Streams* streams, Connection* connection, int sender) noexcept nogil:
    block_of(connection).direction[sender].snd.beginning = False
    drop_keep_alives(streams, &block_of(connection).direction[sender], &block_of(connection).direction[1 - sender])
    deliver_queued(streams, connection, sender, True)


cdef void note_closer(Connection* connection, Segment* segment, int sender) noexcept nogil:
    """The first FIN or RST says who closes."""
    if block_of(connection).closing.closer < 0:
        block_of(connection).closing.closer = sender
        block_of(connection).closing.close_frame = segment.frame
        block_of(connection).closing.close_time = segment.time


cdef void take_fin(Connection* connection, Direction* own, Segment* segment, int sender) noexcept nogil:
    cdef uint32_t end = segment.seq + segment.length
    if own.snd.known and (distance(end, own.snd.next_seq) < 0 or not fits(own, end)):
        return                  # an old one, or none of this stream's
    own.snd.fin = True
    own.snd.fin_seq = end
    own.snd.latest_ack = segment.ack
    note_sent(own, segment, end)
    if block_of(connection).closing.fin_by < 0:
        block_of(connection).closing.fin_by = sender
        block_of(connection).closing.fin_frame = segment.frame
        block_of(connection).closing.fin_time = segment.time
    note_closer(connection, segment, sender)
    if not own.snd.known:           # a direction whose payload was never captured still ends here
        own.snd.fin_done = True


cdef void take_payload(Streams* streams, Connection* connection, int sender, Segment* segment,
                       Arrival* arrival) noexcept nogil:
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef int32_t ahead
    cdef uint32_t repeated
    if segment.length > own.traffic.largest_sent:
        own.traffic.largest_sent = segment.length
    if not own.snd.known:
        begin_stream(connection, own, &block_of(connection).direction[1 - sender], segment)
    ahead = distance(segment.seq, own.snd.next_seq)
    if waits_behind_reset(connection) and -WINDOW <= ahead <= WINDOW and is_behind_reset(own, segment.seq, segment.length):
        hold_behind_reset(streams, connection, sender, segment, ahead, arrival)
        return
    if own.snd.beginning and -WINDOW <= ahead <= WINDOW:
        if ahead < 0:
            begin_earlier(own, &block_of(connection).direction[1 - sender], segment.seq)
        queue_segment(streams, connection, sender, segment, arrival)
        return
    if ahead == 0:
        own.check.strange = 0
        remember(&own.recent, segment.seq, segment.length, segment.payload)
        start_rtt_sample(own, segment, segment.length)
        if was_lost(own, &block_of(connection).direction[1 - sender], segment):
            take_lost(streams, connection, sender, segment, arrival)
        elif own.queue.first != NULL or segment.time > own.trips.sent_at + STALL_LEAST:
            judge_stall(streams, connection, sender, segment, arrival, False)
        if own.queue.first != NULL:
            note_mended(own, segment, arrival)
        deliver(streams, connection, sender, segment.payload, segment.length, arrival)
        if own.queue.first != NULL:
            deliver_queued(streams, connection, sender, False)
        return
    if ahead < -WINDOW or ahead > WINDOW:
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_OUT_OF_WINDOW, ahead)
        own.check.strange += 1
        if own.check.strange >= STRANGE_SEGMENTS and not waits_behind_reset(connection):
            rebase(streams, connection, sender, segment, arrival)
        else:
            drop_payload(streams, arrival, DROP_OUT_OF_WINDOW, segment.payload.num)
        return
    own.check.strange = 0
    if ahead > 0:
        take_ahead(streams, connection, sender, segment, arrival)
        return
    repeated = <uint32_t>(-ahead)
    if repeated >= segment.length:
        pass_over_repeated(streams, connection, sender, segment, ahead, arrival)
        return
    own.traffic.retransmitted += repeated
    take_again(streams, connection, sender, segment, arrival, ahead, repeated, False)
    drop_payload(streams, arrival, DROP_RETRANSMITTED, keep(segment.payload, repeated).num)
    streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_OVERLAP, repeated)
    if differs(&own.recent, segment.seq, keep(segment.payload, repeated)):
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_CONFLICT, repeated)
    if own.queue.first != NULL:
        note_mended(own, segment, arrival)
    deliver(streams, connection, sender, drop(segment.payload, repeated), segment.length - repeated, arrival)
    if own.queue.first != NULL:
        deliver_queued(streams, connection, sender, False)


cdef void take_ahead(Streams* streams, Connection* connection, int sender, Segment* segment,
                     Arrival* arrival) noexcept nogil:
    """It waits for those in front of it, unless another place has these."""
    if not streams.num_fills or not fill_held(streams, connection, sender, arrival, segment.seq):
        block_of(connection).direction[sender].traffic.out_of_order += 1
        queue_segment(streams, connection, sender, segment, arrival)
    elif connection.ended:
        drop_payload(streams, arrival, DROP_AFTER_END, segment.payload.num)
    else:
        take_payload(streams, connection, sender, segment, arrival)


cdef void take_lost(Streams* streams, Connection* connection, int sender, Segment* segment,
                    Arrival* arrival) noexcept nogil:
    """The first copy that is seen of what was sent again."""
    cdef Direction* own = &block_of(connection).direction[sender]
    own.traffic.retransmitted += <int64_t>segment.length
    own.traffic.lost_before += <int64_t>segment.length
    own.traffic.retransmissions += 1
    arrival.retransmissions += 1
    take_again(streams, connection, sender, segment, arrival, 0, segment.length, True)


cdef void pass_over_repeated(Streams* streams, Connection* connection, int sender, Segment* segment, int32_t ahead,
                             Arrival* arrival) noexcept nogil:
    cdef Direction* own = &block_of(connection).direction[sender]
    own.traffic.retransmitted += segment.length
    own.traffic.retransmissions += 1
    own.trips.timed = False
    note_again(own, segment, ahead)
    take_again(streams, connection, sender, segment, arrival, ahead, segment.length, False)
    if differs(&own.recent, segment.seq, segment.payload):
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_CONFLICT, segment.length)
    drop_payload(streams, arrival, DROP_RETRANSMITTED, segment.payload.num)


cdef void hold_behind_reset(Streams* streams, Connection* connection, int sender, Segment* segment, int32_t ahead,
                            Arrival* arrival) noexcept nogil:
    """Of each byte the first copy, as if it had been handed on."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Segment rest = segment[0]
    cdef int32_t repeated = distance(held_to(&own.queue, own.snd.next_seq), segment.seq)
    if repeated >= <int64_t>segment.length:
        pass_over_repeated(streams, connection, sender, segment, ahead, arrival)
        return
    if repeated > 0:
        own.traffic.retransmitted += repeated
        take_again(streams, connection, sender, segment, arrival, ahead, repeated, False)
        drop_payload(streams, arrival, DROP_RETRANSMITTED, keep(segment.payload, repeated).num)
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_OVERLAP, repeated)
        rest.seq += <uint32_t>repeated
        rest.length -= <uint32_t>repeated
        rest.payload = drop(segment.payload, repeated)
    queue_segment(streams, connection, sender, &rest, arrival)


cdef void rebase(Streams* streams, Connection* connection, int sender, Segment* segment,
                 Arrival* arrival) noexcept nogil:
    cdef Direction* own = &block_of(connection).direction[sender]
    own.check.strange = 0
    drain_queue(streams, connection, sender)
    if connection.ended:
        return
    streams.sink.gap(streams.sink.context, connection, sender, arrival, -1, GAP_LOST)
    own.snd.next_seq = segment.seq
    own.snd.acked_known = False
    own.sack.num = 0
    own.snd.sent_known = False
    deliver(streams, connection, sender, segment.payload, segment.length, arrival)


cdef void queue_segment(Streams* streams, Connection* connection, int sender, Segment* segment,
                        Arrival* arrival) noexcept nogil:
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef bint is_again
    if exceeds_bounds(streams, &own.queue, segment.length):
        if waits_behind_reset(connection):
            end_connection(streams, connection, ENDING_RESET)
            drop_payload(streams, arrival, DROP_AFTER_END, segment.payload.num)
            streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_AFTER_END, segment.length)
            return
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_HELD_LIMIT, own.queue.bytes)
        drain_queue(streams, connection, sender)
        if not connection.ended:
            take_payload_after_drain(streams, connection, sender, segment, arrival)
        return
    is_again = segment.length > 1 and is_queued(&own.queue, segment.seq, segment.length)
    own.traffic.retransmissions += is_again
    drop_payload(streams, arrival, DROP_NO_MEMORY, enqueue_segment(streams, &own.queue, segment, arrival, is_again))


cdef void take_payload_after_drain(Streams* streams, Connection* connection, int sender, Segment* segment,
                                   Arrival* arrival) noexcept nogil:
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef int32_t ahead = distance(segment.seq, own.snd.next_seq)
    if ahead > 0:
        declare_gap(streams, connection, sender, segment.seq, arrival)
        ahead = 0
    if connection.ended or <uint32_t>(-ahead) >= segment.length:
        drop_payload(streams, arrival, DROP_RETRANSMITTED, segment.payload.num)
        return
    drop_payload(streams, arrival, DROP_RETRANSMITTED, keep(segment.payload, <uint32_t>(-ahead)).num)
    deliver(streams, connection, sender, drop(segment.payload, <uint32_t>(-ahead)),
            segment.length - <uint32_t>(-ahead), arrival)


cdef inline void check_patience(Streams* streams, Connection* connection, int sender, Arrival* arrival) noexcept nogil:
    """Gives a hole up that the receiver has acknowledged and that the capture has not shown for long enough."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef uint32_t to_seq
    if waits_behind_reset(connection):
        return
    if not own.snd.known or own.snd.beginning or not own.snd.acked_known or distance(own.snd.acked, own.snd.next_seq) <= 0:
        own.queue.evidence_at = 0
        return
    to_seq = own.snd.acked
    if own.snd.fin and to_seq == own.snd.fin_seq + 1:
        to_seq = own.snd.fin_seq        # a FIN takes a number but no byte
    if distance(to_seq, own.snd.next_seq) <= 0 or distance(to_seq, own.snd.next_seq) > WINDOW:
        return
    if own.queue.evidence_at == 0:
        own.queue.evidence_at = connection.packets
        return
    if connection.packets - own.queue.evidence_at < streams.limits.reorder_packets:
        return
    if own.queue.first != NULL and distance(to_seq, own.queue.first.seq) > 0:
        to_seq = own.queue.first.seq
    declare_gap(streams, connection, sender, to_seq, arrival)
    deliver_queued(streams, connection, sender, True)
