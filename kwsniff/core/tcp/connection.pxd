# cython: language_level=3
# A connection as all folders see it: whose it is, when it was seen, and what the folders below tcp keep for it.
#
# Rule 1: it is the beginning of a ControlBlock, which only tcp and saved states know (control_block.pxd). It is never
# allocated or copied by itself.
# Rule 2: what other folders read of the rest, they read through parts.pxd: a field there recompiles only those who do.
#
#     ControlBlock   [ Connection ][ links, handshake, closing, reset, ICMP ][ direction 0 ][ direction 1 ]
#                    ^ all folders   ^ tcp; others through parts.pxd

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memset

from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.events cimport TcpEvent

cdef struct Connection:
    # Of every packet.
    void* kafka             # what the folders below keep for this connection
    Connection* older
    Connection* newer
    int64_t ordinal         # of its latest packet
    int64_t num_ids         # that were given to calls since that packet
    int64_t packets
    int64_t last_time
    int64_t last_frame
    bint ended
    int opener              # endpoint that sent the SYN, or -1
    uint8_t address[2][16]  # [0] is the smaller endpoint; direction d is what endpoint d sends
    uint16_t port[2]
    uint32_t encapsulation  # of the first packet that came through tunnels; see Segment
    int64_t last_capture    # number of the capture that has it
    # Of its beginning and its end.
    int64_t id              # ordinal of the packet that opened it
    int64_t capture         # number of the capture it began in
    int64_t first_time
    int64_t first_frame
    int64_t duplicates      # packets captured again
    bint refused            # its SYN was answered by an RST
    int end
    TcpEvent* events        # that wait, see kafka/tcp_events.pyx: NULL, or room for EVENTS, half of what the rest takes
    int num_events
    int64_t events_seen
    int64_t events_lost     # of these, beyond the limit

# Connections by their latest segment.
cdef struct Ages:
    Connection* oldest
    Connection* newest
    int64_t num


cdef inline Arrival latest_arrival(Connection* connection) noexcept nogil:
    """For what is noticed when no packet comes any more."""
    cdef Arrival arrival
    memset(&arrival, 0, sizeof(Arrival))
    arrival.time = connection.last_time
    arrival.frame = connection.last_frame
    arrival.acked = -1
    arrival.capture = connection.last_capture
    arrival.ready = arrival.time
    return arrival
