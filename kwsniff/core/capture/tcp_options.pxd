# cython: language_level=3
"""What a segment says in options: blocks that were received, and in a SYN what its sender takes.

Rule 1: an option that was captured in part says what of it is there; one of length 0 or 1 ends the search.

    kind | length | value ...        kind 0: the end, kind 1: a filler of one byte

Source: RFC 9293 3.1, RFC 2018 3, RFC 7323 2.
"""

from libc.stdint cimport uint32_t

from kwsniff.core.capture.reader cimport Segment
from kwsniff.core.bytes.span cimport Span, be16, drop, keep, u8

cdef enum:
    OPTION_MSS = 2
    OPTION_SCALE = 3
    OPTION_SACK = 5
    MOST_SCALE = 14             # a larger one means this (RFC 7323 2.3)


cdef inline Span find_option(Span options, uint32_t wanted) noexcept nogil:
    """What the option of this kind says, as far as it was captured."""
    cdef uint32_t kind, length
    while options.num > 1:
        kind = u8(options, 0)
        if kind == 0:
            break
        length = 1 if kind == 1 else u8(options, 1)
        if kind == wanted:
            return keep(drop(options, 2), length - 2) if length >= 2 else keep(options, 0)
        if length == 0:
            break
        options = drop(options, length)
    return keep(options, 0)


cdef inline void read_syn(Span options, Segment* segment) noexcept nogil:
    cdef Span scale = find_option(options, OPTION_SCALE), mss = find_option(options, OPTION_MSS)
    segment.scale = -1
    if scale.num:
        segment.scale = <int>u8(scale, 0) if u8(scale, 0) < MOST_SCALE else <int>MOST_SCALE
    segment.mss = be16(mss, 0) if mss.num >= 2 else 0
