# cython: language_level=3
"""Where a direction without a SYN begins.

Rules
  1. Where its sender stood, or its receiver before anything else was seen, shows what is before its first payload.
     Elsewhere it begins at the lowest number of the first packets: what comes is held until that is settled.
  2. Positions count from the first byte. What the other direction holds already said how far its sender had come in
     this one: that becomes a position now, and moves along when an earlier byte comes.

    acked_from         seq
    ----|--------------[####]       held while `beginning`
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.tcp.connections cimport Connection, Direction, Held
from kwsniff.core.tcp.progress cimport WINDOW
from kwsniff.core.tcp.segments cimport distance


cdef inline void place_acks(Direction* own, Direction* other) noexcept nogil:
    """Where in `own` those had come that the other direction holds already."""
    cdef Held* held = other.held
    while held != NULL:
        if held.has_ack and held.arrival.acked < 0 and 0 <= distance(held.ack, own.next_seq) <= WINDOW:
            held.arrival.acked = own.offset + distance(held.ack, own.next_seq)
        held = held.next


cdef inline void begin_stream(Connection* connection, Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """The first payload of a direction."""
    cdef int32_t before = distance(segment.seq, own.sent) if own.sent_known else 0
    own.known = True
    own.next_seq = segment.seq
    if 1 < before <= WINDOW:            # one number before the next one is a keep-alive
        own.next_seq = own.sent
    elif not own.sent_known and not (own.acked_known and own.acked == segment.seq == own.acked_from):
        own.beginning = True
        own.begun_at = connection.packets
    own.first_seq = own.next_seq
    place_acks(own, other)


cdef inline void begin_earlier(Direction* own, Direction* other, uint32_t seq) noexcept nogil:
    """Positions count from the first byte: what was said of them moves along."""
    cdef Held* held = other.held
    cdef int64_t more = own.next_seq - seq
    while held != NULL:
        if held.arrival.acked >= 0:
            held.arrival.acked += more
        held = held.next
    own.next_seq = seq
    own.first_seq = seq
    place_acks(own, other)
