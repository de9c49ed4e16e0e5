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
from kwsniff.core.tcp.connections cimport PASSED, Arrival, Connection, Direction, Passed, Streams
from kwsniff.core.tcp.retransmissions cimport end_repeated_acks, note_round_trip
from kwsniff.core.tcp.segments cimport distance
from kwsniff.core.tcp.window_check cimport doubt_acked, note_acked_ahead
from kwsniff.core.tcp.sack cimport forget_ranges, take_sack


cdef extern from *:
    """
    #define PASSED_TOGETHER 4000000LL
    """
    const int64_t PASSED_TOGETHER


cdef inline bint is_under_way(Direction* own, uint32_t acked) noexcept nogil:
    """Whether bytes behind this number were seen; held ones are behind the hole that is asked for."""
    return (distance(own.next_seq, acked) > 0
            or own.queue_last != NULL and distance(own.queue_last.seq + own.queue_last.length, acked) > 0)


cdef inline void note_passed(Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """The receiver has more of this direction's bytes than it said before."""
    cdef int32_t ahead = distance(segment.ack, other.next_seq)
    cdef Passed* latest = &other.passed[(other.num_passed - 1) & (PASSED - 1)]
    if ahead >= 0 and other.queued == NULL:
        if other.largest_sent > other.largest:
            other.largest = other.largest_sent
        other.largest_sent = 0
    if other.num_passed == 0 or latest.time == NO_TIME or not 0 <= segment.time - latest.time < PASSED_TOGETHER:
        latest = &other.passed[other.num_passed & (PASSED - 1)]
        other.num_passed += 1
        latest.time = segment.time
    if own.unseen:
        # A packet is missing that may have acknowledged them before.
        latest.time = NO_TIME
    latest.offset = other.offset + ahead


cdef inline void take_ack(Streams* streams, Connection* connection, int sender, Segment* segment,
                          Arrival* arrival) noexcept nogil:
    """What endpoint `sender` says it has of the other's stream."""
    cdef Direction* own = &connection.direction[sender]
    cdef Direction* other = &connection.direction[1 - sender]
    cdef int32_t ahead
    if not other.acked_known or distance(segment.ack, other.acked) > 0:
        if other.repeated_acks:
            end_repeated_acks(streams, connection, 1 - sender)
        if not other.acked_known:
            other.acked_from = segment.ack
        other.acked = segment.ack
        other.acked_known = True
        if other.known and distance(segment.ack, other.next_seq) > 0:
            note_acked_ahead(other, segment)
        if other.num_sacked:
            forget_ranges(other, segment.ack)
        if other.known and not other.beginning and segment.time != NO_TIME:
            note_passed(own, other, segment)
    elif (other.known and segment.length == 0 and segment.ack == other.acked
            and is_under_way(other, segment.ack) and not segment.flags & (TCP_SYN | TCP_FIN)):
        if other.repeated_acks == 0:
            other.repeated_time = segment.time
            other.repeated_frame = segment.frame
            other.repeated_capture = streams.capture
        other.repeated_acks += 1
    if distance(other.acked, segment.ack) > 0:
        doubt_acked(streams, connection, sender, segment, arrival)
    if not other.known:
        return
    if segment.sack.num:
        take_sack(other, segment)
    ahead = distance(segment.ack, other.next_seq)
    arrival.acked = other.offset + ahead
    if other.timed and distance(segment.ack, other.timed_seq) >= 0:
        other.timed = False
        if segment.time >= other.timed_at:
            note_round_trip(other, segment, segment.time - other.timed_at)
    if (connection.round_trip < 0 and connection.syn_time != NO_TIME and own.syn and other.syn
            and not segment.flags & TCP_SYN and segment.time >= connection.syn_time):
        if segment.length == 0 and segment.ack == other.isn + 1:
            connection.round_trip = segment.time - connection.syn_time
        connection.syn_time = NO_TIME
