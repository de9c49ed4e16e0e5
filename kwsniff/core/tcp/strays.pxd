# cython: language_level=3
"""Numbers far ahead that their sender never came to.

Rules
  1. What is under way is never more than its receiver has room for. Who goes on further below a number than that has not
     sent it: a FIN or an acknowledgement of another connection, or a forged one.
  2. What was seen up to it, held or acknowledged, stands for it.

    next_seq             + flight, LEAST_WINDOW or more
    ---|--- segment --------------|------------------- FIN
"""

from libc.stdint cimport int32_t, uint32_t

from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.tcp.connections cimport ODD_OUT_OF_WINDOW, Arrival, Connection, Direction, Streams
from kwsniff.core.tcp.progress cimport LEAST_WINDOW, fits, furthest
from kwsniff.core.tcp.segments cimport distance


cdef inline void doubt_sent(Streams* streams, Connection* connection, int sender, Segment* segment,
                            Arrival* arrival) noexcept nogil:
    """Takes back how far the sender seemed to have come, and its FIN, where it goes on far below."""
    cdef Direction* own = &connection.direction[sender]
    cdef Arrival stray = arrival[0]
    cdef uint32_t far = own.sent
    cdef uint32_t shown = segment.seq + segment.length
    cdef int32_t room = LEAST_WINDOW
    if not own.sent_known or distance(far, shown) <= room or not own.known or own.beginning or not fits(own, shown):
        return
    own.sent_known = False
    if distance(furthest(own), shown) > 0:
        shown = furthest(own)
    if <int32_t>own.flight > room:
        room = <int32_t>own.flight
    if distance(far, shown) <= room:
        own.sent_known = True
        return
    stray.frame = own.sent_frame
    stray.time = own.sent_time
    streams.sink.oddity(streams.sink.context, connection, sender, &stray, ODD_OUT_OF_WINDOW, distance(far, shown))
    if not own.fin or distance(own.fin_seq, shown) <= room:
        return
    own.fin = False
    if connection.closer == sender and connection.fin_by == sender and connection.reset_by < 0:
        connection.closer = -1
    if connection.fin_by == sender:
        connection.fin_by = -1
