# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""TCP segments to ordered bytes and explicit gaps, per connection and direction.

Rules
  1. Sequence numbers are compared by signed 32-bit difference (RFC 9293 3.4); a stream position is a 64-bit count.
  2. The first copy of a byte wins. What a retransmission repeats is counted, not delivered again.
  3. A hole is waited for until the receiver has acknowledged it and `gap_patience` more packets went by (a capture
     may record packets a little out of order), until a named limit is reached, or until the connection ends.
     Then it is delivered as a gap, and the stream goes on behind it.
  4. Memory held for out-of-order segments is bounded per direction and in all; connections are bounded, and the one
     that was silent longest makes room.
  5. Bytes that were held are handed on after those of the other direction that their sender had received by then: when
     both directions have holes, the answer does not pass the question.
  6. A connection that was silent for `idle_seconds` of the capture's time is given up. Whether that is noticed at its own
     next packet, at another connection's or at the end makes no difference to any row.
  7. What a connection is called, and what it gives, depends on its own packets, not on which others are captured.
  8. What a receiver acknowledged was on the wire. When a direction ends, with its connection or with the capture, what
     was acknowledged or passed by its sender's own numbers and never shown is a gap like any other.
  9. A reset counts where its receiver would take it: at a number between the last acknowledged and the furthest that
     the bytes under way ever reached (RFC 9293 3.10.7.4, RFC 5961 3). One with a number expected ends the connection
     at once; if both sides go on talking all the same, another begins. One beyond is a challenge to its receiver, or
     follows lost segments: it ends the connection when RESET_PATIENCE went by, or the connection's packets do; if both
     sides go on talking before, there was none. A SYN in the middle of a
     connection means nothing (RFC 5961 4) until its SYN+ACK, or a segment with the number behind it.
 10. Copies of a packet (copies.pyx) are counted and change nothing.
 11. Nothing here knows what the bytes mean.

    next_seq v        held          held
    ---------[ hole ][######][hole][####]
             ^ offset (64-bit)

A connection without a handshake begins, in each direction, at the number that a segment without payload showed, or at the
lowest payload byte of the first packets: until its receiver acknowledges more, or `gap_patience` packets went by.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kwsniff.core.tcp.connections cimport *
from kwsniff.core.octets.octets cimport Octets, drop, has, keep, make_octets
from kwsniff.core.capture.packets cimport NO_TIME, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN, Segment
from kwsniff.core.tcp.segments cimport distance, source_endpoint
from kwsniff.core.tcp.repairs cimport note_again, note_mended, note_round_trip
from kwsniff.core.tcp.copies cimport is_copy, remember_packet

cdef enum:
    WINDOW = 1 << 30            # the largest window of RFC 7323
    REMEMBERED_BYTES = 2048     # payload of an ordinary segment, and some
    STRANGE_SEGMENTS = 3        # so many in a row outside the window: it is the stream that moved
    LEAST_WINDOW = 65535        # what a receiver may have open when its scale is not known (RFC 9293 3.1)

cdef extern from *:
    """
    #define SECOND 1000000000LL
    """
    const int64_t SECOND

cdef extern from *:
    """
    #define RESET_PATIENCE 10000000000LL
    """
    const int64_t RESET_PATIENCE    # nanoseconds in which two peers that took no reset say something more


cdef bint start_streams(Streams* streams, StreamSink sink, Limits limits, uint64_t seed) noexcept nogil:
    memset(streams, 0, sizeof(Streams))
    streams.sink = sink
    streams.limits = limits
    streams.seed = seed
    streams.num_buckets = 1024
    streams.buckets = <Connection**>calloc(streams.num_buckets, sizeof(Connection*))
    return streams.buckets != NULL


cdef void free_streams(Streams* streams) noexcept nogil:
    cdef Connection* connection = streams.oldest
    cdef Connection* newer
    while connection != NULL:
        newer = connection.newer
        drop_held(streams, &connection.direction[0])
        drop_held(streams, &connection.direction[1])
        free(connection)
        connection = newer
    free(streams.buckets)
    memset(streams, 0, sizeof(Streams))


cdef void end_streams(Streams* streams) noexcept nogil:
    """Every open connection delivers what it holds and ends as still open."""
    cdef Connection* connection
    drop_silent(streams, streams.now)
    connection = streams.oldest
    while connection != NULL:
        end_connection(streams, connection, END_OPEN)
        connection = connection.newer


# -- taking segments --------------------------------------------------------------------------------------------

cdef void take_segment(Streams* streams, Segment* segment) noexcept nogil:
    cdef int sender = source_endpoint(segment)
    cdef Connection* connection = find_connection(streams, segment, sender)
    cdef Direction* own
    cdef Direction* other
    cdef Arrival arrival
    if connection == NULL:
        if streams.num >= streams.limits.connections and streams.oldest != NULL:
            evict(streams, streams.oldest)
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
            end_connection(streams, connection, END_RESET)
        if segment.flags & TCP_SYN and opens_anew(connection, segment, sender):
            begin_again(streams, connection)
    if streams.oldest != connection:
        drop_silent(streams, segment.time)
    while streams.first_reset != NULL and is_reset(streams.first_reset, segment.time):
        end_connection(streams, streams.first_reset, END_RESET)
    own = &connection.direction[sender]
    other = &connection.direction[1 - sender]
    if segment.encapsulation and not connection.encapsulation:
        connection.encapsulation = segment.encapsulation
    if is_copy(own, other, segment) and not differs(own, segment.seq, segment.payload):
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
    if connection.ordinal != streams.ordinal:
        connection.ordinal = streams.ordinal
        connection.num_ids = 0
    streams.now = segment.time
    arrival.time = segment.time
    arrival.frame = segment.frame
    arrival.acked = -1
    arrival.capture = streams.capture
    arrival.retransmissions = own.retransmissions + other.retransmissions
    arrival.ready = segment.time
    arrival.mended = own.mended
    arrival.mended_back = other.mended
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
    note_window(own, segment)
    arrival.zero_window = zero_window_until(own, segment.time) + zero_window_until(other, segment.time)
    if segment.flags & TCP_SYN:
        if own.other_syn and segment.seq == own.other_isn:
            drop_payload(streams, &arrival, DROP_OUT_OF_WINDOW, segment.payload.num)
            return
        take_syn(connection, own, segment, sender)
    if segment.flags & TCP_ACK and fits(own, segment.seq):
        take_ack(connection, own, other, segment, &arrival)
        if other.beginning and distance(other.acked, other.next_seq) > 0:
            settle_beginning(streams, connection, 1 - sender)
    if own.beginning and connection.packets - own.begun_at >= streams.limits.gap_patience:
        settle_beginning(streams, connection, sender)
    if segment.length:
        take_payload(streams, connection, sender, segment, &arrival)
        own.sent_at = segment.time
        if own.other_syn and not connection.ended:
            pass_over_syn(streams, connection, sender, &arrival)
    elif not segment.flags & TCP_SYN:
        note_sent(own, segment.seq)
    if connection.direction[1 - sender].acked_known and not connection.ended:
        check_patience(streams, connection, 1 - sender, &arrival)
    if own.held != NULL:
        check_patience(streams, connection, sender, &arrival)
    if segment.flags & TCP_FIN and not connection.ended:
        take_fin(connection, own, segment, sender)
        if own.beginning:
            settle_beginning(streams, connection, sender)
    if connection.reset_by >= 0:
        doubt_reset(streams, connection, sender, segment, &arrival)
    close_if_done(streams, connection)


cdef inline void note_window(Direction* own, Segment* segment) noexcept nogil:
    """How long the sender has had no room for what comes. One that says it is done needs none."""
    if segment.time == NO_TIME:
        return
    if segment.window == 0 and not segment.flags & TCP_FIN:
        if own.closed_since == NO_TIME:
            own.closed_since = segment.time
    elif own.closed_since != NO_TIME:
        own.zero_window = zero_window_until(own, segment.time)
        own.closed_since = NO_TIME


cdef inline int64_t zero_window_until(Direction* own, int64_t time) noexcept nogil:
    if own.closed_since == NO_TIME or time <= own.closed_since:
        return own.zero_window
    return own.zero_window + (time - own.closed_since)


cdef inline void time_segment(Direction* own, Segment* segment, uint32_t length) noexcept nogil:
    """One segment at a time is timed until its acknowledgement, never a repeated one (RFC 6298, Karn's rule)."""
    if not own.timed and segment.time != NO_TIME:
        own.timed = True
        own.timed_seq = segment.seq + length
        own.timed_at = segment.time


cdef inline void drop_payload(Streams* streams, Arrival* arrival, int cause, size_t num) noexcept nogil:
    if num:
        streams.sink.dropped(streams.sink.context, arrival.capture, cause, <int64_t>num)


cdef inline bint silent_too_long(Streams* streams, Connection* connection, int64_t time) noexcept nogil:
    return (connection.last_time != NO_TIME and time != NO_TIME
            and time - connection.last_time > streams.limits.idle_seconds * SECOND)


cdef void drop_silent(Streams* streams, int64_t time) noexcept nogil:
    """Gives up connections that were silent for too long by the capture's own clock."""
    while streams.oldest != NULL and silent_too_long(streams, streams.oldest, time):
        evict(streams, streams.oldest)


cdef inline bint is_reset(Connection* connection, int64_t time) noexcept nogil:
    """Whether the reset has been there for so long that nobody will gainsay it."""
    return (connection.reset_by >= 0 and not connection.ended and time != NO_TIME
            and connection.reset_time != NO_TIME and time - connection.reset_time > RESET_PATIENCE)


cdef void evict(Streams* streams, Connection* connection) noexcept nogil:
    give_up(streams, connection)
    remove_connection(streams, connection)


cdef void give_up(Streams* streams, Connection* connection) noexcept nogil:
    cdef Arrival arrival
    if connection.ended:
        return
    if connection.reset_by < 0:
        arrival = latest_arrival(connection)
        streams.sink.oddity(streams.sink.context, connection, 0, &arrival, ODD_EVICTED, connection.packets)
    end_connection(streams, connection, END_EVICTED)


cdef Arrival latest_arrival(Connection* connection) noexcept nogil:
    """For what is noticed when no packet comes any more."""
    cdef Arrival arrival
    memset(&arrival, 0, sizeof(Arrival))
    arrival.time = connection.last_time
    arrival.frame = connection.last_frame
    arrival.acked = -1
    arrival.capture = connection.last_capture
    arrival.ready = arrival.time
    return arrival


cdef void begin_again(Streams* streams, Connection* connection) noexcept nogil:
    """The same addresses and ports carry another connection now, whose SYN may have come already."""
    cdef int opener = connection.other_opener
    cdef bint[2] with_syn = [connection.direction[0].other_syn, connection.direction[1].other_syn]
    cdef uint32_t[2] isn = [connection.direction[0].other_isn, connection.direction[1].other_isn]
    cdef int i
    connection.direction[0].other_syn = False
    connection.direction[1].other_syn = False
    end_connection(streams, connection, END_REUSED)
    begin_connection(streams, connection)
    for i in range(2):
        if with_syn[i]:
            connection.opener = opener
            connection.direction[i].syn = True
            connection.direction[i].isn = isn[i]
            connection.direction[i].known = True
            connection.direction[i].next_seq = isn[i] + 1


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
    cdef int i
    drop_payload(streams, arrival, DROP_AFTER_END, segment.payload.num)
    if not resets(own, other, segment):
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_RESET,
                            distance(segment.seq, own.next_seq if own.known else own.acked))
        return
    if segment.flags & TCP_ACK:
        take_ack(connection, own, other, segment, arrival)
    if connection.closer < 0:
        connection.closer = sender
        connection.close_frame = segment.frame
    for i in range(2):
        connection.direction[i].at_reset = furthest(&connection.direction[i])
    if own.fin and other.fin:
        end_connection(streams, connection, END_FIN)
    elif not own.known or distance(segment.seq, furthest(own)) <= 0:
        connection.refused = sender != connection.opener and other.syn and not own.syn
        end_connection(streams, connection, END_RESET)
    elif connection.reset_by < 0:
        connection.reset_by = sender
        connection.reset_ahead = distance(segment.seq, furthest(own))
        connection.reset_time = segment.time
        link_reset(streams, connection)


cdef bint goes_on_after_reset(Connection* connection, int sender, Segment* segment) noexcept nogil:
    """Whether this acknowledges what was sent behind the reset: a receiver that took it answers nothing more."""
    cdef Direction* own = &connection.direction[sender]
    cdef Direction* other = &connection.direction[1 - sender]
    if connection.end != END_RESET or segment.flags & (TCP_RST | TCP_SYN):
        return False
    if segment.length and 0 < distance(segment.seq + segment.length, own.at_reset) <= WINDOW:
        own.sent = segment.seq + segment.length
        own.sent_known = True
    return (segment.flags & TCP_ACK and other.sent_known and distance(other.sent, other.at_reset) > 0
            and 0 < distance(segment.ack, other.at_reset) <= distance(other.sent, other.at_reset))


cdef inline uint32_t furthest(Direction* own) noexcept nogil:
    """The highest number that is known of this direction."""
    cdef uint32_t to_seq = own.next_seq if own.known else own.acked
    if own.held_last != NULL and distance(own.held_last.seq + own.held_last.length, to_seq) > 0:
        to_seq = own.held_last.seq + own.held_last.length
    if own.sent_known and distance(own.sent, to_seq) > 0:
        to_seq = own.sent
    if own.acked_known and distance(own.acked, to_seq) > 0:
        to_seq = own.acked
    return to_seq


cdef bint resets(Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """Whether a receiver would take this RST: one that answers a SYN by its acknowledgement (RFC 9293 3.10.7.3), any
    other by its number. Where the receiver stands is not known better than between its last acknowledgement and the
    furthest number sent; what it has room for not better than by what was under way before."""
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


cdef void doubt_reset(Streams* streams, Connection* connection, int sender, Segment* segment,
                      Arrival* arrival) noexcept nogil:
    """A side that sent a reset says nothing more, and one that took it answers nothing more: what was sent behind the
    reset is answered only if there was none."""
    cdef int by = connection.reset_by
    cdef Direction* own = &connection.direction[sender]
    cdef Direction* other = &connection.direction[1 - sender]
    if not segment.flags & TCP_ACK or distance(segment.ack, other.at_reset) <= 0:
        return
    if sender != by and (segment.length == 0 or distance(segment.seq + segment.length, own.at_reset) <= 0):
        return
    unlink_reset(streams, connection)
    connection.reset_by = -1
    if not connection.direction[0].fin and not connection.direction[1].fin:
        connection.closer = -1
        connection.close_frame = 0
    streams.sink.oddity(streams.sink.context, connection, by, arrival, ODD_RESET_TAKEN_BACK, connection.reset_ahead)


cdef bint opens_anew(Connection* connection, Segment* segment, int sender) noexcept nogil:
    """Whether this SYN belongs to another connection than the one known under these addresses and ports. If that is
    not known yet, the numbers of the other one are kept."""
    cdef Direction* own = &connection.direction[sender]
    cdef Direction* other = &connection.direction[1 - sender]
    if connection.packets == 0:
        return False
    if own.syn and segment.seq == own.isn:
        return False        # a repeated SYN, even after the end
    if connection.ended or connection.reset_by >= 0:
        return True
    if (segment.flags & TCP_ACK and other.other_syn and not own.other_syn
            and segment.ack == other.other_isn + 1):
        return True
    # A SYN behind payload: the number just before the payload means that the capture recorded it late.
    if not own.syn and (not own.known or segment.seq + 1 == own.next_seq - <uint32_t>own.offset):
        return False
    # A live peer answers it with a challenge (RFC 9293 3.10.7.4); only what follows says that there is a new one.
    own.other_syn = True
    own.other_isn = segment.seq
    connection.other_opener = sender
    if segment.flags & TCP_ACK:
        connection.other_opener = 1 - sender
        other.other_syn = True
        other.other_isn = segment.ack - 1
    return False


cdef inline bint goes_on_elsewhere(Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """Whether this is the segment behind a SYN that was not believed: a new connection after all."""
    if (not own.other_syn or segment.flags & (TCP_SYN | TCP_RST) or segment.seq != own.other_isn + 1
            or own.known and segment.seq == own.next_seq):
        return False
    if other.other_syn:
        return segment.flags & TCP_ACK and 0 <= distance(segment.ack, other.other_isn + 1) <= LEAST_WINDOW
    return segment.length > 0


cdef void pass_over_syn(Streams* streams, Connection* connection, int sender, Arrival* arrival) noexcept nogil:
    """The side that seemed to have begun anew goes on as before."""
    cdef Direction* own = &connection.direction[sender]
    cdef int i
    streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_HANDSHAKE,
                        distance(own.other_isn, own.next_seq))
    for i in range(2):
        connection.direction[i].other_syn = False
    connection.other_opener = -1


cdef void take_syn(Connection* connection, Direction* own, Segment* segment, int sender) noexcept nogil:
    if own.syn:
        connection.syn_time = NO_TIME       # repeated: which of them was answered is not known
        own.timed = False
        if sender == connection.opener and segment.seq == own.isn:
            connection.syn_retries += 1
        return
    time_segment(own, segment, 1)
    own.syn = True
    own.isn = segment.seq
    if not own.known:
        own.known = True
        own.next_seq = segment.seq + 1
    segment.seq += 1                        # payload of a SYN (RFC 7413) follows the SYN's own number
    if connection.opener < 0:
        connection.opener = (1 - sender) if segment.flags & TCP_ACK else sender
    if not segment.flags & TCP_ACK:
        connection.syn_time = segment.time


cdef inline void take_ack(Connection* connection, Direction* own, Direction* other, Segment* segment,
                          Arrival* arrival) noexcept nogil:
    cdef int32_t ahead
    if not other.acked_known or distance(segment.ack, other.acked) > 0:
        other.acked = segment.ack
        other.acked_known = True
        other.repeated_acks = 0
    elif (other.known and segment.length == 0 and segment.ack == other.acked
            and distance(segment.ack, other.next_seq) < 0 and not segment.flags & (TCP_SYN | TCP_FIN)):
        other.repeated_acks += 1
    if not other.known:
        return
    ahead = distance(segment.ack, other.next_seq)
    arrival.acked = other.offset + ahead
    if other.timed and distance(segment.ack, other.timed_seq) >= 0:
        other.timed = False
        if segment.time >= other.timed_at:
            note_round_trip(other, segment, segment.time - other.timed_at)
    if (connection.round_trip < 0 and connection.syn_time != NO_TIME and own.syn and other.syn
            and not segment.flags & TCP_SYN and segment.time >= connection.syn_time):
        connection.round_trip = segment.time - connection.syn_time
        connection.syn_time = NO_TIME


cdef void begin_stream(Connection* connection, Direction* own, Segment* segment) noexcept nogil:
    """The first payload of a direction without a SYN. Where its sender or its receiver stood shows what is before it."""
    cdef int32_t before = distance(segment.seq, own.sent) if own.sent_known else 0
    own.known = True
    own.next_seq = segment.seq
    if 1 < before <= WINDOW:            # one number before the next one is a keep-alive
        own.next_seq = own.sent
    elif not own.sent_known and not (own.acked_known and own.acked == segment.seq):
        own.beginning = True
        own.begun_at = connection.packets


cdef void begin_earlier(Direction* own, Direction* other, uint32_t seq) noexcept nogil:
    """Positions count from the first byte: what was said of them moves along."""
    cdef Held* held = other.held
    cdef int64_t more = own.next_seq - seq
    while held != NULL:
        if held.arrival.acked >= 0:
            held.arrival.acked += more
        held = held.next
    own.next_seq = seq


cdef void settle_beginning(Streams* streams, Connection* connection, int sender) noexcept nogil:
    connection.direction[sender].beginning = False
    deliver_held(streams, connection, sender, True)


cdef inline bint fits(Direction* own, uint32_t seq) noexcept nogil:
    """Whether a segment with this number can be this stream's at all."""
    return not own.known or -WINDOW <= distance(seq, own.next_seq) <= WINDOW


cdef inline void note_sent(Direction* own, uint32_t to_seq) noexcept nogil:
    """A segment without payload says how far its sender has come."""
    if fits(own, to_seq) and (not own.sent_known or distance(to_seq, own.sent) > 0):
        own.sent = to_seq
        own.sent_known = True


cdef void take_fin(Connection* connection, Direction* own, Segment* segment, int sender) noexcept nogil:
    cdef uint32_t end = segment.seq + segment.length
    if own.known and (distance(end, own.next_seq) < 0 or not fits(own, end)):
        return                  # an old one, or none of this stream's
    own.fin = True
    own.fin_seq = end
    note_sent(own, end)
    if connection.closer < 0:
        connection.closer = sender
        connection.close_frame = segment.frame
    if not own.known:           # a direction whose payload was never captured ends here all the same
        own.fin_done = True


cdef void take_payload(Streams* streams, Connection* connection, int sender, Segment* segment,
                       Arrival* arrival) noexcept nogil:
    cdef Direction* own = &connection.direction[sender]
    cdef int32_t ahead
    cdef uint32_t repeated
    if not own.known:
        begin_stream(connection, own, segment)
    ahead = distance(segment.seq, own.next_seq)
    if own.beginning and -WINDOW <= ahead <= WINDOW:
        if ahead < 0:
            begin_earlier(own, &connection.direction[1 - sender], segment.seq)
        hold(streams, connection, sender, segment, arrival)
        return
    if ahead == 0:
        own.strange = 0
        remember(own, segment.seq, segment.length, segment.payload)
        time_segment(own, segment, segment.length)
        if own.held != NULL:
            note_mended(own, segment, arrival)
        deliver(streams, connection, sender, segment.payload, segment.length, arrival)
        if own.held != NULL:
            deliver_held(streams, connection, sender, False)
        return
    if ahead < -WINDOW or ahead > WINDOW:
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_OUT_OF_WINDOW, ahead)
        own.strange += 1
        if own.strange >= STRANGE_SEGMENTS:
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
        own.retransmitted += segment.length
        own.retransmissions += 1
        own.timed = False
        note_again(own, segment, ahead)
        if differs(own, segment.seq, segment.payload):
            streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_CONFLICT, segment.length)
        drop_payload(streams, arrival, DROP_RETRANSMITTED, segment.payload.num)
        return
    own.retransmitted += repeated
    drop_payload(streams, arrival, DROP_RETRANSMITTED, keep(segment.payload, repeated).num)
    streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_OVERLAP, repeated)
    if differs(own, segment.seq, keep(segment.payload, repeated)):
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_CONFLICT, repeated)
    if own.held != NULL:
        note_mended(own, segment, arrival)
    deliver(streams, connection, sender, drop(segment.payload, repeated), segment.length - repeated, arrival)
    if own.held != NULL:
        deliver_held(streams, connection, sender, False)


cdef inline uint64_t hash_payload(Octets payload) noexcept nogil:
    """Four lanes of eight bytes, so that the multiplications overlap."""
    cdef uint64_t[4] lanes = [1, 2, 3, payload.num]
    cdef uint64_t[4] words
    cdef int i
    while payload.num >= 32:
        memcpy(words, payload.at, 32)
        for i in range(4):
            lanes[i] = (lanes[i] ^ words[i]) * <uint64_t>0x9E3779B97F4A7C15
            lanes[i] ^= lanes[i] >> 32
        payload = drop(payload, 32)
    memset(words, 0, 32)
    memcpy(words, payload.at, payload.num)
    for i in range(4):
        lanes[i] = (lanes[i] ^ words[i]) * <uint64_t>0xD6E8FEB86659FD93
    return lanes[0] ^ (lanes[1] << 1) ^ (lanes[2] << 2) ^ (lanes[3] << 3)


cdef inline void remember(Direction* own, uint32_t seq, uint32_t length, Octets payload) noexcept nogil:
    cdef Recent* recent
    # Long segments come from offloading cards, which retransmit in other pieces: there is nothing to compare.
    if payload.num < length or length > REMEMBERED_BYTES:
        return
    recent = &own.recent[own.num_recent & 7]
    own.num_recent += 1
    recent.seq = seq
    recent.length = length
    recent.hash = hash_payload(payload)


cdef bint differs(Direction* own, uint32_t seq, Octets payload) noexcept nogil:
    """Whether `payload`, which was sent before, has other bytes than those of the latest segments that lie in it."""
    cdef Recent* recent
    cdef int32_t ahead
    cdef uint32_t i
    for i in range(8 if own.num_recent > 8 else own.num_recent):
        recent = &own.recent[i]
        ahead = distance(recent.seq, seq)
        if (ahead >= 0 and has(payload, <size_t>ahead, recent.length)
                and recent.hash != hash_payload(keep(drop(payload, <size_t>ahead), recent.length))):
            return True
    return False


cdef void rebase(Streams* streams, Connection* connection, int sender, Segment* segment,
                 Arrival* arrival) noexcept nogil:
    cdef Direction* own = &connection.direction[sender]
    own.strange = 0
    drain_held(streams, connection, sender)
    if connection.ended:
        return
    streams.sink.gap(streams.sink.context, connection, sender, arrival, -1, GAP_LOST)
    own.next_seq = segment.seq
    own.acked_known = False
    deliver(streams, connection, sender, segment.payload, segment.length, arrival)


cdef void deliver(Streams* streams, Connection* connection, int sender, Octets payload, uint32_t length,
                  Arrival* arrival) noexcept nogil:
    """Hands `payload` on as the next bytes of the stream, and what is missing of `length` as a gap. While a sink
    runs, `offset` is the position of the first byte it is handed."""
    cdef Direction* own = &connection.direction[sender]
    own.next_seq += length
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


cdef void hold(Streams* streams, Connection* connection, int sender, Segment* segment,
               Arrival* arrival) noexcept nogil:
    cdef Direction* own = &connection.direction[sender]
    cdef Held* held
    cdef Held** link
    if (own.held_bytes + segment.length > streams.limits.held_bytes
            or own.held_num >= streams.limits.held_segments
            or streams.held_total + segment.length > streams.limits.held_bytes_total):
        streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_HELD_LIMIT, own.held_bytes)
        drain_held(streams, connection, sender)
        if not connection.ended:
            take_payload_after_drain(streams, connection, sender, segment, arrival)
        return
    held = <Held*>malloc(sizeof(Held) + segment.payload.num)
    if held == NULL:
        streams.no_memory = True
        drop_payload(streams, arrival, DROP_NO_MEMORY, segment.payload.num)
        return
    held.seq = segment.seq
    held.length = segment.length
    held.captured = <uint32_t>segment.payload.num
    held.arrival = arrival[0]
    held.data = <uint8_t*>&held[1]
    if own.held == NULL:
        own.hole_since = segment.time
    memcpy(held.data, segment.payload.at, segment.payload.num)
    own.held_bytes += held.length
    own.held_num += 1
    streams.held_total += <int64_t>(sizeof(Held) + held.captured)
    if own.held_last != NULL and distance(held.seq, own.held_last.seq) >= 0:
        held.next = NULL
        own.held_last.next = held
        own.held_last = held
        return
    link = &own.held
    while link[0] != NULL and distance(held.seq, link[0].seq) >= 0:
        link = &link[0].next
    held.next = link[0]
    link[0] = held
    if held.next == NULL:
        own.held_last = held


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


cdef Held* unhold_first(Streams* streams, Direction* own) noexcept nogil:
    cdef Held* held = own.held
    own.held = held.next
    if own.held == NULL:
        own.held_last = NULL
    own.held_bytes -= held.length
    own.held_num -= 1
    streams.held_total -= <int64_t>(sizeof(Held) + held.captured)
    return held


cdef void drop_held(Streams* streams, Direction* own) noexcept nogil:
    while own.held != NULL:
        free(unhold_first(streams, own))


cdef void deliver_held(Streams* streams, Connection* connection, int sender, bint given_up) noexcept nogil:
    """Hands on every held segment that the stream has reached, by itself or because a hole was given up."""
    cdef Direction* own = &connection.direction[sender]
    cdef Direction* other = &connection.direction[1 - sender]
    while own.held != NULL and not connection.ended and distance(own.held.seq, own.next_seq) <= 0:
        if given_up and own.held.arrival.acked > other.offset and not other.catching_up:
            own.catching_up = True
            catch_up(streams, connection, 1 - sender, own.held.arrival.acked)
            own.catching_up = False
        deliver_first(streams, connection, sender)
    if own.held != NULL and not own.mending:
        own.hole_since = own.held.arrival.time
    own.mending = False
    own.evidence_at = 0
    if given_up and not other.catching_up and not other.beginning and other.held != NULL and distance(other.held.seq, other.next_seq) <= 0:
        deliver_held(streams, connection, 1 - sender, False)


cdef void deliver_first(Streams* streams, Connection* connection, int sender) noexcept nogil:
    """Hands on the first held segment, which the stream has reached."""
    cdef Direction* own = &connection.direction[sender]
    cdef Held* held = unhold_first(streams, own)
    cdef uint32_t repeated = own.next_seq - held.seq
    if own.mending and streams.now != NO_TIME:
        held.arrival.ready = streams.now
        held.arrival.mended = own.mended
    if repeated >= held.length:
        own.retransmitted += held.length
        own.retransmissions += 1
        if differs(own, held.seq, make_octets(held.data, held.captured)):
            streams.sink.oddity(streams.sink.context, connection, sender, &held.arrival, ODD_CONFLICT, held.length)
        drop_payload(streams, &held.arrival, DROP_RETRANSMITTED, held.captured)
    else:
        own.retransmitted += repeated
        if repeated and differs(own, held.seq, keep(make_octets(held.data, held.captured), repeated)):
            streams.sink.oddity(streams.sink.context, connection, sender, &held.arrival, ODD_CONFLICT, repeated)
        drop_payload(streams, &held.arrival, DROP_RETRANSMITTED, repeated if repeated < held.captured else held.captured)
        if repeated == 0:
            remember(own, held.seq, held.length, make_octets(held.data, held.captured))
        deliver(streams, connection, sender, drop(make_octets(held.data, held.captured), repeated),
                held.length - repeated, &held.arrival)
    free(held)


cdef void catch_up(Streams* streams, Connection* connection, int sender, int64_t acked) noexcept nogil:
    """Gives up the holes of the stream before position `acked`, which its receiver had, and hands on what is there."""
    cdef Direction* own = &connection.direction[sender]
    cdef int64_t ahead
    own.beginning = False
    while own.held != NULL and own.offset < acked and not connection.ended:
        ahead = distance(own.held.seq, own.next_seq)
        if ahead > 0:
            if ahead > acked - own.offset:
                ahead = acked - own.offset
            declare_gap(streams, connection, sender, own.next_seq + <uint32_t>ahead, &own.held.arrival)
        else:
            deliver_first(streams, connection, sender)


cdef void declare_gap(Streams* streams, Connection* connection, int sender, uint32_t to_seq,
                      Arrival* arrival) noexcept nogil:
    cdef Direction* own = &connection.direction[sender]
    cdef uint32_t num
    cdef int cause = GAP_LOST
    if own.acked_known and distance(own.acked, to_seq) >= 0:
        cause = GAP_NOT_CAPTURED
    elif own.acked_known and 0 < distance(own.acked, own.next_seq) <= WINDOW:
        declare_gap(streams, connection, sender, own.acked, arrival)
        if connection.ended:
            return
    num = to_seq - own.next_seq
    own.next_seq = to_seq
    own.evidence_at = 0
    streams.sink.gap(streams.sink.context, connection, sender, arrival, num, cause)
    own.missing += num
    own.offset += num


cdef void drain_held(Streams* streams, Connection* connection, int sender) noexcept nogil:
    """Hands on everything held, with gaps where bytes are missing."""
    cdef Direction* own = &connection.direction[sender]
    own.beginning = False
    while own.held != NULL and not connection.ended:
        if distance(own.held.seq, own.next_seq) > 0:
            declare_gap(streams, connection, sender, own.held.seq, &own.held.arrival)
        deliver_held(streams, connection, sender, True)


cdef inline void check_patience(Streams* streams, Connection* connection, int sender, Arrival* arrival) noexcept nogil:
    """Gives a hole up that the receiver has acknowledged and that the capture has not shown for long enough."""
    cdef Direction* own = &connection.direction[sender]
    cdef uint32_t to_seq
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
    if connection.packets - own.evidence_at < streams.limits.gap_patience:
        return
    if own.held != NULL and distance(to_seq, own.held.seq) > 0:
        to_seq = own.held.seq
    declare_gap(streams, connection, sender, to_seq, arrival)
    deliver_held(streams, connection, sender, True)


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
        end_connection(streams, connection, END_FIN)


cdef inline bint closed_by(Direction* own) noexcept nogil:
    """This direction's FIN was sent and acknowledged."""
    return own.fin_done and (not own.known or own.acked_known and distance(own.acked, own.fin_seq + 1) >= 0)


cdef void settle_tail(Streams* streams, Connection* connection, int sender) noexcept nogil:
    """Nothing more comes: what the receiver had, or the sender had come to, and the capture has not, is missing."""
    cdef Direction* own = &connection.direction[sender]
    cdef Arrival arrival = latest_arrival(connection)
    cdef uint32_t to_seq
    if not own.known or connection.ended:
        return
    if own.acked_known and distance(own.acked, own.next_seq) <= WINDOW:
        to_seq = own.acked - is_behind_fin(own, own.acked)
        if distance(to_seq, own.next_seq) > 0:
            declare_gap(streams, connection, sender, to_seq, &arrival)
    to_seq = furthest(own)
    to_seq -= is_behind_fin(own, to_seq)
    if not connection.ended and 0 < distance(to_seq, own.next_seq) <= WINDOW:
        declare_gap(streams, connection, sender, to_seq, &arrival)


cdef inline uint32_t is_behind_fin(Direction* own, uint32_t number) noexcept nogil:
    """1 for the number that a FIN takes, which is no byte. Where one number is left at a stream's end, it was a FIN's."""
    if own.fin:
        return number == own.fin_seq + 1
    return number == own.next_seq + 1


cdef void end_connection(Streams* streams, Connection* connection, int why) noexcept nogil:
    cdef Arrival arrival
    cdef int i
    if connection.ended:
        return
    drain_held(streams, connection, 0)
    drain_held(streams, connection, 1)
    settle_tail(streams, connection, 0)
    settle_tail(streams, connection, 1)
    if connection.ended:
        return
    for i in range(2):
        if connection.direction[i].other_syn and connection.other_opener == i:
            arrival = latest_arrival(connection)
            pass_over_syn(streams, connection, i, &arrival)
    if connection.reset_by >= 0:
        why = END_RESET
        unlink_reset(streams, connection)
    elif connection.direction[0].fin and connection.direction[1].fin and why != END_RESET:
        why = END_FIN           # its last acknowledgement may not have been seen
    connection.ended = True
    connection.end = why
    streams.sink.ended(streams.sink.context, connection)
    connection.dialog = NULL
