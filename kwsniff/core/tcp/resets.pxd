# cython: language_level=3
from libc.stdint cimport int64_t

from kwsniff.core.capture.packets cimport NO_TIME, Segment
from kwsniff.core.tcp.connections cimport Arrival, Connection, Direction, Streams
from kwsniff.core.tcp.segments cimport distance

cdef extern from *:
    """
    #define RESET_PATIENCE 30000000000LL
    """
    const int64_t RESET_PATIENCE    # nanoseconds in which two peers that took no reset say something more

cdef bint resets(Direction* own, Direction* other, Segment* segment) noexcept nogil
cdef bint goes_on_after_reset(Connection* connection, int sender, Segment* segment) noexcept nogil
cdef bint doubt_reset(Streams* streams, Connection* connection, int sender, Segment* segment,
                      Arrival* arrival) noexcept nogil
cdef void drop_behind_reset(Streams* streams, Connection* connection) noexcept nogil


cdef inline bint is_reset(Connection* connection, int64_t time) noexcept nogil:
    """Whether the reset has been there for so long that nobody will gainsay it."""
    return (connection.reset_by >= 0 and not connection.ended and time != NO_TIME
            and connection.reset_time != NO_TIME and time - connection.reset_time > RESET_PATIENCE)


cdef inline bint waits_behind_reset(Connection* connection, Direction* own, Segment* segment) noexcept nogil:
    """Whether these bytes come behind a reset with a number expected, which nobody has gainsaid so far."""
    return (connection.reset_by >= 0 and connection.reset_ahead <= 0
            and distance(segment.seq + segment.length, own.at_reset) > 0)
