# cython: language_level=3
# All that is kept of a connection while it is followed: what RFC 9293 calls its transmission control block, of both ends.
#
# Rule 1: only the rooms of tcp and saved states know it: a field costs a compilation of those, not of what asks for calls.
# Rule 2: one allocation, its parts by value. A Connection is its beginning: `block_of` is a cast.
# Rule 3: what every packet touches comes first, in the block and in each direction: the numbers, the counters, the
# times. Rings and what only losses or resets touch come behind that.
# Rule 4: fields of four bytes lie in pairs. The size of a Direction decides how `direction[i]` is found: of 33 * 64 bytes
# by three shifts and sums each time, 1.7 % of the core's instructions per call; of 8 bytes more by one product.
#
#     ControlBlock   [ Connection | links | reset ... ][ Direction 0 ][ Direction 1 ]
#     Direction      [ snd | traffic | queue | clock | trips ... | seen ... | rings ]
#
# Source: RFC 9293 3.3.1.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.lifecycle cimport Closing, Handshake, IcmpError, Reset, ResetMarks
from kwsniff.core.tcp.overlap cimport RecentPayload
from kwsniff.core.tcp.reorder_queue cimport ReorderQueue
from kwsniff.core.tcp.round_trips cimport RoundTrips
from kwsniff.core.tcp.sack cimport SackRanges
from kwsniff.core.tcp.seen_packets cimport SeenPackets
from kwsniff.core.tcp.stall_marks cimport StallMarks
from kwsniff.core.tcp.send_sequence cimport SendSequence
from kwsniff.core.tcp.timestamps cimport SenderClock
from kwsniff.core.tcp.traffic cimport Traffic

# A run of acknowledgements: the receiver asks for something that is missing.
cdef struct DuplicateAcks:
    int num                 # in a row,
    int64_t time            # since this packet
    int64_t frame
    int64_t capture

# What numbers far ahead are checked by, see window_check.pxd.
cdef struct WindowCheck:
    int64_t strange         # consecutive segments far outside the window
    int64_t sent_frame      # the packet that said how far its sender had come
    int64_t sent_time
    bint sent_stamped
    uint32_t sent_stamp     # and when, by its own clock
    int64_t acked_frame     # the latest acknowledgement that covered bytes not shown by then
    int64_t acked_time
    uint32_t fewer_acked    # the highest of those since that covered less,
    uint32_t fewer_acks     # and how many these are in a row

cdef struct Direction:
    SendSequence snd
    Traffic traffic
    ReorderQueue queue
    DuplicateAcks dup_acks
    SenderClock clock
    WindowCheck check
    RoundTrips trips
    StallMarks marks
    SackRanges sack
    ResetMarks reset_marks  # of the latest reset
    RecentPayload recent
    SeenPackets seen

# Its places in the table and the lists, see connections.pyx.
cdef struct Links:
    int64_t touched         # ordinal of its latest packet, copies of packets included
    bint is_behind          # its latest packet came when others had shown later times
    uint64_t hash
    Connection* chain       # same hash bucket
    int64_t seen_at         # see Streams
    int64_t reset_touched   # when its RST began to wait
    Connection* reset_older # of those that wait like this
    Connection* reset_newer

cdef struct ControlBlock:
    Connection connection
    Links links
    Reset reset
    Handshake handshake
    Closing closing
    IcmpError icmp
    Direction direction[2]


cdef inline ControlBlock* block_of(Connection* connection) noexcept nogil:
    return <ControlBlock*>connection
