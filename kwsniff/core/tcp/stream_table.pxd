# cython: language_level=3
# All connections that are followed, and where what they carry goes.
#
# Rule 1: what is kept of a connection is in control_block.pxd: here is only what the one who hands segments in has to know.
#
#     segment -> Streams [ buckets -> Connection ] -> StreamSink: bytes, gap, dropped, ended, oddity, event, stall

from libc.stdint cimport int64_t, uint64_t

from kwsniff.core.limits cimport Limits
from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.capture.samples cimport Samples
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Ages, Connection
from kwsniff.core.tcp.events cimport EVENTS, TcpEvent
from kwsniff.core.tcp.stall_marks cimport Stall

# Why captured payload bytes are not delivered.
cdef enum DropCause:
    DROP_RETRANSMITTED = 0
    DROP_OUT_OF_WINDOW = 1
    DROP_AFTER_END = 2
    DROP_NO_MEMORY = 3
    DROP_CAPTURED_TWICE = 4
    DROP_KEEP_ALIVE = 5
    DROP_FILLED = 6         # none: they are delivered, and another place saw them

cdef enum StreamOddity:
    ODD_OVERLAP = 0
    ODD_OUT_OF_WINDOW = 1
    ODD_AFTER_END = 2
    ODD_HELD_LIMIT = 3
    ODD_CONFLICT = 4
    ODD_EVICTED = 5
    ODD_RESET = 6           # an RST that no receiver would take
    ODD_RESET_TAKEN_BACK = 7
    ODD_HANDSHAKE = 8       # a SYN in the middle of a connection that continued
    ODD_FILLED = 9          # bytes from another place, see holes.pyx

cdef struct StreamSink:
    void* context
    void (*bytes)(void* context, Connection* connection, int direction, Arrival* arrival, Span data) noexcept nogil
    void (*gap)(void* context, Connection* connection, int direction, Arrival* arrival, int64_t num, int cause) noexcept nogil
    void (*dropped)(void* context, int64_t capture, int cause, int64_t num) noexcept nogil
    void (*ended)(void* context, Connection* connection) noexcept nogil
    void (*oddity)(void* context, Connection* connection, int direction, Arrival* arrival, int oddity, int64_t value) noexcept nogil
    void (*event)(void* context, Connection* connection, TcpEvent* event) noexcept nogil
    # Whether the stream of an endpoint is inside a message: what is missing there did not come in time.
    bint (*inside)(Connection* connection, int direction) noexcept nogil
    void (*stall)(void* context, Connection* connection, Stall* stall) noexcept nogil

# Where rows come from, in the order in which one analyzer of all connections gives them: a packet, and what of its work.
# Silent connections go in the order of their latest packets, resets in that in which they began to wait.
cdef enum Place:
    PLACE_FIRST = 0
    PLACE_RESETS = 0x2000000000000000
    PLACE_OWN = 0x7FFFFFFFFFFFFFFE
    PLACE_LAST = 0x7FFFFFFFFFFFFFFF

cdef struct Streams:
    Connection** buckets
    uint64_t num_buckets
    uint64_t seed
    int64_t num
    int64_t frames_before   # packets of the captures before this one
    int64_t ordinal         # of the current packet, counted over all captures from 1; the caller that hands segments in sets it
    int64_t capture
    int64_t seen_at         # number of the place where the capture was taken: a connection continues in captures of one place only
    int64_t reorder_total
    int64_t event_rooms     # connections with room for events
    int64_t block_bytes     # memory that a connection takes without them
    int64_t now             # time of the latest segment, or NO_TIME
    int64_t latest          # time of any so far
    int64_t place[2]        # see Place
    bint alone              # what became of connections may depend on those of other buckets
    Ages open
    Ages ended
    bint has_forgotten      # ended ones, by the time of another connection's packet
    Connection* last        # of the packet before
    Connection* first_reset # connections whose RST waits to be believed
    Connection* last_reset
    Limits limits
    StreamSink sink
    void* above             # the context of the caller that hands segments in
    Samples* samples        # of the current capture; or NULL: captures are not compared
    bint no_memory
    Buffer holes            # Hole: those noted,
    size_t most_holes       # and the bytes that they may take
    void* fills             # Fill, in the order of connections, senders and positions,
    int64_t num_fills
    Span filled             # and their bytes


cdef inline int64_t connections_bytes(Streams* streams) noexcept nogil:
    """What all connections take, with what is held of their streams."""
    return (streams.reorder_total + streams.num * streams.block_bytes
            + streams.event_rooms * <int64_t>(EVENTS * sizeof(TcpEvent)))
