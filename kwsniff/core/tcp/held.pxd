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
from kwsniff.core.octets.octets cimport Octets, drop, keep
from kwsniff.core.tcp.connections cimport Arrival, Direction, Held, Streams
from kwsniff.core.tcp.segments cimport distance


cdef inline bint is_held(Direction* own, uint32_t seq, uint32_t length) noexcept nogil:
    """Whether all of these bytes are held already."""
    cdef Held* held = own.held
    if own.held_last == NULL or distance(own.held_last.seq + own.held_last.length, seq) <= 0:
        return False
    while held != NULL and distance(held.seq, seq) <= 0:
        if distance(held.seq + held.length, seq + length) >= 0:
            return True
        if distance(held.seq + held.length, seq) > 0:
            length -= held.seq + held.length - seq
            seq = held.seq + held.length
        held = held.next
    return False


cdef inline size_t keep_held(Streams* streams, Direction* own, Segment* segment, Arrival* arrival,
                             bint is_again) noexcept nogil:
    """Copies the segment into its place; how many bytes of it were not kept because memory was refused."""
    cdef Held** link = &own.held
    cdef Held* held
    cdef uint32_t done = 0
    cdef uint32_t num
    if own.held == NULL:
        own.hole_since = segment.time
        own.held_ready = NO_TIME
    if own.held_last != NULL and distance(segment.seq, own.held_last.seq) >= 0:
        link = &own.held_last.next
    while done < segment.length:
        while link[0] != NULL and distance(segment.seq + done, link[0].seq) >= 0:
            link = &link[0].next
        num = segment.length - done
        if link[0] != NULL and distance(segment.seq + segment.length, link[0].seq) > 0:
            num = link[0].seq - segment.seq - done
        held = make_held(segment, done, num, arrival)
        if held == NULL:
            streams.no_memory = True
            return drop(segment.payload, done).num
        held.is_again = is_again
        held.next = link[0]
        link[0] = held
        link = &held.next
        if held.next == NULL:
            own.held_last = held
        own.held_bytes += held.length
        own.held_num += 1
        streams.held_total += <int64_t>(sizeof(Held) + held.captured)
        done += num
    return 0


cdef inline Held* make_held(Segment* segment, uint32_t at, uint32_t num, Arrival* arrival) noexcept nogil:
    cdef Octets payload = keep(drop(segment.payload, at), num)
    cdef Held* held = <Held*>malloc(sizeof(Held) + payload.num)
    if held != NULL:
        held.seq = segment.seq + at
        held.length = num
        held.captured = <uint32_t>payload.num
        held.is_rest = at > 0
        held.arrival = arrival[0]
        held.has_ack = segment.flags & TCP_ACK != 0
        held.ack = segment.ack
        held.stamped = segment.stamped
        held.stamp = segment.stamp
        held.data = <uint8_t*>&held[1]
        memcpy(held.data, payload.at, payload.num)
    return held


cdef inline Held* unhold_next(Streams* streams, Direction* own, Held* before) noexcept nogil:
    """The one behind `before`, or the first one where that is NULL, which is the caller's now."""
    cdef Held* held = own.held if before == NULL else before.next
    if before == NULL:
        own.held = held.next
    else:
        before.next = held.next
    if held.next == NULL:
        own.held_last = before
    own.held_bytes -= held.length
    own.held_num -= 1
    streams.held_total -= <int64_t>(sizeof(Held) + held.captured)
    return held


cdef inline Held* unhold_first(Streams* streams, Direction* own) noexcept nogil:
    return unhold_next(streams, own, NULL)


cdef inline bint is_reached(Direction* own) noexcept nogil:
    """Whether the first of what is held follows what was handed on."""
    return own.held != NULL and distance(own.held.seq, own.next_seq) <= 0


cdef inline uint32_t held_to(Direction* own) noexcept nogil:
    """The number behind what was handed on and what is held without a hole behind it."""
    cdef uint32_t to_seq = own.next_seq
    cdef Held* held = own.held
    while held != NULL and distance(held.seq, to_seq) <= 0:
        if distance(held.seq + held.length, to_seq) > 0:
            to_seq = held.seq + held.length
        held = held.next
    return to_seq


cdef inline void drop_held(Streams* streams, Direction* own) noexcept nogil:
    while own.held != NULL:
        free(unhold_first(streams, own))
