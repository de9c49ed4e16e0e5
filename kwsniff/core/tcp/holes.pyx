# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Holes that are noted, and what is known of them when captures are read again.

Rules
  1. A hole is named by its connection and its position in the stream: numbers of TCP come again after 4 GiB.
  2. What names holes is bounded; of more, those noted first count.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from kwsniff.core.bytes.buffer cimport append_raw
from kwsniff.core.bytes.span cimport make_span
from kwsniff.core.capture.samples cimport hash_end
from kwsniff.core.tcp.arrivals cimport GAP_NOT_CAPTURED
from kwsniff.core.tcp.control_block cimport Direction, block_of
from kwsniff.core.tcp.segments cimport distance


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


cdef bint is_of(Streams* streams, int64_t number, Connection* connection, int sender) noexcept nogil:
    cdef Fill* fills = <Fill*>streams.fills
    return (number < streams.num_fills and fills[number].connection == connection.id
            and fills[number].sender == sender)


cdef uint32_t hole_end(Streams* streams, Connection* connection, int sender, uint32_t to_seq) noexcept nogil:
    """Where bytes are known again, or `to_seq` where that comes first."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef int64_t number = find_fill(streams, connection, sender, own.snd.offset)
    cdef int64_t ahead
    if not is_of(streams, number, connection, sender):
        return to_seq
    ahead = (<Fill*>streams.fills)[number].offset - own.snd.offset
    return own.snd.next_seq + <uint32_t>ahead if 0 < ahead < distance(to_seq, own.snd.next_seq) else to_seq


cdef bytes tell_holes(Streams* streams):
    return (<const char*>streams.holes.data)[:streams.holes.len] if streams.holes.len else b""


cdef int use_fills(Streams* streams, bytes fills, bytes data) except -1:
    """Both have to stay where they are."""
    cdef Py_ssize_t i, num = len(fills) // <Py_ssize_t>sizeof(Fill)
    cdef const Fill* each = <const Fill*><const char*>fills
    for i in range(num):
        if each[i].begin < 0 or each[i].num <= 0 or each[i].num > len(data) or each[i].begin > len(data) - each[i].num:
            raise ValueError("bytes that are not there")
    streams.fills = <void*>each
    streams.num_fills = num
    streams.filled = make_span(<const uint8_t*><const char*>data, len(data))
    return 0
