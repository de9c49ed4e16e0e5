# cython: language_level=3
# Why a direction stalled: what its next segment, and what was acknowledged before it, tell. stall_causes.pyx
# has the rules.

from libc.stdint cimport int32_t, int64_t, uint32_t

from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.control_block cimport Direction
from kwsniff.core.tcp.stream_table cimport Streams

cdef extern from *:
    """
    #define STALL_LEAST 5000000LL
    """
    # Packets of one burst, answers of a receiver that is busy, and timers of the sender lie closer together.
    const int64_t STALL_LEAST

cdef void take_again(Streams* streams, Connection* connection, int sender, Segment* segment, Arrival* arrival, int32_t ahead,
                     uint32_t length, bint lost_before) noexcept nogil
cdef void note_wider(Direction* other, Segment* segment) noexcept nogil
cdef void judge_stall(Streams* streams, Connection* connection, int sender, Segment* segment, Arrival* arrival,
                      bint again) noexcept nogil
