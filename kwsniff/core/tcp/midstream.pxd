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
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stream_table cimport DROP_KEEP_ALIVE, Streams
from kwsniff.core.tcp.control_block cimport Direction
from kwsniff.core.tcp.reorder_queue cimport QueuedSegment
from kwsniff.core.tcp.delivery cimport drop_payload
from kwsniff.core.tcp.reorder_queue cimport unhold_first
from kwsniff.core.tcp.segments cimport WINDOW, distance


cdef inline void place_acks(Direction* own, Direction* other) noexcept nogil:
    """Where in `own` those had come that the other direction holds already."""
    cdef QueuedSegment* queued = other.queue.first
    while queued != NULL:
        if queued.has_ack and queued.arrival.acked < 0 and 0 <= distance(queued.ack, own.snd.next_seq) <= WINDOW:
            queued.arrival.acked = own.snd.offset + distance(queued.ack, own.snd.next_seq)
        queued = queued.next


cdef inline void begin_stream(Connection* connection, Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """The first payload of a direction."""
    cdef int32_t before = distance(segment.seq, own.snd.sent) if own.snd.sent_known else 0
    own.snd.known = True
    own.snd.next_seq = segment.seq
    if 1 < before <= WINDOW:            # one number before the next one is a keep-alive
        own.snd.next_seq = own.snd.sent
    elif not own.snd.sent_known and not (own.snd.acked_known and own.snd.acked == segment.seq == own.snd.acked_from):
        own.snd.beginning = True
        own.snd.begun_at = connection.packets
    own.snd.first_seq = own.snd.next_seq
    place_acks(own, other)


cdef inline void begin_earlier(Direction* own, Direction* other, uint32_t seq) noexcept nogil:
    """Positions count from the first byte: what was said of them moves along."""
    move_beginning(own, other, seq)
    place_acks(own, other)


cdef inline void move_beginning(Direction* own, Direction* other, uint32_t seq) noexcept nogil:
    """The first byte has this number."""
    cdef QueuedSegment* queued = other.queue.first
    cdef int64_t more = distance(own.snd.next_seq, seq)
    while queued != NULL:
        if queued.arrival.acked >= 0:
            queued.arrival.acked = queued.arrival.acked + more if queued.arrival.acked + more > 0 else 0
        queued = queued.next
    own.snd.next_seq = seq
    own.snd.first_seq = seq


cdef inline bint is_first_keep_alive(Direction* own) noexcept nogil:
    """Whether the first of what is held is one: nothing else than one like it is held."""
    return (own.queue.first != NULL and own.queue.first.length == 1 and own.queue.last.seq == own.queue.first.seq and own.queue.last.length == 1
            and own.snd.acked_known and own.snd.acked == own.queue.first.seq + 1)


cdef inline void drop_keep_alives(Streams* streams, Direction* own, Direction* other) noexcept nogil:
    """What was seen of a direction, before anything else, and was no byte of it."""
    cdef QueuedSegment* queued
    while is_first_keep_alive(own):
        queued = unhold_first(streams, &own.queue)
        drop_payload(streams, &queued.arrival, DROP_KEEP_ALIVE, queued.captured)
        if queued.seq == own.snd.next_seq:
            move_beginning(own, other, queued.seq + 1)
        free(queued)
