# cython: language_level=3
"""Segments that came before those in front of them.

Rules
  1. They are kept in the order of their numbers, and in that of their coming where these are the same.
  2. One that reaches over others is kept in parts, each behind what came before it: the first copy of a byte wins.
  3. It is bounded by bytes and segments per direction, and by the bytes of all queues (`exceeds_bounds`); streams.pyx
     drains what is full.

    first -> segment, bytes -> segment, bytes -> ... <- last
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from kwsniff.core.capture.packets cimport NO_TIME, TCP_ACK, Segment
from kwsniff.core.bytes.span cimport Span, drop, keep
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.stream_table cimport Streams
from kwsniff.core.tcp.segments cimport distance

cdef struct QueuedSegment:
    QueuedSegment* next
    uint32_t seq
    uint32_t length
    uint32_t captured
    bint is_rest            # of a segment of which another part comes before it
    bint is_again           # all of its segment was held already, and it is counted as sent again
    bint has_ack
    bint stamped
    uint32_t stamp          # of its sender's clock
    uint32_t ack            # the other direction may not have begun yet, see midstream.pxd
    Arrival arrival
    uint8_t* data

cdef struct ReorderQueue:
    QueuedSegment* first
    QueuedSegment* last
    bint catching_up        # waits, in the middle of handing on, for what the other direction had sent before
    bint mending            # held segments are handed on because what was missing has come
    int64_t evidence_at     # packets of the connection when the receiver was first seen to have missing bytes
    int64_t mended          # nanoseconds that the stream waited for segments that then came
    int64_t bytes
    int64_t num
    int64_t hole_since      # when the hole before the held segments was noticed
    int64_t ready           # when the latest segment handed on, while others were held behind it, was ready


cdef inline bint is_queued(ReorderQueue* queue, uint32_t seq, uint32_t length) noexcept nogil:
    """Whether all of these bytes are held already."""
    cdef QueuedSegment* queued = queue.first
    if queue.last == NULL or distance(queue.last.seq + queue.last.length, seq) <= 0:
        return False
    while queued != NULL and distance(queued.seq, seq) <= 0:
        if distance(queued.seq + queued.length, seq + length) >= 0:
            return True
        if distance(queued.seq + queued.length, seq) > 0:
            length -= queued.seq + queued.length - seq
            seq = queued.seq + queued.length
        queued = queued.next
    return False


cdef inline bint exceeds_bounds(Streams* streams, ReorderQueue* queue, uint32_t length) noexcept nogil:
    """Whether a segment of this length exceeds a limit of its queue, or that of all queues together."""
    return (queue.bytes + length > streams.limits.reorder_bytes or queue.num >= streams.limits.reorder_segments
            or streams.reorder_total + length > streams.limits.reorder_bytes_total)


cdef inline size_t enqueue_segment(Streams* streams, ReorderQueue* queue, Segment* segment, Arrival* arrival,
                             bint is_again) noexcept nogil:
    """Copies the segment into its place; how many bytes of it were not kept because memory was refused."""
    cdef QueuedSegment** link = &queue.first
    cdef QueuedSegment* queued
    cdef uint32_t done = 0
    cdef uint32_t num
    if queue.first == NULL:
        queue.hole_since = segment.time
        queue.ready = NO_TIME
    if queue.last != NULL and distance(segment.seq, queue.last.seq) >= 0:
        link = &queue.last.next
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
            queue.last = queued
        queue.bytes += queued.length
        queue.num += 1
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


cdef inline QueuedSegment* unhold_next(Streams* streams, ReorderQueue* queue, QueuedSegment* before) noexcept nogil:
    """The one behind `before`, or the first one where that is NULL, which is the caller's now."""
    cdef QueuedSegment* queued = queue.first if before == NULL else before.next
    if before == NULL:
        queue.first = queued.next
    else:
        before.next = queued.next
    if queued.next == NULL:
        queue.last = before
    queue.bytes -= queued.length
    queue.num -= 1
    streams.reorder_total -= <int64_t>(sizeof(QueuedSegment) + queued.captured)
    return queued


cdef inline QueuedSegment* unhold_first(Streams* streams, ReorderQueue* queue) noexcept nogil:
    return unhold_next(streams, queue, NULL)


cdef inline bint is_reached(ReorderQueue* queue, uint32_t next_seq) noexcept nogil:
    """Whether the first of what is held follows what was handed on."""
    return queue.first != NULL and distance(queue.first.seq, next_seq) <= 0


cdef inline uint32_t held_to(ReorderQueue* queue, uint32_t next_seq) noexcept nogil:
    """The number behind what was handed on and what is held without a hole behind it."""
    cdef uint32_t to_seq = next_seq
    cdef QueuedSegment* queued = queue.first
    while queued != NULL and distance(queued.seq, to_seq) <= 0:
        if distance(queued.seq + queued.length, to_seq) > 0:
            to_seq = queued.seq + queued.length
        queued = queued.next
    return to_seq


cdef inline void drop_queued(Streams* streams, ReorderQueue* queue) noexcept nogil:
    while queue.first != NULL:
        free(unhold_first(streams, queue))
