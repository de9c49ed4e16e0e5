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
from kwsniff.core.bytes.span cimport drop, keep
from kwsniff.core.tcp.acknowledgements cimport take_ack
from kwsniff.core.tcp.arrivals cimport begin_arrival, latest_arrival
from kwsniff.core.tcp.midstream cimport begin_earlier, begin_stream, drop_keep_alives
from kwsniff.core.tcp.connections cimport *
from kwsniff.core.tcp.duplicates cimport is_copy, remember_packet
from kwsniff.core.tcp.handshakes cimport begin_behind_syn, goes_on_elsewhere, opens_anew, pass_over_syn, take_syn
from kwsniff.core.tcp.delivery cimport declare_gap, deliver, deliver_queued, drain_queue, drop_payload
from kwsniff.core.tcp.endings cimport end_connection
from kwsniff.core.tcp.reorder_queue cimport drop_queued, held_to, is_queued, is_reached, enqueue_segment
from kwsniff.core.tcp.progress cimport WINDOW, fits, is_keep_alive, note_sent
from kwsniff.core.tcp.overlap cimport differs, remember
from kwsniff.core.tcp.retransmissions cimport (
    note_again, note_mended, note_window, tell_again, time_segment,
    was_lost, zero_window_until,
)
from kwsniff.core.tcp.resets cimport (
    answers_unseen, doubt_reset, end_of, goes_on_after_reset, is_behind_reset, is_reset, is_told_whole, note_ttl, resets,
    waits_behind_reset,
)
from kwsniff.core.tcp.segments cimport distance, source_endpoint
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
    streams.num_buckets = 1024
    streams.buckets = <Connection**>calloc(streams.num_buckets, sizeof(Connection*))
    return streams.buckets != NULL


cdef void free_streams(Streams* streams) noexcept nogil:
    free_connections(streams, streams.open.oldest)
    free_connections(streams, streams.ended.oldest)
    free(streams.buckets)
    memset(streams, 0, sizeof(Streams))


cdef void free_connections(Streams* streams, Connection* connection) noexcept nogil:
    cdef Connection* newer
    while connection != NULL:
        newer = connection.newer
        drop_queued(streams, &connection.direction[0])
        drop_queued(streams, &connection.direction[1])
        drop_events(streams, connection)
        free(connection)
        connection = newer


cdef void end_streams(Streams* streams) noexcept nogil:
    """Every open connection delivers what it holds and ends as still open."""
    streams.place[0] = <int64_t>PLACE_LAST
    drop_silent(streams, streams.now, NULL)
    while streams.open.oldest != NULL:
        streams.place[1] = streams.open.oldest.touched
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
    own = &connection.direction[sender]
    other = &connection.direction[1 - sender]
    if segment.encapsulation and not connection.encapsulation:
        connection.encapsulation = segment.encapsulation
    note_ttl(own, segment)
    if is_copy(connection, sender, segment) and not differs(own, segment.seq, segment.payload):
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
    connection.is_behind = connection.last_time < streams.latest
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
        if own.other_syn and segment.seq == own.other_isn:
            drop_payload(streams, &arrival, DROP_OUT_OF_WINDOW, segment.payload.num)
            return
        take_syn(streams, connection, own, segment, sender)
    if segment.flags & TCP_ACK and fits(own, segment.seq):
        take_ack(streams, connection, sender, segment, &arrival)
        if other.beginning and distance(other.acked, other.next_seq) > 0:
            settle_beginning(streams, connection, 1 - sender)
    if own.beginning and connection.packets - own.begun_at >= streams.limits.reorder_packets:
        settle_beginning(streams, connection, sender)
    if segment.length and is_keep_alive(own, segment):
        drop_payload(streams, &arrival, DROP_KEEP_ALIVE, segment.payload.num)
    elif segment.length:
        take_payload(streams, connection, sender, segment, &arrival)
        own.sent_at = segment.time
        own.told_ack = segment.ack
        if own.other_syn and not connection.ended:
            pass_over_syn(streams, connection, sender, &arrival)
    elif not segment.flags & TCP_SYN:
        note_sent(own, segment, segment.seq)
    if connection.direction[1 - sender].acked_known and not connection.ended:
        check_patience(streams, connection, 1 - sender, &arrival)
    if own.queued != NULL:
        check_patience(streams, connection, sender, &arrival)
    if segment.flags & TCP_FIN and not connection.ended:
        take_fin(connection, own, segment, sender)
        if own.beginning:
            settle_beginning(streams, connection, sender)
    if connection.reset_by >= 0 and doubt_reset(streams, connection, sender, segment, &arrival):
        for i in range(2):
            if is_reached(&connection.direction[i]) and not connection.ended:
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
        streams.place[1] = <int64_t>PLACE_RESETS + streams.first_reset.reset_touched
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
        streams.place[1] = streams.open.oldest.touched
        if streams.open.oldest.is_behind:
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
    if connection.reset_by < 0:
        arrival = latest_arrival(connection)
        streams.sink.oddity(streams.sink.context, connection, 0, &arrival, ODD_EVICTED, connection.packets)
    end_connection(streams, connection, ENDING_EVICTED)


cdef void begin_again(Streams* streams, Connection* connection) noexcept nogil:
    """The same addresses and ports carry another connection now, whose SYN may have come already."""
    cdef bint[2] with_syn = [connection.direction[0].other_syn, connection.direction[1].other_syn]
    connection.direction[0].other_syn = False
    connection.direction[1].other_syn = False
    end_connection(streams, connection, ENDING_REUSED)
    connection.direction[0].other_syn = with_syn[0]
    connection.direction[1].other_syn = with_syn[1]
    begin_behind_syn(streams, connection)


cdef inline void note_packet(Connection* connection, Direction* own, Segment* segment) noexcept nogil:
    connection.packets += 1
    own.packets += 1
    if connection.first_frame == 0:
        connection.first_frame = segment.frame
        connection.first_time = segment.time
    connection.last_frame = segment.frame
    if segment.time > connection.last_time:
        connection.last_time = segment.time


cdef void take_reset(Streams* streams, Connection* connection, int sender, Segment* segment,
                     Arrival* arrival) noexcept nogil:
    """What a reset carries is a text about it (RFC 9293 3.5.3), not the stream's."""
    cdef Direction* own = &connection.direction[sender]
    cdef Direction* other = &connection.direction[1 - sender]
    cdef int32_t ahead
    cdef int i
    drop_payload(streams, arrival, DROP_AFTER_END, segment.payload.num)
    if not resets(own, other, segment):
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_RESET,
                            distance(segment.seq, own.next_seq if own.known else own.acked))
        return
    if waits_behind_reset(connection):
        # A side that is gone answers every segment that was in flight with another one.
        if sender == connection.reset_sender and answers_unseen(own, other, segment):
            connection.reset_answers_unseen = True
        return
    if segment.flags & TCP_ACK:
        take_ack(streams, connection, sender, segment, arrival)
    connection.reset_sender = sender
    connection.reset_seq = segment.seq
    connection.reset_answers_unseen = answers_unseen(own, other, segment)
    connection.reset_at = segment.time
    connection.reset_frame = segment.frame
    connection.reset_capture = streams.capture
    connection.reset_marks = own.reset_marks
    if connection.closer < 0:
        connection.closer = sender
        connection.close_frame = segment.frame
        connection.close_time = segment.time
    ahead = distance(segment.seq, end_of(own))
    for i in range(2):
        if ahead <= 0 and connection.direction[i].beginning:
            settle_beginning(streams, connection, i)
        connection.direction[i].at_reset = end_of(&connection.direction[i])
    if own.fin and other.fin:
        end_connection(streams, connection, ENDING_FIN)
    elif not own.known or ahead <= 0 and (not other.known or connection.reset_by >= 0 or is_told_whole(own, other)):
        # Who acknowledged something was accepted, though the capture may have lost with what. So was who is reset with
        # another number than a SYN has to be: 0, with an acknowledgement (RFC 9293 3.10.7.1).
        connection.refused = (sender != connection.opener and other.syn and not own.syn and not own.acked_known
                              and segment.flags & TCP_ACK and segment.seq == 0)
        end_connection(streams, connection, ENDING_RESET)
    elif connection.reset_by < 0:
        connection.reset_by = sender
        connection.reset_ahead = ahead if ahead > 0 else 0
        connection.reset_time = segment.time
        link_reset(streams, connection)


cdef void settle_beginning(Streams* streams, Connection* connection, int sender) noexcept nogil:
    connection.direction[sender].beginning = False
    drop_keep_alives(streams, &connection.direction[sender], &connection.direction[1 - sender])
    deliver_queued(streams, connection, sender, True)


cdef void take_fin(Connection* connection, Direction* own, Segment* segment, int sender) noexcept nogil:
    cdef uint32_t end = segment.seq + segment.length
    if own.known and (distance(end, own.next_seq) < 0 or not fits(own, end)):
        return                  # an old one, or none of this stream's
    own.fin = True
    own.fin_seq = end
    own.told_ack = segment.ack
    note_sent(own, segment, end)
    if connection.fin_by < 0:
        connection.fin_by = sender
        connection.fin_frame = segment.frame
        connection.fin_time = segment.time
    if connection.closer < 0:
        connection.closer = sender
        connection.close_frame = segment.frame
        connection.close_time = segment.time
    if not own.known:           # a direction whose payload was never captured still ends here
        own.fin_done = True


cdef void take_payload(Streams* streams, Connection* connection, int sender, Segment* segment,
                       Arrival* arrival) noexcept nogil:
    cdef Direction* own = &connection.direction[sender]
    cdef int32_t ahead
    cdef uint32_t repeated
    if segment.length > own.largest_sent:
        own.largest_sent = segment.length
    if not own.known:
        begin_stream(connection, own, &connection.direction[1 - sender], segment)
    ahead = distance(segment.seq, own.next_seq)
    if waits_behind_reset(connection) and -WINDOW <= ahead <= WINDOW and is_behind_reset(own, segment.seq, segment.length):
        hold_behind_reset(streams, connection, sender, segment, ahead, arrival)
        return
    if own.beginning and -WINDOW <= ahead <= WINDOW:
        if ahead < 0:
            begin_earlier(own, &connection.direction[1 - sender], segment.seq)
        hold(streams, connection, sender, segment, arrival)
        return
    if ahead == 0:
        own.strange = 0
        remember(own, segment.seq, segment.length, segment.payload)
        time_segment(own, segment, segment.length)
        if was_lost(own, &connection.direction[1 - sender], segment):
            take_lost(streams, connection, sender, segment, arrival)
        if own.queued != NULL:
            note_mended(own, segment, arrival)
        deliver(streams, connection, sender, segment.payload, segment.length, arrival)
        if own.queued != NULL:
            deliver_queued(streams, connection, sender, False)
        return
    if ahead < -WINDOW or ahead > WINDOW:
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_OUT_OF_WINDOW, ahead)
        own.strange += 1
        if own.strange >= STRANGE_SEGMENTS and not waits_behind_reset(connection):
            rebase(streams, connection, sender, segment, arrival)
        else:
            drop_payload(streams, arrival, DROP_OUT_OF_WINDOW, segment.payload.num)
        return
    own.strange = 0
    if ahead > 0:
        own.out_of_order += 1
        hold(streams, connection, sender, segment, arrival)
        return
    repeated = <uint32_t>(-ahead)
    if repeated >= segment.length:
        pass_over_repeated(streams, connection, sender, segment, ahead, arrival)
        return
    own.retransmitted += repeated
    tell_again(streams, connection, sender, segment, ahead, repeated)
    drop_payload(streams, arrival, DROP_RETRANSMITTED, keep(segment.payload, repeated).num)
    streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_OVERLAP, repeated)
    if differs(own, segment.seq, keep(segment.payload, repeated)):
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_CONFLICT, repeated)
    if own.queued != NULL:
        note_mended(own, segment, arrival)
    deliver(streams, connection, sender, drop(segment.payload, repeated), segment.length - repeated, arrival)
    if own.queued != NULL:
        deliver_queued(streams, connection, sender, False)


cdef void take_lost(Streams* streams, Connection* connection, int sender, Segment* segment,
                    Arrival* arrival) noexcept nogil:
    """The first copy that is seen of what was sent again."""
    cdef Direction* own = &connection.direction[sender]
    own.retransmitted += <int64_t>segment.length
    own.lost_before += <int64_t>segment.length
    own.retransmissions += 1
    arrival.retransmissions += 1
    tell_again(streams, connection, sender, segment, 0, segment.length)


cdef void pass_over_repeated(Streams* streams, Connection* connection, int sender, Segment* segment, int32_t ahead,
                             Arrival* arrival) noexcept nogil:
    cdef Direction* own = &connection.direction[sender]
    own.retransmitted += segment.length
    own.retransmissions += 1
    own.timed = False
    note_again(own, segment, ahead)
    tell_again(streams, connection, sender, segment, ahead, segment.length)
    if differs(own, segment.seq, segment.payload):
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_CONFLICT, segment.length)
    drop_payload(streams, arrival, DROP_RETRANSMITTED, segment.payload.num)


cdef void hold_behind_reset(Streams* streams, Connection* connection, int sender, Segment* segment, int32_t ahead,
                            Arrival* arrival) noexcept nogil:
    """Of each byte the first copy, as if it had been handed on."""
    cdef Direction* own = &connection.direction[sender]
    cdef Segment rest = segment[0]
    cdef int32_t repeated = distance(held_to(own), segment.seq)
    if repeated >= <int64_t>segment.length:
        pass_over_repeated(streams, connection, sender, segment, ahead, arrival)
        return
    if repeated > 0:
        own.retransmitted += repeated
        tell_again(streams, connection, sender, segment, ahead, repeated)
        drop_payload(streams, arrival, DROP_RETRANSMITTED, keep(segment.payload, repeated).num)
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_OVERLAP, repeated)
        rest.seq += <uint32_t>repeated
        rest.length -= <uint32_t>repeated
        rest.payload = drop(segment.payload, repeated)
    hold(streams, connection, sender, &rest, arrival)


cdef void rebase(Streams* streams, Connection* connection, int sender, Segment* segment,
                 Arrival* arrival) noexcept nogil:
    cdef Direction* own = &connection.direction[sender]
    own.strange = 0
    drain_queue(streams, connection, sender)
    if connection.ended:
        return
    streams.sink.gap(streams.sink.context, connection, sender, arrival, -1, GAP_LOST)
    own.next_seq = segment.seq
    own.acked_known = False
    own.num_sacked = 0
    own.sent_known = False
    deliver(streams, connection, sender, segment.payload, segment.length, arrival)


cdef void hold(Streams* streams, Connection* connection, int sender, Segment* segment,
               Arrival* arrival) noexcept nogil:
    cdef Direction* own = &connection.direction[sender]
    cdef bint is_again
    if (own.reorder_bytes + segment.length > streams.limits.reorder_bytes
            or own.reorder_num >= streams.limits.reorder_segments
            or streams.reorder_total + segment.length > streams.limits.reorder_bytes_total):
        if waits_behind_reset(connection):
            end_connection(streams, connection, ENDING_RESET)
            drop_payload(streams, arrival, DROP_AFTER_END, segment.payload.num)
            streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_AFTER_END, segment.length)
            return
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_HELD_LIMIT, own.reorder_bytes)
        drain_queue(streams, connection, sender)
        if not connection.ended:
            take_payload_after_drain(streams, connection, sender, segment, arrival)
        return
    is_again = segment.length > 1 and is_queued(own, segment.seq, segment.length)
    own.retransmissions += is_again
    drop_payload(streams, arrival, DROP_NO_MEMORY, enqueue_segment(streams, own, segment, arrival, is_again))


cdef void take_payload_after_drain(Streams* streams, Connection* connection, int sender, Segment* segment,
                                   Arrival* arrival) noexcept nogil:
    cdef Direction* own = &connection.direction[sender]
    cdef int32_t ahead = distance(segment.seq, own.next_seq)
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
    cdef Direction* own = &connection.direction[sender]
    cdef uint32_t to_seq
    if waits_behind_reset(connection):
        return
    if not own.known or own.beginning or not own.acked_known or distance(own.acked, own.next_seq) <= 0:
        own.evidence_at = 0
        return
    to_seq = own.acked
    if own.fin and to_seq == own.fin_seq + 1:
        to_seq = own.fin_seq        # a FIN takes a number but no byte
    if distance(to_seq, own.next_seq) <= 0 or distance(to_seq, own.next_seq) > WINDOW:
        return
    if own.evidence_at == 0:
        own.evidence_at = connection.packets
        return
    if connection.packets - own.evidence_at < streams.limits.reorder_packets:
        return
    if own.queued != NULL and distance(to_seq, own.queued.seq) > 0:
        to_seq = own.queued.seq
    declare_gap(streams, connection, sender, to_seq, arrival)
    deliver_queued(streams, connection, sender, True)


# -- ending connections -----------------------------------------------------------------------------------------

cdef inline void close_if_done(Streams* streams, Connection* connection) noexcept nogil:
    cdef int i
    cdef Direction* own
    if connection.ended:
        return
    for i in range(2):
        own = &connection.direction[i]
        if own.fin and own.known and distance(own.next_seq, own.fin_seq) >= 0:
            own.fin_done = True
    if closed_by(&connection.direction[0]) and closed_by(&connection.direction[1]):
        end_connection(streams, connection, ENDING_FIN)


cdef inline bint closed_by(Direction* own) noexcept nogil:
    """This direction's FIN was sent and acknowledged."""
    return own.fin_done and (not own.known or own.acked_known and distance(own.acked, own.fin_seq + 1) >= 0)
