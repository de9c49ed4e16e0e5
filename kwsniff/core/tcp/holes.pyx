# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Holes that are noted, and filled when captures are read again.

Rules
  1. A hole is named by its connection and its position in the stream: numbers of TCP come again after 4 GiB.
  2. It is filled as soon as a packet shows that its bytes have passed: one behind it, or its acknowledgement. What was
     not missed does not look late, out of order or lost.
  3. When the bytes passed here nobody knows: they have no time, and the frame of the packet that showed it.
  4. They count as bytes of the stream, and in a bin of their own.

    next_seq v
    ---------[ hole ][ segment ]        fill_held: before the segment is taken
    ---------[ hole ]  <- ack           fill_held: before the acknowledgement is taken
    ---------[ hole ][####]             fill_hole: before a gap is declared
"""

from libc.stdint cimport int64_t, uint32_t

from kwsniff.core.bytes.buffer cimport append_raw
from kwsniff.core.bytes.span cimport make_span
from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.capture.samples cimport hash_end
from kwsniff.core.tcp.arrivals cimport GAP_NOT_CAPTURED
from kwsniff.core.tcp.control_block cimport Direction, block_of
from kwsniff.core.tcp.delivery cimport deliver, deliver_queued
from kwsniff.core.tcp.reorder_queue cimport is_reached
from kwsniff.core.tcp.resets cimport waits_behind_reset
from kwsniff.core.tcp.segments cimport distance
from kwsniff.core.tcp.stream_table cimport DROP_FILLED, ODD_FILLED


cdef void note_hole(Streams* streams, Connection* connection, int sender, int64_t num, int cause) noexcept nogil:
    """Before the stream has gone on behind it."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Hole hole
    if streams.holes.len + sizeof(Hole) > streams.most_holes:
        return
    hole.connection = connection.id
    hole.sender = sender
    hole.offset = own.snd.offset
    hole.num = num
    hole.seq = own.snd.next_seq
    hole.is_received = cause == GAP_NOT_CAPTURED
    hole.source = hash_end(connection.address[sender], connection.port[sender])
    hole.target = hash_end(connection.address[1 - sender], connection.port[1 - sender])
    append_raw(&streams.holes, &hole, sizeof(Hole))


cdef int64_t find_fill(Streams* streams, Connection* connection, int sender, int64_t offset) noexcept nogil:
    """Number of the first one that ends behind this position of the stream, or behind the whole stream."""
    cdef Fill* fills = <Fill*>streams.fills
    cdef int64_t low = 0, high = streams.num_fills, middle
    while low < high:
        middle = (low + high) >> 1
        if (fills[middle].connection < connection.id or fills[middle].connection == connection.id and (
                fills[middle].sender < sender or fills[middle].sender == sender
                and fills[middle].offset + fills[middle].num <= offset)):
            low = middle + 1
        else:
            high = middle
    return low


cdef inline bint is_of(Streams* streams, int64_t number, Connection* connection, int sender) noexcept nogil:
    cdef Fill* fills = <Fill*>streams.fills
    return (number < streams.num_fills and fills[number].connection == connection.id
            and fills[number].sender == sender)


cdef bint fill_hole(Streams* streams, Connection* connection, int sender, Arrival* arrival, uint32_t to_seq) noexcept nogil:
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
        deliver(streams, connection, sender, make_span(streams.filled + fill.at + skipped, <size_t>num), <uint32_t>num,
                &filled)
        any = True
    return any


cdef bint fill_held(Streams* streams, Connection* connection, int sender, Arrival* arrival, uint32_t to_seq) noexcept nogil:
    """The same, and what is held behind it."""
    cdef Direction* own = &block_of(connection).direction[sender]
    if not own.snd.known or own.snd.beginning or waits_behind_reset(connection):
        return False
    if not fill_hole(streams, connection, sender, arrival, to_seq):
        return False
    if not connection.ended and is_reached(&own.queue, own.snd.next_seq):
        deliver_queued(streams, connection, sender, False)
    return True


cdef uint32_t hole_end(Streams* streams, Connection* connection, int sender, uint32_t to_seq) noexcept nogil:
    """Where bytes are known again, or `to_seq` where that comes first."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef int64_t number = find_fill(streams, connection, sender, own.snd.offset)
    cdef int64_t ahead
    if not is_of(streams, number, connection, sender):
        return to_seq
    ahead = (<Fill*>streams.fills)[number].offset - own.snd.offset
    return own.snd.next_seq + <uint32_t>ahead if 0 < ahead < distance(to_seq, own.snd.next_seq) else to_seq
