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
from kwsniff.core.tcp.arrivals cimport GAP_LOST, GAP_NOT_CAPTURED
from kwsniff.core.tcp.segments cimport WINDOW, distance
from kwsniff.core.tcp.send_sequence cimport SendSequence

# Bytes that the receiver said it has, while others before them were missing.
cdef struct Range:
    uint32_t start
    uint32_t end            # the number behind

cdef enum:
    SACKED = 8              # the number of ranges that are kept of a direction

cdef struct SackRanges:
    uint32_t num
    Range ranges[8]         # in no order


cdef inline void take_sack(SackRanges* sack, uint32_t next_seq, Segment* segment) noexcept nogil:
    """The receiver of this direction sent the segment."""
    cdef Span blocks = segment.sack
    cdef uint32_t start, end
    while blocks.num >= 8:
        start = be32(blocks, 0)
        end = be32(blocks, 4)
        blocks = drop(blocks, 8)
        if (distance(start, segment.ack) > 0 and distance(end, start) > 0
                and 0 < distance(end, next_seq) <= WINDOW and distance(start, next_seq) <= WINDOW):
            add_range(sack, start, end)


cdef inline void add_range(SackRanges* sack, uint32_t start, uint32_t end) noexcept nogil:
    """As the latest one, with those that it touches in it."""
    cdef uint32_t i, num = 0
    cdef Range each
    for i in range(sack.num):
        each = sack.ranges[i]
        if distance(start, each.end) > 0 or distance(each.start, end) > 0:
            sack.ranges[num] = each
            num += 1
            continue
        if distance(each.start, start) < 0:
            start = each.start
        if distance(each.end, end) > 0:
            end = each.end
    if num == SACKED:
        num -= 1
        for i in range(num):
            sack.ranges[i] = sack.ranges[i + 1]
    sack.ranges[num].start = start
    sack.ranges[num].end = end
    sack.num = num + 1


cdef inline void forget_ranges(SackRanges* sack, uint32_t acked) noexcept nogil:
    """Those that the acknowledgement has passed."""
    cdef uint32_t i, num = 0
    for i in range(sack.num):
        if distance(sack.ranges[i].end, acked) > 0:
            sack.ranges[num] = sack.ranges[i]
            num += 1
    sack.num = num


cdef inline bint stands_in_range(SackRanges* sack, uint32_t next_seq, uint32_t* end) noexcept nogil:
    """Whether the bytes from `next_seq` on were received, and up to where at most, before `end`, that is so."""
    cdef uint32_t i
    cdef bint inside = False
    for i in range(sack.num):
        if distance(sack.ranges[i].end, next_seq) <= 0:
            continue
        if distance(sack.ranges[i].start, next_seq) <= 0:
            inside = True
            if distance(sack.ranges[i].end, end[0]) < 0:
                end[0] = sack.ranges[i].end
        elif distance(sack.ranges[i].start, end[0]) < 0:
            end[0] = sack.ranges[i].start
    return inside


cdef inline int judge_hole(SackRanges* sack, SendSequence* snd, uint32_t* end) noexcept nogil:
    """What became of the missing bytes from `next_seq` on, as far before `end` as it is the same."""
    if snd.acked_known:
        if distance(snd.acked, end[0]) >= 0:
            return GAP_NOT_CAPTURED
        if 0 < distance(snd.acked, snd.next_seq) <= WINDOW:
            end[0] = snd.acked
            return GAP_NOT_CAPTURED
    return GAP_NOT_CAPTURED if stands_in_range(sack, snd.next_seq, end) else GAP_LOST


cdef inline bint never_came(SackRanges* sack, SendSequence* snd, SendSequence* receiver, bint asked_again, uint32_t end) noexcept nogil:
    """Whether the receiver acknowledged that it has not got the missing bytes from `next_seq` to `end`: it has a range behind them,
    or asked for the first of them again, or closed without them. `receiver`: what it sends itself;
    `asked_again`: it repeated its latest acknowledgement."""
    cdef uint32_t i
    if not snd.acked_known or distance(snd.acked, snd.next_seq) > 0:
        return False
    for i in range(sack.num):
        if distance(sack.ranges[i].start, end) >= 0:
            return True
    return receiver.fin or asked_again and snd.acked == snd.next_seq
