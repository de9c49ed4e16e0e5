# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""SYNs: at the beginning, repeated, and unexpected.

Rules
  1. A SYN in the middle of a connection means nothing until its SYN+ACK, or a segment with the number behind it, says that
     there is a new connection: a live peer answers it with a challenge. Till then its number is kept.
  2. A SYN takes a number; what it carries comes behind it (RFC 7413).
  3. A SYN behind the refusal of the same one is another attempt, unless it is a copy.

    SYN other_isn ... SYN+ACK, or data at other_isn + 1    another connection
                  ... data at next_seq                     the same one: an oddity

Source: RFC 9293 3.10.7, RFC 5961 4.
"""

from libc.stdint cimport uint32_t

from kwsniff.core.declared cimport TCP_EVENT_SYN_AGAIN
from kwsniff.core.capture.packets cimport NO_TIME, TCP_ACK, Segment
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.connections cimport begin_connection
from kwsniff.core.tcp.stream_table cimport ODD_HANDSHAKE, Streams
from kwsniff.core.tcp.control_block cimport Direction, block_of
from kwsniff.core.tcp.duplicates cimport is_copy
from kwsniff.core.tcp.retransmissions cimport tell_event
from kwsniff.core.tcp.rtt_samples cimport start_rtt_sample
from kwsniff.core.tcp.segments cimport distance


cdef bint opens_anew(Connection* connection, Segment* segment, int sender) noexcept nogil:
    """Whether this SYN belongs to another connection than the one known under these addresses and ports. If that is
    not known yet, the numbers of the other one are kept."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Direction* other = &block_of(connection).direction[1 - sender]
    if connection.packets == 0:
        return False
    if own.snd.syn and segment.seq == own.snd.isn:
        # A repeated SYN, even after the end. Windows retries where it was refused, with the same number.
        return connection.refused and not is_copy(connection, sender, segment)
    if connection.ended or block_of(connection).reset.by >= 0:
        return True
    if (segment.flags & TCP_ACK and other.snd.other_syn and not own.snd.other_syn
            and segment.ack == other.snd.other_isn + 1):
        return True
    # A SYN behind payload: the number just before the payload means that the capture recorded it late.
    if not own.snd.syn and (not own.snd.known or segment.seq + 1 == own.snd.next_seq - <uint32_t>own.snd.offset):
        return False
    # A live peer answers it with a challenge (RFC 9293 3.10.7.4); only what follows says that there is a new one.
    own.snd.other_syn = True
    own.snd.other_isn = segment.seq
    block_of(connection).handshake.other_opener = sender
    if segment.flags & TCP_ACK:
        block_of(connection).handshake.other_opener = 1 - sender
        other.snd.other_syn = True
        other.snd.other_isn = segment.ack - 1
    return False


cdef void take_syn(Streams* streams, Connection* connection, Direction* own, Segment* segment, int sender) noexcept nogil:
    if own.snd.syn:
        block_of(connection).handshake.syn_time = NO_TIME       # repeated: which of them was answered is not known
        own.trips.timed = False
        if segment.seq == own.snd.isn:
            block_of(connection).handshake.syn_retries += sender == connection.opener
            tell_event(streams, connection, TCP_EVENT_SYN_AGAIN, sender, -1, -1, -1, -1, segment.time, segment.frame,
                       streams.capture)
        return
    start_rtt_sample(own, segment, 1)
    own.snd.syn = True
    own.snd.isn = segment.seq
    own.marks.scale = 1 + (segment.scale if segment.scale >= 0 else 0)
    own.marks.mss = segment.mss
    if segment.scale < 0:
        # Windows are scaled where both SYNs say so (RFC 7323 2.2).
        block_of(connection).handshake.unscaled = True
    if not own.snd.known:
        own.snd.known = True
        own.snd.next_seq = segment.seq + 1
    segment.seq += 1                        # payload of a SYN (RFC 7413) follows the SYN's own number
    if connection.opener < 0:
        connection.opener = (1 - sender) if segment.flags & TCP_ACK else sender
    if not segment.flags & TCP_ACK:
        block_of(connection).handshake.syn_time = segment.time
        block_of(connection).handshake.first_syn_time = segment.time
    elif block_of(connection).handshake.first_syn_time != NO_TIME and segment.time >= block_of(connection).handshake.first_syn_time:
        block_of(connection).handshake.connect_time = segment.time - block_of(connection).handshake.first_syn_time


cdef void begin_behind_syn(Streams* streams, Connection* connection) noexcept nogil:
    """The connection that the SYNs kept are about begins."""
    cdef int opener = block_of(connection).handshake.other_opener
    cdef bint[2] with_syn = [block_of(connection).direction[0].snd.other_syn, block_of(connection).direction[1].snd.other_syn]
    cdef uint32_t[2] isn = [block_of(connection).direction[0].snd.other_isn, block_of(connection).direction[1].snd.other_isn]
    cdef int i
    begin_connection(streams, connection)
    for i in range(2):
        if with_syn[i]:
            connection.opener = opener
            block_of(connection).direction[i].snd.syn = True
            block_of(connection).direction[i].snd.isn = isn[i]
            block_of(connection).direction[i].snd.known = True
            block_of(connection).direction[i].snd.next_seq = isn[i] + 1


cdef void pass_over_syn(Streams* streams, Connection* connection, int sender, Arrival* arrival) noexcept nogil:
    """The side that seemed to have begun again continues as before."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef int i
    streams.sink.oddity(streams.sink.context, connection, sender, arrival, ODD_HANDSHAKE,
                        distance(own.snd.other_isn, own.snd.next_seq))
    for i in range(2):
        block_of(connection).direction[i].snd.other_syn = False
    block_of(connection).handshake.other_opener = -1
