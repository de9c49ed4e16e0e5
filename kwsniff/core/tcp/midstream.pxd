# cython: language_level=3
"""Where a direction without a SYN begins.

Rules
  1. The position of its sender, or of its receiver before anything else was seen, shows what is before its first payload.
     Elsewhere it begins at the lowest number of the first packets: what comes is held until that is settled.
  2. A single first byte that was acknowledged before it came is a keep-alive: no side of Kafka sends bytes one by one.
  3. Positions count from the first byte. What the other direction holds already said how far its sender had come in
     this one: that becomes a position now, and moves along when an earlier byte comes.

    acked_from         seq
    ----|--------------[####]       held while `beginning`
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free

from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.tcp.connections cimport DROP_KEEP_ALIVE, Connection, Direction, QueuedSegment, Streams
from kwsniff.core.tcp.delivery cimport drop_payload
from kwsniff.core.tcp.reorder_queue cimport unhold_first
from kwsniff.core.tcp.progress cimport WINDOW
from kwsniff.core.tcp.segments cimport distance


cdef inline void place_acks(Direction* own, Direction* other) noexcept nogil:
    """Where in `own` those had come that the other direction holds already."""
    cdef QueuedSegment* queued = other.queued
    while queued != NULL:
        if queued.has_ack and queued.arrival.acked < 0 and 0 <= distance(queued.ack, own.next_seq) <= WINDOW:
            queued.arrival.acked = own.offset + distance(queued.ack, own.next_seq)
        queued = queued.next


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
    move_beginning(own, other, seq)
    place_acks(own, other)


cdef inline void move_beginning(Direction* own, Direction* other, uint32_t seq) noexcept nogil:
    """The first byte has this number."""
    cdef QueuedSegment* queued = other.queued
    cdef int64_t more = distance(own.next_seq, seq)
    while queued != NULL:
        if queued.arrival.acked >= 0:
            queued.arrival.acked = queued.arrival.acked + more if queued.arrival.acked + more > 0 else 0
        queued = queued.next
    own.next_seq = seq
    own.first_seq = seq


cdef inline bint is_first_keep_alive(Direction* own) noexcept nogil:
    """Whether the first of what is held is one: nothing else than one like it is held."""
    return (own.queued != NULL and own.queued.length == 1 and own.queue_last.seq == own.queued.seq and own.queue_last.length == 1
            and own.acked_known and own.acked == own.queued.seq + 1)


cdef inline void drop_keep_alives(Streams* streams, Direction* own, Direction* other) noexcept nogil:
    """What was seen of a direction, before anything else, and was no byte of it."""
    cdef QueuedSegment* queued
    while is_first_keep_alive(own):
        queued = unhold_first(streams, own)
        drop_payload(streams, &queued.arrival, DROP_KEEP_ALIVE, queued.captured)
        if queued.seq == own.next_seq:
            move_beginning(own, other, queued.seq + 1)
        free(queued)
