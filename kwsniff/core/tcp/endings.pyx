# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""How a connection ends: what was held is handed on, what is missing is named, and the reason is recorded.

Rules
  1. What was acknowledged or passed by its sender's own numbers and never shown is a gap like any other.
  2. A FIN takes a number and is not a byte.
  3. A connection ends once; what hands on bytes may have ended it.

    next_seq v         acked            furthest
    ---------[ missing ][ lost, unconfirmed ][FIN]

Source: RFC 9293 3.4, 3.6.
"""

from libc.stdint cimport uint32_t

from kwsniff.core.declared cimport ENDING_FIN, ENDING_RESET, TCP_EVENT_REFUSED, TCP_EVENT_RESET
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection, latest_arrival
from kwsniff.core.tcp.connections cimport drop_events, mark_ended, unlink_reset
from kwsniff.core.tcp.stream_table cimport Streams
from kwsniff.core.tcp.control_block cimport Direction, block_of
from kwsniff.core.tcp.delivery cimport declare_gap, drain_queue
from kwsniff.core.tcp.handshakes cimport pass_over_syn
from kwsniff.core.tcp.progress cimport furthest
from kwsniff.core.tcp.retransmissions cimport end_repeated_acks, tell_event
from kwsniff.core.tcp.resets cimport drop_behind_reset, waits_behind_reset
from kwsniff.core.tcp.segments cimport WINDOW, distance
from kwsniff.core.tcp.window_check cimport is_at_fin, skip_queued


cdef void settle_tail(Streams* streams, Connection* connection, int sender) noexcept nogil:
    """Nothing more comes: what the receiver had, or the sender had come to, and the capture has not, is missing."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Arrival arrival = latest_arrival(connection)
    cdef uint32_t to_seq
    if not own.snd.known or connection.ended or is_at_fin(own):
        return
    if own.snd.acked_known and distance(own.snd.acked, own.snd.next_seq) <= WINDOW:
        to_seq = own.snd.acked - is_behind_fin(own, own.snd.acked)
        if distance(to_seq, own.snd.next_seq) > 0:
            declare_gap(streams, connection, sender, to_seq, &arrival)
    to_seq = furthest(own)
    to_seq -= is_behind_fin(own, to_seq)
    if not connection.ended and 0 < distance(to_seq, own.snd.next_seq) <= WINDOW:
        declare_gap(streams, connection, sender, to_seq, &arrival)


cdef inline uint32_t is_behind_fin(Direction* own, uint32_t number) noexcept nogil:
    """1 for the number that a FIN takes, which is not a byte. Where one number is left at a stream's end, it was a FIN's."""
    cdef uint32_t i
    if own.snd.fin:
        return number == own.snd.fin_seq + 1
    for i in range(own.sack.num):
        if own.sack.ranges[i].end == number and own.sack.ranges[i].start + 1 == number:
            return True
    return number == own.snd.next_seq + 1


cdef void end_connection(Streams* streams, Connection* connection, int why) noexcept nogil:
    cdef Arrival arrival
    cdef int i
    if connection.ended:
        return
    if waits_behind_reset(connection):
        drop_behind_reset(streams, connection, 0)
        drop_behind_reset(streams, connection, 1)
    for i in range(2):
        if is_at_fin(&block_of(connection).direction[i]):
            skip_queued(streams, connection, i, NULL, block_of(connection).direction[i].snd.fin_seq)
        drain_queue(streams, connection, i)
    settle_tail(streams, connection, 0)
    settle_tail(streams, connection, 1)
    if connection.ended:
        return
    for i in range(2):
        if block_of(connection).direction[i].snd.other_syn and block_of(connection).handshake.other_opener == i:
            arrival = latest_arrival(connection)
            pass_over_syn(streams, connection, i, &arrival)
    if block_of(connection).reset.by >= 0:
        why = ENDING_RESET
        unlink_reset(streams, connection)
    elif block_of(connection).direction[0].snd.fin and block_of(connection).direction[1].snd.fin and why != ENDING_RESET:
        why = ENDING_FIN           # its last acknowledgement may not have been seen
    end_repeated_acks(streams, connection, 0)
    end_repeated_acks(streams, connection, 1)
    if why == ENDING_RESET and block_of(connection).reset.sender >= 0:
        tell_event(streams, connection, TCP_EVENT_REFUSED if connection.refused else TCP_EVENT_RESET, block_of(connection).reset.sender, -1,
                   -1, -1, -1, block_of(connection).reset.time, block_of(connection).reset.frame, block_of(connection).reset.capture)
    mark_ended(streams, connection, True)
    connection.end = why
    streams.sink.ended(streams.sink.context, connection)
    drop_events(streams, connection)
    connection.kafka = NULL
