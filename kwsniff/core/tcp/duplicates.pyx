# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Duplicates: one packet captured more than once.

Rules
  1. A copy has the TCP header of the packet, bit by bit, with its timestamps, and IP's identification. Only the checksum may
     differ: the sender's card makes it behind the place of a capture there. A retransmission is a packet of its own: stacks
     give it another identification, or a later timestamp.
  2. That alone is not a proof: appliances send the very same packet again. A copy comes soon after, before a host sends
     again: from another place (VLAN, tunnel, interface, time to live) within a second, from the same one within 5 ms,
     where identification or timestamp tell a sender's packets from each other; within 100 ms and 1 ms where they do not.
     A timestamp does not where the receiver had asked: what is sent again then may come in the same millisecond.
     No SYN is sent again within 5 ms, nor the only packet of its direction: nothing behind it can have been asked for.
  3. Only what would be taken for sent again is looked up: new bytes and new acknowledgements cost a store.
  4. All of this depends on the conversation's own packets, not on which others are captured.

    seen   | mark, time, place | ... the latest 64 packets of a direction, overwritten in turn

Source: RFC 6864 (identification), RFC 7323 (timestamps).
"""

from libc.stdint cimport int32_t, uint32_t

from kwsniff.core.capture.packets cimport NO_TIME, TCP_FIN, TCP_RST, TCP_SYN, Segment
from kwsniff.core.tcp.segments cimport distance
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.control_block cimport Direction, block_of
from kwsniff.core.tcp.seen_packets cimport SEEN, Seen
from kwsniff.core.tcp.resets cimport mark_reset, waits_behind_reset
from kwsniff.core.tcp.tail_loss cimport note_number

cdef enum:
    LOW_MICROS = 0xFFFFFF
    # Of 1024 nanoseconds each, as times are kept here.
    NUMBERED_ELSEWHERE = 1000000000 >> 10
    NUMBERED_HERE = 5000000 >> 10
    ELSEWHERE = 100000000 >> 10     # retransmission timeouts are 200 ms and more
    HERE = 1000000 >> 10


cdef inline uint32_t low_micros(Segment* segment) noexcept nogil:
    """Nearly: 1024 nanoseconds each cost no division."""
    return <uint32_t>(segment.time >> 10) & LOW_MICROS if segment.time != NO_TIME else 0


cdef inline uint32_t place_of(Segment* segment) noexcept nogil:
    return <uint32_t>(segment.network ^ segment.ttl) & 0xFF      # networks are hashes


cdef void remember_packet(Direction* own, Segment* segment) noexcept nogil:
    cdef Seen* seen = &own.seen.latest[own.seen.num & (SEEN - 1)]
    if segment.flags & TCP_RST:
        mark_reset(own, segment)
    note_number(own, segment)
    if own.seen.num == 0:
        own.seen.network = segment.network
    elif segment.ident != own.seen.last_ident:
        own.seen.idents_differ = True
    own.seen.last_ident = segment.ident
    own.seen.num += 1
    seen.mark = segment.mark
    seen.when = low_micros(segment) << 8 | place_of(segment)


cdef inline bint is_new(Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """Whether it can only have been sent now. What is held, or came behind the end, was not counted in `next_seq`."""
    if segment.length:
        return own.snd.known and not own.snd.beginning and segment.seq == own.snd.next_seq
    return (not segment.flags & (TCP_SYN | TCP_FIN | TCP_RST) and other.snd.acked_known
            and distance(segment.ack, other.snd.acked) > 0)


cdef bint is_copy(Connection* connection, int sender, Segment* segment) noexcept nogil:
    """Whether one of the latest packets of this direction is the same one. Payload is compared by the caller."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Direction* other = &block_of(connection).direction[1 - sender]
    cdef Seen* seen
    cdef uint32_t i, num = own.seen.num if own.seen.num < SEEN else SEEN
    cdef uint32_t micros, place
    cdef int32_t apart, most
    cdef bint numbered, too_soon
    if segment.mark == 0 or num == 0:
        return False
    if not connection.ended and not waits_behind_reset(connection) and is_new(own, other, segment):
        return False
    micros = low_micros(segment)
    place = place_of(segment)
    numbered = segment.ident and own.seen.idents_differ or segment.stamped and not own.dup_acks.num
    too_soon = segment.flags & TCP_SYN or own.seen.num == 1
    for i in range(num):
        seen = &own.seen.latest[(own.seen.num - 1 - i) & (SEEN - 1)]
        if seen.mark != segment.mark:
            continue
        # Clocks of two places may differ: the copy may seem to be older.
        apart = <int32_t>((micros - (seen.when >> 8)) << 8) >> 8
        if apart < 0:
            apart = -apart
        if seen.when & 0xFF != place:
            most = NUMBERED_ELSEWHERE if numbered else ELSEWHERE
        else:
            most = NUMBERED_HERE if numbered or too_soon else HERE
        # Without a time only another place tells.
        if apart < most and (segment.time != NO_TIME or seen.when & 0xFF != place):
            return True
    return False
