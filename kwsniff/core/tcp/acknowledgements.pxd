# cython: language_level=3
"""What an acknowledgement tells: how far the other side came, that something is missing, how long the way takes.

Rules
  1. One that asks for the same byte as before, alone and with bytes behind it on their way, says that a segment is lost
     (RFC 5681 2).
  2. A handshake's acknowledgement tells the whole round trip, once: it comes alone, and immediately. Where the capture
     missed it, what comes instead tells when the client had something to say.
  3. When bytes were acknowledged is remembered of the latest ones, within PASSED_TOGETHER: a call asks for it when its
     answer comes.

    other  ---- acked ----|---- on its way ---- next_seq
                          ^ asked for again and again
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

from kwsniff.core.capture.packets cimport NO_TIME, TCP_FIN, TCP_SYN, Segment
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stream_table cimport Streams
from kwsniff.core.tcp.control_block cimport Direction, block_of
from kwsniff.core.tcp.fillings cimport fill_held
from kwsniff.core.tcp.round_trips cimport PASSED, PASSED_TOGETHER, Passed
from kwsniff.core.tcp.retransmissions cimport end_repeated_acks
from kwsniff.core.tcp.rtt_samples cimport add_rtt_sample
from kwsniff.core.tcp.segments cimport distance
from kwsniff.core.tcp.stall_causes cimport note_wider
from kwsniff.core.tcp.window_check cimport doubt_acked, note_acked_ahead
from kwsniff.core.tcp.sack cimport forget_ranges, take_sack


cdef inline bint is_under_way(Direction* own, uint32_t acked) noexcept nogil:
    """Whether bytes behind this number were seen; held ones are behind the hole that is asked for."""
    return (distance(own.snd.next_seq, acked) > 0
            or own.queue.last != NULL and distance(own.queue.last.seq + own.queue.last.length, acked) > 0)


cdef inline void note_passed(Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """The receiver has more of this direction's bytes than it said before."""
    cdef int32_t ahead = distance(segment.ack, other.snd.next_seq)
    cdef Passed* latest = &other.trips.passed[(other.trips.num_passed - 1) & (PASSED - 1)]
    if ahead >= 0 and other.queue.first == NULL:
        if other.traffic.largest_sent > other.traffic.largest:
            other.traffic.largest = other.traffic.largest_sent
        other.traffic.largest_sent = 0
    if other.trips.num_passed == 0 or latest.time == NO_TIME or not 0 <= segment.time - latest.time < PASSED_TOGETHER:
        latest = &other.trips.passed[other.trips.num_passed & (PASSED - 1)]
        other.trips.num_passed += 1
        latest.time = segment.time
    if own.seen.unseen:
        # A packet is missing that may have acknowledged them before.
        latest.time = NO_TIME
    latest.offset = other.snd.offset + ahead
    other.marks.windows[(other.trips.num_passed - 1) & (PASSED - 1)] = segment.window
    other.marks.window = segment.window


cdef inline void take_ack(Streams* streams, Connection* connection, int sender, Segment* segment,
                          Arrival* arrival) noexcept nogil:
    """What endpoint `sender` says it has of the other's stream."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Direction* other = &block_of(connection).direction[1 - sender]
    cdef int32_t ahead
    if not other.snd.acked_known or distance(segment.ack, other.snd.acked) > 0:
        if other.dup_acks.num:
            end_repeated_acks(streams, connection, 1 - sender)
        if not other.snd.acked_known:
            other.snd.acked_from = segment.ack
        other.snd.acked = segment.ack
        other.snd.acked_known = True
        if other.snd.known and distance(segment.ack, other.snd.next_seq) > 0:
            if streams.num_fills:
                fill_held(streams, connection, 1 - sender, arrival, segment.ack)
            if distance(segment.ack, other.snd.next_seq) > 0:
                note_acked_ahead(other, segment)
        if other.sack.num:
            forget_ranges(&other.sack, segment.ack)
        if other.snd.known and not other.snd.beginning and segment.time != NO_TIME:
            note_passed(own, other, segment)
    elif (other.snd.known and segment.length == 0 and segment.ack == other.snd.acked
            and is_under_way(other, segment.ack) and not segment.flags & (TCP_SYN | TCP_FIN)):
        if other.dup_acks.num == 0:
            other.dup_acks.time = segment.time
            other.dup_acks.frame = segment.frame
            other.dup_acks.capture = streams.capture
        other.dup_acks.num += 1
    if segment.window > other.marks.window and segment.ack == other.snd.acked:
        note_wider(other, segment)
    if distance(other.snd.acked, segment.ack) > 0:
        doubt_acked(streams, connection, sender, segment, arrival)
    if not other.snd.known:
        return
    if segment.sack.num:
        take_sack(&other.sack, other.snd.next_seq, segment)
    ahead = distance(segment.ack, other.snd.next_seq)
    arrival.acked = other.snd.offset + ahead
    if other.trips.timed and distance(segment.ack, other.trips.timed_seq) >= 0:
        other.trips.timed = False
        if segment.time >= other.trips.timed_at:
            add_rtt_sample(other, segment, segment.time - other.trips.timed_at)
    if (block_of(connection).handshake.round_trip < 0 and block_of(connection).handshake.syn_time != NO_TIME and own.snd.syn and other.snd.syn
            and not segment.flags & TCP_SYN and segment.time >= block_of(connection).handshake.syn_time):
        if segment.length == 0 and segment.ack == other.snd.isn + 1:
            block_of(connection).handshake.round_trip = segment.time - block_of(connection).handshake.syn_time
        block_of(connection).handshake.syn_time = NO_TIME
