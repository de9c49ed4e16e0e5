# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Accessors to parts of a connection, for folders that do not know its structure.

Rules
  1. A part is inside the connection: it is there as long as that is.
  2. Only what is read per call, per row or per hole goes this way; what is read per packet is in Connection itself.

    Connection ... [ reset ] ... [ direction: snd, traffic, trips ]
                   ^ reset_of      ^ sequence_of ...
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from kwsniff.core.tcp.control_block cimport ControlBlock, block_of
from kwsniff.core.tcp.events cimport EVENTS, TcpEvent
from kwsniff.core.tcp.progress cimport furthest


cdef SendSequence* sequence_of(Connection* connection, int direction) noexcept nogil:
    return &block_of(connection).direction[direction].snd


cdef Traffic* traffic_of(Connection* connection, int direction) noexcept nogil:
    return &block_of(connection).direction[direction].traffic


cdef RoundTrips* round_trips_of(Connection* connection, int direction) noexcept nogil:
    return &block_of(connection).direction[direction].trips


cdef Handshake* handshake_of(Connection* connection) noexcept nogil:
    return &block_of(connection).handshake


cdef Closing* closing_of(Connection* connection) noexcept nogil:
    return &block_of(connection).closing


cdef Reset* reset_of(Connection* connection) noexcept nogil:
    return &block_of(connection).reset


cdef IcmpError* icmp_error_of(Connection* connection) noexcept nogil:
    return &block_of(connection).icmp


cdef uint32_t furthest_of(Connection* connection, int direction) noexcept nogil:
    """The highest number that is known of a direction."""
    return furthest(&block_of(connection).direction[direction])


cdef Connection* copy_of(Connection* connection) noexcept nogil:
    """One with everything but what is held of its streams, which stays where it is; NULL when memory is refused. The caller
    frees its events and itself."""
    cdef ControlBlock* copy = <ControlBlock*>calloc(1, sizeof(ControlBlock))
    cdef int i
    if copy == NULL:
        return NULL
    copy[0] = block_of(connection)[0]
    for i in range(2):
        copy.direction[i].queue.first = copy.direction[i].queue.last = NULL
    copy.connection.events = NULL
    if connection.num_events:
        copy.connection.events = <TcpEvent*>malloc(EVENTS * sizeof(TcpEvent))
        if copy.connection.events == NULL:
            free(copy)
            return NULL
        memcpy(copy.connection.events, connection.events, connection.num_events * sizeof(TcpEvent))
    return &copy.connection


cdef int64_t bytes_of(Connection* connection) noexcept nogil:
    """Memory that it takes, without what is held of its streams."""
    return <int64_t>(sizeof(ControlBlock) + (EVENTS * sizeof(TcpEvent) if connection.events != NULL else 0))
