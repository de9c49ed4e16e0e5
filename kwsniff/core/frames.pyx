# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Ordered bytes and gaps of one direction to length-prefixed frames.

Rules
  1. A frame that lies whole in what arrives is handed on where it lies; only frames over several segments are copied.
  2. Memory grows with the bytes that arrive, never with the length that a prefix claims. A frame beyond
     `frame_kept_bytes` keeps its start and goes by.
  3. A gap inside a frame of known length costs that frame its rest and nothing else: the next frame begins where
     this one ends. A gap over a frame's start, or a length that cannot be, puts the stream out of step.
  4. Out of step, a position is taken for a frame's start only if what is known of the connection says so (`look`).

    | size u32 | size bytes ...... | size u32 | ...
      need = 4 + size
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memset

from kwsniff.core.buffer cimport Buffer, append, contents, release, shrink
from kwsniff.core.limits cimport Limits
from kwsniff.core.octets cimport Octets, be32, drop, keep
from kwsniff.core.streams cimport Arrival

cdef enum:
    PREFIX = 4
    SPARE_BYTES = 65536         # a frame buffer up to this size is kept for the next frame


cdef void free_framing(Framing* framing, int64_t* kept_total) noexcept nogil:
    kept_total[0] -= <int64_t>framing.kept.cap
    release(&framing.kept)


cdef inline void begin_frame(Framing* framing, int64_t* kept_total) noexcept nogil:
    if framing.kept.len:
        kept_total[0] -= <int64_t>framing.kept.cap
        shrink(&framing.kept, SPARE_BYTES)
        kept_total[0] += <int64_t>framing.kept.cap
    framing.have = 0
    framing.need = 0
    framing.torn = False
    framing.found = False


cdef void lose_step(Framing* framing, int64_t* kept_total) noexcept nogil:
    begin_frame(framing, kept_total)
    framing.state = FRAMING_LOST
    framing.searched = 0


cdef void fall_out(Framing* framing, FrameSink* sink, int64_t* kept_total, Arrival* arrival, int64_t offset,
                   int64_t value) noexcept nogil:
    lose_step(framing, kept_total)
    sink.out_of_step(sink.context, sink.dialog, framing.direction, arrival, offset, True, value)


cdef bint keep_bytes(Framing* framing, Limits* limits, int64_t* kept_total, Octets data) noexcept nogil:
    """Keeps the next bytes of the frame under way, unless that would pass a limit; then the frame is torn there."""
    cdef int64_t cap = <int64_t>framing.kept.cap
    if framing.torn:
        return True
    if (<int64_t>(framing.kept.len + data.num) > limits.frame_kept_bytes
            or kept_total[0] + <int64_t>data.num > limits.frame_kept_bytes_total
            or not append(&framing.kept, data)):
        framing.torn = True
        framing.cause = -1
        return False
    kept_total[0] += <int64_t>framing.kept.cap - cap
    return True


cdef bint complete(Framing* framing, FrameSink* sink, Arrival* arrival, Octets data) noexcept nogil:
    cdef Frame frame
    frame.bytes = data
    frame.length = framing.need
    frame.offset = framing.offset
    frame.first = framing.first
    frame.last = arrival[0]
    frame.torn = framing.torn
    frame.cause = framing.cause
    frame.found = framing.found
    return sink.frame(sink.context, sink.dialog, framing.direction, &frame)


cdef void feed_framing(Framing* framing, FrameSink* sink, Limits* limits, int64_t* kept_total,
                       Arrival* arrival, int64_t offset, Octets data) noexcept nogil:
    """`offset`: stream position of data's first byte."""
    cdef size_t take
    cdef Octets rest
    while data.num:
        if framing.state == FRAMING_IGNORED:
            return
        if framing.state == FRAMING_LOST:
            take = search(framing, sink, limits, kept_total, arrival, offset, data)
            offset += <int64_t>take
            data = drop(data, take)
            continue
        if framing.have == 0:
            framing.first = arrival[0]
            framing.offset = offset
        if framing.need == 0:
            take = read_prefix(framing, limits, kept_total, data)
            if framing.need < 0:
                fall_out(framing, sink, kept_total, arrival, offset, framing.need)
                continue
            if take:                        # the prefix came in pieces
                framing.have += <int64_t>take
                offset += <int64_t>take
                data = drop(data, take)
                if framing.need == 0 or framing.have < framing.need:
                    continue
        take = data.num
        if <int64_t>take > framing.need - framing.have:
            take = <size_t>(framing.need - framing.have)
        rest = drop(data, take)
        data = keep(data, take)
        if framing.have or framing.have + <int64_t>take < framing.need:
            keep_bytes(framing, limits, kept_total, data)
            data = contents(&framing.kept)
        framing.have += <int64_t>take
        offset += <int64_t>take
        if framing.have == framing.need:
            if complete(framing, sink, arrival, data):
                begin_frame(framing, kept_total)
            elif framing.state == FRAMING_IN_STEP:
                fall_out(framing, sink, kept_total, arrival, framing.offset, framing.need)
        data = rest


cdef size_t read_prefix(Framing* framing, Limits* limits, int64_t* kept_total, Octets data) noexcept nogil:
    """Sets `need` once four bytes are there (negative: no frame has that length). Returns the bytes of `data` that
    were kept: 0 when the prefix lies whole in it."""
    cdef size_t take = 0
    cdef uint32_t size
    if framing.have == 0 and data.num >= PREFIX:
        size = be32(data, 0)
    else:
        take = <size_t>(PREFIX - framing.have)
        if take > data.num:
            take = data.num
        keep_bytes(framing, limits, kept_total, keep(data, take))
        if framing.have + <int64_t>take < PREFIX:
            return take
        size = be32(contents(&framing.kept), 0)
    framing.need = PREFIX + <int64_t>size
    if framing.need > limits.frame_bytes:
        framing.need = -<int64_t>size
    return take


cdef size_t search(Framing* framing, FrameSink* sink, Limits* limits, int64_t* kept_total, Arrival* arrival,
                   int64_t offset, Octets data) noexcept nogil:
    """Looks for a frame's start in `data`; returns the bytes passed over. A start that is cut off at the end of the
    segment is not waited for: frames mostly begin where segments begin, and the next one will do."""
    cdef size_t at = 0
    while at < data.num:
        if sink.look(sink.context, sink.dialog, framing.direction, drop(data, at), at == 0) == LOOK_YES:
            begin_frame(framing, kept_total)
            framing.state = FRAMING_IN_STEP
            framing.found = True
            sink.out_of_step(sink.context, sink.dialog, framing.direction, arrival, offset + <int64_t>at, False,
                             framing.searched + <int64_t>at)
            return at
        at += 1
    framing.searched += <int64_t>data.num
    return data.num


cdef void skip_framing(Framing* framing, FrameSink* sink, Limits* limits, int64_t* kept_total,
                       Arrival* arrival, int64_t offset, int64_t num, int cause) noexcept nogil:
    """`num` bytes from stream position `offset` on are missing; -1: nobody knows how many."""
    cdef int64_t take
    framing.gaps += 1
    if framing.state != FRAMING_IN_STEP:
        if framing.state == FRAMING_START:
            framing.state = FRAMING_LOST
        return
    if num >= 0 and framing.need > 0:
        take = framing.need - framing.have
        if not framing.torn:
            framing.torn = True
            framing.cause = cause
        if num < take:
            framing.have += num
            return
        framing.have = framing.need
        if complete(framing, sink, arrival, contents(&framing.kept)):
            begin_frame(framing, kept_total)
            if num == take:
                return
        num -= take
        offset += take
        if framing.state != FRAMING_IN_STEP:
            return
    fall_out(framing, sink, kept_total, arrival, offset, num)
