# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Why a direction stalled: what its next segment, and what was acknowledged before it, tell.

Rules
  1. A stall lies between two segments with payload of one direction, STALL_LEAST or more apart. It ends inside a message,
     or with a segment that was sent again. Stalls of a direction never overlap.
  2. What the sender knew when it sent a segment is what passed here a way earlier: the round trip from here to the
     sender. Near the sender that is nothing, near the receiver all of it.
  3. Who sends as soon as an acknowledgement has come had waited for it: for room in the receiver's window, where the
     segment did not fit in before; for all to be acknowledged, where it is a small one (Nagle); else for the congestion
     window, or, where the round trip has become long, for the queue of a link. Who sends without one had nothing to send.
  4. Windows are unknown where the handshake is not here, but never less than their unscaled number.
  5. A pause of a sender far away is one where its stamps, or the numbers of its packets, leave nothing else.
  6. Segments sent again: the receiver had asked for them, by repeated acknowledgements or SACK, a round trip before; else
     the sender's timer did. A segment larger than any that arrived, sent MTU_TIMES times, does not fit through the path.

    sender's side   | data |......... stall .........| ack || data |
    receiver's side | data || ack |......... stall .........| data |

Source: RFC 9293 3.8.6 (windows), 3.7.4 (Nagle); RFC 1122 4.2.3.2; RFC 5681; RFC 6298; RFC 6675.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

from kwsniff.core.capture.packets cimport NO_TIME, Segment
from kwsniff.core.declared cimport *
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.control_block cimport ControlBlock, Direction, block_of
from kwsniff.core.tcp.progress cimport furthest
from kwsniff.core.tcp.retransmissions cimport REPEATED_ACKS, tell_event
from kwsniff.core.tcp.round_trips cimport PASSED, PASSED_TOGETHER, Passed, RoundTrips, near_trip
from kwsniff.core.tcp.segments cimport distance
from kwsniff.core.tcp.stall_marks cimport Stall
from kwsniff.core.tcp.stream_table cimport Streams
from kwsniff.core.tcp.tail_loss cimport LEAST_TIMEOUT, MOST_UNSEEN

cdef enum:
    USUAL_MSS = 1448            # of Ethernet, with timestamps
    FIRST_WINDOW = 10           # segments that a sender may have in flight in any case (RFC 6928)
    MTU_TIMES = 2
    LEAST_MTU = 1000            # payload that fits through any path: IPv6 takes packets of 1280 (RFC 8200 5)

cdef extern from *:
    """
    #define PROMPT 2000000LL
    #define QUEUED 10000000LL
    #define TIMER 150000000LL
    #define LATEST_ACK 50000000LL
    """
    const int64_t PROMPT        # what a sender takes to answer an acknowledgement with data
    const int64_t QUEUED        # a round trip that is longer by this, and twice the usual one: a queue on the way
    const int64_t LATEST_ACK    # longer than acknowledgements are delayed
    const int64_t TIMER         # later than a round trip by this: no answer to what the receiver asked for


cdef struct Known:
    bint found
    int64_t time                # when it passed here
    int64_t acked               # stream position
    int64_t edge                # stream position behind the receiver's window; its least one
    bint exact                  # the window is known


cdef void take_again(Streams* streams, Connection* connection, int sender, Segment* segment, Arrival* arrival, int32_t ahead,
                     uint32_t length, bint lost_before) noexcept nogil:
    """`length` bytes of the segment were sent before; `lost_before`: no earlier copy of them came here."""
    tell_event(streams, connection, TCP_EVENT_RETRANSMISSION, sender, sender,
               block_of(connection).direction[sender].snd.offset + ahead, length, -1, segment.time, segment.frame, streams.capture,
               lost_before)
    judge_stall(streams, connection, sender, segment, arrival, True)


cdef void judge_stall(Streams* streams, Connection* connection, int sender, Segment* segment, Arrival* arrival,
                      bint again) noexcept nogil:
    """`segment` is the first that came since; `again`: it is known to have been sent before."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Stall stall
    if again and is_needless(own, segment):
        return
    stall.since = own.trips.sent_at
    stall.first_frame = own.marks.sent_frame
    if own.queue.first != NULL:
        stall.since = own.queue.hole_since
        stall.first_frame = own.queue.first.arrival.frame
        again = True
    if stall.since < own.marks.until:
        stall.since = own.marks.until
    if stall.since <= 0 or segment.time == NO_TIME or segment.time <= stall.since + STALL_LEAST:
        return
    if not again and not streams.sink.inside(connection, sender):
        return
    stall.sender = sender
    stall.until = segment.time
    stall.took = stall.until - stall.since
    stall.offset = own.snd.offset + distance(segment.seq, own.snd.next_seq)
    stall.last_frame = segment.frame
    stall.capture = streams.capture
    stall.bytes = distance(furthest(own), own.snd.acked) if own.snd.acked_known else -1
    stall.cause = find_cause(connection, sender, segment, arrival, again, &stall)
    own.marks.until = segment.time
    streams.sink.stall(streams.sink.context, connection, &stall)


cdef inline bint is_needless(Direction* own, Segment* segment) noexcept nogil:
    """Whether its receiver had it already, or the capture has, and still misses what comes behind it."""
    cdef uint32_t end = segment.seq + segment.length
    return (own.snd.acked_known and distance(end, own.snd.acked) <= 0
            or own.queue.first != NULL and distance(end, own.snd.next_seq) <= 0)


cdef int find_cause(Connection* connection, int sender, Segment* segment, Arrival* arrival, bint again,
                    Stall* stall) noexcept nogil:
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Direction* other = &block_of(connection).direction[1 - sender]
    if 2 * closed_for(other, stall) >= stall.took:
        return STALL_CAUSE_ZERO_WINDOW
    if again:
        return why_again(connection, own, other, segment, stall)
    if other.trips.num_near == 0 and other.trips.floor == 0:
        return STALL_CAUSE_UNKNOWN
    return why_waited(block_of(connection), own, other, segment, arrival, stall)


cdef int64_t closed_for(Direction* receiver, Stall* stall) noexcept nogil:
    """How much of it the receiver had no room."""
    cdef int64_t since = receiver.traffic.closed_since, until = stall.until
    if since == NO_TIME:
        if receiver.marks.closed_until <= stall.since:
            return 0
        since = receiver.marks.closed_from
        if receiver.marks.closed_until < until:
            until = receiver.marks.closed_until
    return until - (since if since > stall.since else stall.since)


cdef int why_again(Connection* connection, Direction* own, Direction* other, Segment* segment, Stall* stall) noexcept nogil:
    cdef int64_t trip = near_trip(&own.trips) + near_trip(&other.trips)
    if own.marks.again_num and own.marks.again_offset == stall.offset:
        own.marks.again_num += 1
    else:
        own.marks.again_offset = stall.offset
        own.marks.again_num = 1
    if (block_of(connection).icmp.kind == ICMP_ERROR_TOO_BIG
            and stall.first_frame <= block_of(connection).icmp.frame <= stall.last_frame):
        return STALL_CAUSE_PATH_MTU
    if own.marks.again_num >= MTU_TIMES and segment.length > LEAST_MTU and 0 < own.traffic.largest < segment.length:
        return STALL_CAUSE_PATH_MTU
    if (own.dup_acks.num >= REPEATED_ACKS or own.sack.num) and stall.took < trip + TIMER:
        return STALL_CAUSE_FAST_RETRANSMISSION
    return STALL_CAUSE_RETRANSMISSION_TIMEOUT


cdef inline Known known_by(ControlBlock* block, Direction* own, Direction* other, int64_t number) noexcept nogil:
    """What the sender knew by the entry `number` of the acknowledgements."""
    cdef Known known
    cdef Passed* passed = &own.trips.passed[number & (PASSED - 1)]
    cdef int scale = 0
    known.found = number >= 0 and number > own.trips.num_passed - PASSED - 1 and passed.time != NO_TIME
    known.exact = own.marks.scale > 0 and other.marks.scale > 0
    if known.exact and not block.handshake.unscaled:
        scale = other.marks.scale - 1
    known.time = passed.time
    known.acked = passed.offset
    known.edge = passed.offset + (<int64_t>own.marks.windows[number & (PASSED - 1)] << scale)
    return known


cdef int why_waited(ControlBlock* block, Direction* own, Direction* other, Segment* segment, Arrival* arrival,
                    Stall* stall) noexcept nogil:
    """The segment is new. The sender knew what passed here up to a way before."""
    cdef int64_t way = near_trip(&other.trips) if other.trips.num_near else other.trips.floor
    cdef int64_t slack = PROMPT + way // 8, number = own.trips.num_passed - 1, at = own.snd.offset
    cdef int64_t full = other.marks.mss if other.marks.mss else USUAL_MSS
    cdef int64_t needs = segment.length if segment.length < full else full
    cdef Known latest, before
    while number >= 0 and own.trips.num_passed - number < PASSED and own.trips.passed[number & (PASSED - 1)].time > stall.until - way + PROMPT // 2:
        number -= 1
    latest = known_by(block, own, other, number)
    if not latest.found:
        return STALL_CAUSE_UNKNOWN
    if latest.time + way + slack + PASSED_TOGETHER < stall.until:
        stall.bytes = at - latest.acked
        if at + needs > latest.edge:
            return STALL_CAUSE_RECEIVER_WINDOW if latest.exact else STALL_CAUSE_UNKNOWN
        return why_unasked(own, other, segment, arrival, stall, way, full)
    before = known_by(block, own, other, number - 1)
    if not before.found:
        return STALL_CAUSE_UNKNOWN
    stall.bytes = at - before.acked
    if stall.bytes <= 0:
        return STALL_CAUSE_SENDER_IDLE
    # A sender with large segments to send leaves up to a third of the window unused (tcp_tso_should_defer).
    if segment.length > needs:
        needs = at_most(segment.length, (before.edge - before.acked) // 3)
    if at + needs > before.edge:
        return STALL_CAUSE_RECEIVER_WINDOW if before.exact else STALL_CAUSE_UNKNOWN
    if segment.length < full and latest.acked >= at and stall.bytes < FIRST_WINDOW * full:
        return STALL_CAUSE_NAGLE_DELAYED_ACK
    return STALL_CAUSE_LINK_QUEUE if is_queued(own, stall, 2 * full) else STALL_CAUSE_CONGESTION_WINDOW


cdef int why_unasked(Direction* own, Direction* other, Segment* segment, Arrival* arrival, Stall* stall, int64_t way,
                     int64_t full) noexcept nogil:
    """No acknowledgement was waited for."""
    # A sender spreads its congestion window over a round trip or less, two segments at a time (tcp_update_pacing_rate,
    # tcp_tso_autosize). Over more than the usual round trip the link does.
    if stall.bytes >= 2 * full and <double>stall.took * stall.bytes <= 2.0 * full * (least_trip(own) + least_trip(other)):
        return STALL_CAUSE_CONGESTION_WINDOW
    if is_queued(own, stall, 2 * full) or arrival.late >= QUEUED and 2 * arrival.late >= stall.took:
        return STALL_CAUSE_LINK_QUEUE
    if way <= STALL_LEAST:
        return STALL_CAUSE_SENDER_IDLE
    # Far away a segment may have been lost before, with nothing behind it.
    if stall.took >= LEAST_TIMEOUT + way and (own.seen.skipped or not own.seen.numbered):
        return STALL_CAUSE_RETRANSMISSION_TIMEOUT if 0 < own.seen.skipped <= MOST_UNSEEN else STALL_CAUSE_UNKNOWN
    # Only stamps tell a queue on the way from a pause.
    return STALL_CAUSE_SENDER_IDLE if segment.stamped else STALL_CAUSE_UNKNOWN


cdef inline int64_t least_trip(Direction* own) noexcept nogil:
    return own.trips.smallest if own.trips.smallest > 0 else 0


cdef inline bint is_queued(Direction* own, Stall* stall, int64_t least) noexcept nogil:
    """Whether the round trip has grown, with `least` bytes in flight or more. Near a receiver it shows only how long that
    holds acknowledgements up."""
    cdef int64_t usual = least_trip(own)
    return stall.bytes >= least and own.marks.trip > 2 * usual + (QUEUED if usual > STALL_LEAST else LATEST_ACK)


cdef inline int64_t at_most(int64_t value, int64_t most) noexcept nogil:
    return value if value < most else most


cdef void note_wider(Direction* other, Segment* segment) noexcept nogil:
    """The receiver has more room than it said with the latest acknowledgement."""
    cdef int64_t at = (other.trips.num_passed - 1) & (PASSED - 1)
    cdef Passed latest = other.trips.passed[at]
    other.marks.window = segment.window
    if other.trips.num_passed == 0 or segment.time == NO_TIME:
        return
    if latest.time == NO_TIME or not 0 <= segment.time - latest.time < PASSED_TOGETHER:
        at = other.trips.num_passed & (PASSED - 1)
        latest.time = segment.time
        other.trips.passed[at] = latest
        other.trips.num_passed += 1
    other.marks.windows[at] = segment.window
