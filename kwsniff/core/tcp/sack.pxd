# cython: language_level=3
"""What a receiver says it has behind a hole: selective acknowledgements.

Rules
  1. Only what lies behind the acknowledgement tells something new. What lies before it, as what came twice does
     (D-SACK), had been acknowledged already; what came twice inside another block is part of that.
  2. Ranges that touch are one. At most SACKED are kept, and of more those that were reported latest; what the
     acknowledgement passed is forgotten.
  3. A receiver may drop what it had reported (RFC 2018 8): it was on the wire anyway.

    acked           next_seq
    --[ missing ]------|----[ sacked ]----[ sacked ]

Source: RFC 2018 3, 4, 8; RFC 2883 4.
"""

from libc.stdint cimport uint32_t

from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.bytes.span cimport Span, be32, drop
from kwsniff.core.tcp.connections cimport GAP_LOST, GAP_NOT_CAPTURED, SACKED, Direction, Range
from kwsniff.core.tcp.progress cimport WINDOW
from kwsniff.core.tcp.segments cimport distance


cdef inline void take_sack(Direction* own, Segment* segment) noexcept nogil:
    """The receiver of this direction sent the segment."""
    cdef Span blocks = segment.sack
    cdef uint32_t start, end
    while blocks.num >= 8:
        start = be32(blocks, 0)
        end = be32(blocks, 4)
        blocks = drop(blocks, 8)
        if (distance(start, segment.ack) > 0 and distance(end, start) > 0
                and 0 < distance(end, own.next_seq) <= WINDOW and distance(start, own.next_seq) <= WINDOW):
            add_range(own, start, end)


cdef inline void add_range(Direction* own, uint32_t start, uint32_t end) noexcept nogil:
    """As the latest one, with those that it touches in it."""
    cdef uint32_t i, num = 0
    cdef Range each
    for i in range(own.num_sacked):
        each = own.sacked[i]
        if distance(start, each.end) > 0 or distance(each.start, end) > 0:
            own.sacked[num] = each
            num += 1
            continue
        if distance(each.start, start) < 0:
            start = each.start
        if distance(each.end, end) > 0:
            end = each.end
    if num == SACKED:
        num -= 1
        for i in range(num):
            own.sacked[i] = own.sacked[i + 1]
    own.sacked[num].start = start
    own.sacked[num].end = end
    own.num_sacked = num + 1


cdef inline void forget_ranges(Direction* own, uint32_t acked) noexcept nogil:
    """Those that the acknowledgement has passed."""
    cdef uint32_t i, num = 0
    for i in range(own.num_sacked):
        if distance(own.sacked[i].end, acked) > 0:
            own.sacked[num] = own.sacked[i]
            num += 1
    own.num_sacked = num


cdef inline bint stands_in_range(Direction* own, uint32_t* end) noexcept nogil:
    """Whether the bytes from `next_seq` on were received, and up to where at most, before `end`, that is so."""
    cdef uint32_t i
    cdef bint inside = False
    for i in range(own.num_sacked):
        if distance(own.sacked[i].end, own.next_seq) <= 0:
            continue
        if distance(own.sacked[i].start, own.next_seq) <= 0:
            inside = True
            if distance(own.sacked[i].end, end[0]) < 0:
                end[0] = own.sacked[i].end
        elif distance(own.sacked[i].start, end[0]) < 0:
            end[0] = own.sacked[i].start
    return inside


cdef inline int judge_hole(Direction* own, uint32_t* end) noexcept nogil:
    """What became of the missing bytes from `next_seq` on, as far before `end` as it is the same."""
    if own.acked_known:
        if distance(own.acked, end[0]) >= 0:
            return GAP_NOT_CAPTURED
        if 0 < distance(own.acked, own.next_seq) <= WINDOW:
            end[0] = own.acked
            return GAP_NOT_CAPTURED
    return GAP_NOT_CAPTURED if stands_in_range(own, end) else GAP_LOST


cdef inline bint never_came(Direction* own, Direction* other, uint32_t end) noexcept nogil:
    """Whether the receiver acknowledged that it has not got the missing bytes from `next_seq` to `end`: it has a range behind them,
    or asked for the first of them again, or closed without them. `other`: what the receiver sends."""
    cdef uint32_t i
    if not own.acked_known or distance(own.acked, own.next_seq) > 0:
        return False
    for i in range(own.num_sacked):
        if distance(own.sacked[i].start, end) >= 0:
            return True
    return other.fin or own.repeated_acks > 0 and own.acked == own.next_seq
