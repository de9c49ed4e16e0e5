# cython: language_level=3
"""Segments that came before those in front of them.

Rules
  1. They are kept in the order of their numbers, and in that of their coming where these are the same.
  2. One that reaches over others is kept in parts, each behind what came before it: the first copy of a byte wins.
  3. Bounds are the caller's; what is held is counted here.

    held -> segment, bytes -> segment, bytes -> ... <- held_last
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from kwsniff.core.capture.packets cimport NO_TIME, TCP_ACK, Segment
from kwsniff.core.bytes.span cimport Span, drop, keep
from kwsniff.core.tcp.connections cimport Arrival, Direction, QueuedSegment, Streams
from kwsniff.core.tcp.segments cimport distance


cdef inline bint is_queued(Direction* own, uint32_t seq, uint32_t length) noexcept nogil:
    """Whether all of these bytes are held already."""
    cdef QueuedSegment* queued = own.queued
    if own.queue_last == NULL or distance(own.queue_last.seq + own.queue_last.length, seq) <= 0:
        return False
    while queued != NULL and distance(queued.seq, seq) <= 0:
        if distance(queued.seq + queued.length, seq + length) >= 0:
            return True
        if distance(queued.seq + queued.length, seq) > 0:
            length -= queued.seq + queued.length - seq
            seq = queued.seq + queued.length
        queued = queued.next
    return False


cdef inline size_t enqueue_segment(Streams* streams, Direction* own, Segment* segment, Arrival* arrival,
                             bint is_again) noexcept nogil:
    """Copies the segment into its place; how many bytes of it were not kept because memory was refused."""
    cdef QueuedSegment** link = &own.queued
    cdef QueuedSegment* queued
    cdef uint32_t done = 0
    cdef uint32_t num
    if own.queued == NULL:
        own.hole_since = segment.time
        own.queue_ready = NO_TIME
    if own.queue_last != NULL and distance(segment.seq, own.queue_last.seq) >= 0:
        link = &own.queue_last.next
    while done < segment.length:
        while link[0] != NULL and distance(segment.seq + done, link[0].seq) >= 0:
            link = &link[0].next
        num = segment.length - done
        if link[0] != NULL and distance(segment.seq + segment.length, link[0].seq) > 0:
            num = link[0].seq - segment.seq - done
        queued = make_queued(segment, done, num, arrival)
        if queued == NULL:
            streams.no_memory = True
            return drop(segment.payload, done).num
        queued.is_again = is_again
        queued.next = link[0]
        link[0] = queued
        link = &queued.next
        if queued.next == NULL:
            own.queue_last = queued
        own.reorder_bytes += queued.length
        own.reorder_num += 1
        streams.reorder_total += <int64_t>(sizeof(QueuedSegment) + queued.captured)
        done += num
    return 0


cdef inline QueuedSegment* make_queued(Segment* segment, uint32_t at, uint32_t num, Arrival* arrival) noexcept nogil:
    cdef Span payload = keep(drop(segment.payload, at), num)
    cdef QueuedSegment* queued = <QueuedSegment*>malloc(sizeof(QueuedSegment) + payload.num)
    if queued != NULL:
        queued.seq = segment.seq + at
        queued.length = num
        queued.captured = <uint32_t>payload.num
        queued.is_rest = at > 0
        queued.arrival = arrival[0]
        queued.has_ack = segment.flags & TCP_ACK != 0
        queued.ack = segment.ack
        queued.stamped = segment.stamped
        queued.stamp = segment.stamp
        queued.data = <uint8_t*>&queued[1]
        memcpy(queued.data, payload.at, payload.num)
    return queued


cdef inline QueuedSegment* unhold_next(Streams* streams, Direction* own, QueuedSegment* before) noexcept nogil:
    """The one behind `before`, or the first one where that is NULL, which is the caller's now."""
    cdef QueuedSegment* queued = own.queued if before == NULL else before.next
    if before == NULL:
        own.queued = queued.next
    else:
        before.next = queued.next
    if queued.next == NULL:
        own.queue_last = before
    own.reorder_bytes -= queued.length
    own.reorder_num -= 1
    streams.reorder_total -= <int64_t>(sizeof(QueuedSegment) + queued.captured)
    return queued


cdef inline QueuedSegment* unhold_first(Streams* streams, Direction* own) noexcept nogil:
    return unhold_next(streams, own, NULL)


cdef inline bint is_reached(Direction* own) noexcept nogil:
    """Whether the first of what is held follows what was handed on."""
    return own.queued != NULL and distance(own.queued.seq, own.next_seq) <= 0


cdef inline uint32_t held_to(Direction* own) noexcept nogil:
    """The number behind what was handed on and what is held without a hole behind it."""
    cdef uint32_t to_seq = own.next_seq
    cdef QueuedSegment* queued = own.queued
    while queued != NULL and distance(queued.seq, to_seq) <= 0:
        if distance(queued.seq + queued.length, to_seq) > 0:
            to_seq = queued.seq + queued.length
        queued = queued.next
    return to_seq


cdef inline void drop_queued(Streams* streams, Direction* own) noexcept nogil:
    while own.queued != NULL:
        free(unhold_first(streams, own))
