# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Ordered bytes and gaps of one direction to length-prefixed frames.

Rules
  1. A frame that lies whole in what arrives is handed on where it lies; only frames over several segments are copied.
  2. Memory grows with the bytes that arrive, never with the length that a prefix claims. A frame beyond
     `frame_kept_bytes` keeps its start and goes by.
  3. A gap inside a frame of known length costs that frame its rest and nothing else: the next frame begins where
     this one ends. A gap over a frame's start, or a length that cannot be, puts the stream out of step.
  4. Out of step, a position is taken for a frame's start only if what is known of the connection says so (`look`),
     and the frame found there must then prove itself (Frame.found). Responses of unknown requests are believed in when
     three headers in a row are where the one before says, with correlation ids that count up.
  5. A frame of which its receiver wanted no more is torn where the connection was closed.
  6. Every captured byte is part of one frame or is reported as passed over.

    | size u32 | size bytes ...... | size u32 | ...
      need = 4 + size
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from kwsniff.core.bytes.buffer cimport Buffer, append, contents, release, reserve_towards, shrink
from kwsniff.core.limits cimport Limits
from kwsniff.core.bytes.span cimport Span, be32, copy_out, drop, keep, make_span
from kwsniff.core.tcp.arrivals cimport GAP_CUT, GAP_CUT_OFF, GAP_LOST, GAP_NOT_CAPTURED, GAP_PASSED_OVER, Arrival

cdef enum:
    PREFIX = 4
    ID_BYTES = 4                # a correlation id follows the size
    SHORT_SEGMENT = 8           # fewer bytes are not a header of a response
    SPARE_BYTES = 65536         # a frame buffer up to this size is kept for the next frame
    SPARE_TOTAL = 1 << 22       # while all together are this few: spare buffers count as current frames
    CHAIN_STEP = 16             # how far correlation ids of neighbours may be apart: some requests get no response


cdef void free_framing(Framing* framing, int64_t* kept_total) noexcept nogil:
    kept_total[0] -= <int64_t>framing.kept.cap
    release(&framing.kept)


cdef inline void begin_frame(Framing* framing, int64_t* kept_total) noexcept nogil:
    if framing.kept.len:
        kept_total[0] -= <int64_t>framing.kept.cap
        shrink(&framing.kept, SPARE_BYTES if kept_total[0] < SPARE_TOTAL else 0)
        kept_total[0] += <int64_t>framing.kept.cap
    framing.have = 0
    framing.need = 0
    framing.captured = 0
    framing.torn = False
    framing.found = FOUND_IN_STEP


cdef void lose_step(Framing* framing, int64_t* kept_total) noexcept nogil:
    begin_frame(framing, kept_total)
    framing.state = FRAMING_LOST
    framing.searched = 0
    framing.chain_num = 0
    framing.tail_num = 0


cdef void fall_out(Framing* framing, FrameSink* sink, int64_t* kept_total, Arrival* arrival, int64_t offset,
                   int64_t value) noexcept nogil:
    if framing.captured:
        sink.passed(sink.context, sink.kafka, framing.capture, framing.captured, False)
    lose_step(framing, kept_total)
    sink.out_of_step(sink.context, sink.kafka, framing.direction, arrival, offset, True, value)


cdef inline void note_hole(Framing* framing, int64_t end) noexcept nogil:
    """What could not be read ends at this stream position."""
    if framing.hole_end < end:
        framing.hole_end = end


cdef inline void doubt_frames(Framing* framing) noexcept nogil:
    """What is here is not a frame, although nothing is missing. After a search the cause is the one that began it."""
    if framing.found == FOUND_IN_STEP:
        framing.gap_cause = GAP_PASSED_OVER


cdef bint keep_bytes(Framing* framing, Limits* limits, int64_t* kept_total, Span data) noexcept nogil:
    """Keeps the next bytes of the current frame, unless that would pass a limit; then the frame is torn there."""
    cdef int64_t cap = <int64_t>framing.kept.cap
    if framing.torn:
        return True
    if (<int64_t>(framing.kept.len + data.num) > limits.frame_kept_bytes
            or kept_total[0] + <int64_t>data.num > limits.frame_kept_bytes_total):
        framing.torn = True
        framing.cause = -1
        return False
    if cap >= SPARE_BYTES and kept_total[0] + 4 * cap < limits.frame_kept_bytes_total // 2:
        reserve_towards(&framing.kept, data.num, <size_t>framing.need)
    if not append(&framing.kept, data):
        framing.torn = True
        framing.cause = -1
        return False
    kept_total[0] += <int64_t>framing.kept.cap - cap
    return True


cdef inline void count_captured(Framing* framing, FrameSink* sink, Arrival* arrival, int64_t num) noexcept nogil:
    if framing.capture != arrival.capture:
        if framing.captured:
            sink.passed(sink.context, sink.kafka, framing.capture, framing.captured, True)
        framing.captured = 0
        framing.capture = arrival.capture
    framing.captured += num


cdef bint complete(Framing* framing, FrameSink* sink, Arrival* arrival, Span data, bint ended) noexcept nogil:
    cdef Frame frame
    cdef bint ours
    frame.bytes = data
    frame.length = framing.need
    frame.offset = framing.offset
    frame.first = framing.first
    frame.last = arrival[0]
    frame.torn = framing.torn
    frame.cause = framing.cause
    frame.found = framing.found
    frame.captured = framing.captured
    frame.capture = framing.capture
    frame.ended = ended
    ours = sink.frame(sink.context, sink.kafka, framing.direction, &frame)
    if ours:
        framing.captured = 0        # the rooms above account for them now
    return ours


cdef void feed_framing(Framing* framing, FrameSink* sink, Limits* limits, int64_t* kept_total,
                       Arrival* arrival, int64_t offset, Span data) noexcept nogil:
    """`offset`: stream position of data's first byte."""
    cdef size_t take
    cdef Span rest
    while data.num:
        if framing.state == FRAMING_IGNORED:
            sink.passed(sink.context, sink.kafka, arrival.capture, <int64_t>data.num, False)
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
                doubt_frames(framing)
                note_hole(framing, offset)
                fall_out(framing, sink, kept_total, arrival, offset, framing.need)
                continue
            if take:                        # the prefix came in pieces
                framing.have += <int64_t>take
                count_captured(framing, sink, arrival, <int64_t>take)
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
        count_captured(framing, sink, arrival, <int64_t>take)
        offset += <int64_t>take
        if framing.have == framing.need:
            if complete(framing, sink, arrival, data, True):
                begin_frame(framing, kept_total)
            elif framing.state == FRAMING_IN_STEP:
                doubt_frames(framing)
                note_hole(framing, offset)
                fall_out(framing, sink, kept_total, arrival, framing.offset, framing.need)
        data = rest


cdef size_t read_prefix(Framing* framing, Limits* limits, int64_t* kept_total, Span data) noexcept nogil:
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
        if not keep_bytes(framing, limits, kept_total, keep(data, take)):
            framing.need = -1               # no room for a size: the frame is lost, its size is not 0
            return 0
        if framing.have + <int64_t>take < PREFIX:
            return take
        size = be32(contents(&framing.kept), 0)
    framing.need = PREFIX + <int64_t>size
    if <int64_t>size > limits.frame_bytes:      # as `look` judges it, or a frame is found and refused for ever
        framing.need = -<int64_t>size
    return take


cdef size_t search(Framing* framing, FrameSink* sink, Limits* limits, int64_t* kept_total, Arrival* arrival,
                   int64_t offset, Span data) noexcept nogil:
    """Looks for a frame's start in `data`; returns the bytes passed over. A start that is cut off at the end of a
    segment is waited for only where the segment is nothing else: frames mostly begin where segments begin."""
    cdef size_t at = 0
    if framing.tail_num and framing.tail_num + data.num < SHORT_SEGMENT:
        if framing.capture != arrival.capture and framing.num_early == 0:
            framing.num_early = 1
            framing.early[0] = <int64_t>framing.tail_num
            framing.early_capture[0] = framing.capture
            framing.captured = 0
            framing.capture = arrival.capture
        if framing.capture == arrival.capture:
            copy_out(data, 0, &framing.tail[framing.tail_num], data.num)
            framing.tail_num += data.num
            framing.searched += <int64_t>data.num
            framing.captured += <int64_t>data.num
            return data.num
        drop_tail(framing, sink)            # of three captures
    if framing.tail_num and begins_with_tail(framing, sink, limits, kept_total, data):
        return 0
    while at < data.num:
        if sink.look(sink.context, sink.kafka, framing.direction, drop(data, at), at == 0) == LOOK_YES:
            return resume(framing, sink, kept_total, arrival, offset, at)
        at += 1
    if framing.direction == 1 and sink.may_chain(sink.context, sink.kafka):
        if framing.chain_num < CHAIN_LENGTH:
            follow_chain(framing, limits, arrival, offset, data)
        if framing.chain_num == CHAIN_LENGTH:
            at = <size_t>(framing.chain_next - offset)
            sink.chained(sink.context, sink.kafka, framing.chain, CHAIN_LENGTH - 1)
            return resume(framing, sink, kept_total, arrival, offset, at)
    framing.searched += <int64_t>data.num
    if data.num < SHORT_SEGMENT:
        copy_out(data, 0, framing.tail, data.num)
        framing.tail_num = data.num
        framing.tail_offset = offset
        framing.tail_first = arrival[0]
        count_captured(framing, sink, arrival, <int64_t>data.num)
    else:
        note_hole(framing, offset + <int64_t>data.num)
        sink.passed(sink.context, sink.kafka, arrival.capture, <int64_t>data.num, False)
    return data.num


cdef bint begins_with_tail(Framing* framing, FrameSink* sink, Limits* limits, int64_t* kept_total,
                           Span data) noexcept nogil:
    """Whether a frame began with the short segment before; if so, the stream is in step behind it."""
    cdef Buffer joined
    cdef uint8_t[8] tail
    cdef size_t num = framing.tail_num, split = <size_t>framing.early[0] if framing.num_early else 0
    cdef int64_t capture = framing.capture
    cdef Arrival first = framing.tail_first
    cdef int look = LOOK_NO
    memset(&joined, 0, sizeof(Buffer))
    memcpy(tail, framing.tail, num)
    if append(&joined, make_span(tail, num)) and append(&joined, data):
        look = sink.look(sink.context, sink.kafka, framing.direction, contents(&joined), True)
    release(&joined)
    if look != LOOK_YES:
        drop_tail(framing, sink)
        return False
    framing.tail_num = 0
    framing.num_early = 0
    framing.captured = 0            # counted again as the frame's
    framing.searched -= <int64_t>num
    resume(framing, sink, kept_total, &first, framing.tail_offset, 0)
    feed_framing(framing, sink, limits, kept_total, &first, framing.tail_offset, keep(make_span(tail, num), split))
    first.capture = capture
    feed_framing(framing, sink, limits, kept_total, &first, framing.tail_offset + <int64_t>split,
                 drop(make_span(tail, num), split))
    if framing.state == FRAMING_LOST:       # memory has no room for it: it must not be found again and again
        drop_tail(framing, sink)
        return False
    return True


cdef void drop_tail(Framing* framing, FrameSink* sink) noexcept nogil:
    if framing.tail_num:
        note_hole(framing, framing.tail_offset + <int64_t>framing.tail_num)
        framing.tail_num = 0
        if framing.num_early:
            sink.passed(sink.context, sink.kafka, framing.early_capture[0], framing.early[0], False)
            framing.num_early = 0
        sink.passed(sink.context, sink.kafka, framing.capture, framing.captured, False)
        framing.captured = 0


cdef size_t resume(Framing* framing, FrameSink* sink, int64_t* kept_total, Arrival* arrival, int64_t offset,
                   size_t at) noexcept nogil:
    cdef int64_t searched = framing.searched + <int64_t>at
    if at:
        note_hole(framing, offset + <int64_t>at)
        sink.passed(sink.context, sink.kafka, arrival.capture, <int64_t>at, False)
    begin_frame(framing, kept_total)
    framing.state = FRAMING_IN_STEP
    framing.found = FOUND_INSIDE if at else FOUND_AT_SEGMENT
    if framing.chain_num == CHAIN_LENGTH:
        framing.found = FOUND_IN_STEP       # the chain was its proof
    framing.chain_num = 0
    sink.out_of_step(sink.context, sink.kafka, framing.direction, arrival, offset + <int64_t>at, False, searched)
    return at


cdef void follow_chain(Framing* framing, Limits* limits, Arrival* arrival, int64_t offset,
                       Span data) noexcept nogil:
    """Reads the headers in `data` that are where a chain of responses needs them. When chain_num has reached
    CHAIN_LENGTH, chain_next is the position of the header that completes the chain."""
    cdef int64_t at, end = offset + <int64_t>data.num
    cdef Link* link
    cdef uint32_t size
    cdef int32_t step
    if framing.chain_num == 0:
        framing.chain_next = offset         # a frame may begin with this segment
    while framing.chain_next < end:
        if framing.chain_num:
            link = &framing.chain[framing.chain_num - 1]
            if framing.chain_next > offset:
                link.ended = True
                link.last = arrival[0]
        at = framing.chain_next - offset
        size = be32(drop(data, <size_t>at), 0) if at >= 0 else 0
        if at < 0 or <int64_t>data.num - at < 8 or size < 4 or size > limits.frame_kept_bytes:
            framing.chain_num = 0
            return
        if framing.chain_num:
            step = <int32_t>(be32(drop(data, <size_t>at), 4) - <uint32_t>framing.chain[framing.chain_num - 1].correlation_id)
            if step < 1 or step > CHAIN_STEP:
                framing.chain_num = 0
                return
        link = &framing.chain[framing.chain_num]
        link.offset = framing.chain_next
        link.length = PREFIX + <int64_t>size
        link.correlation_id = <int32_t>be32(drop(data, <size_t>at), 4)
        link.first = arrival[0]
        link.ended = False
        framing.chain_num += 1
        if framing.chain_num == CHAIN_LENGTH:
            return
        framing.chain_next += link.length
    if framing.chain_num and framing.chain_next == end:
        link = &framing.chain[framing.chain_num - 1]
        link.ended = True
        link.last = arrival[0]


cdef void skip_framing(Framing* framing, FrameSink* sink, Limits* limits, int64_t* kept_total,
                       Arrival* arrival, int64_t offset, int64_t num, int cause) noexcept nogil:
    """`num` bytes from stream position `offset` on are missing; -1: an unknown number."""
    cdef int64_t take
    framing.gaps += 1
    framing.gap_cause = cause
    note_hole(framing, offset + (num if num >= 0 else 1))
    if cause == GAP_LOST:
        framing.lost_end = framing.hole_end
    if framing.state != FRAMING_IN_STEP:
        if framing.state == FRAMING_START:
            framing.state = FRAMING_LOST
        drop_tail(framing, sink)
        if num < 0 or framing.chain_next < offset + num:
            framing.chain_num = 0
        return
    if num >= 0 and framing.need > 0:
        take = framing.need - framing.have
        if not framing.torn:
            framing.torn = True
            framing.cause = cause
        elif framing.cause == GAP_NOT_CAPTURED and cause == GAP_LOST:
            framing.cause = cause
        if num < take:
            framing.have += num
            return
        framing.have = framing.need
        if complete(framing, sink, arrival, contents(&framing.kept), cause == GAP_CUT):
            begin_frame(framing, kept_total)
            if num == take:
                return
        num -= take
        offset += take
        if framing.state != FRAMING_IN_STEP:
            return
    fall_out(framing, sink, kept_total, arrival, offset, num)


cdef void cut_off_framing(Framing* framing, FrameSink* sink, int64_t* kept_total, Arrival* arrival) noexcept nogil:
    """The receiver closed inside the current frame: what came of it is handed on, if that is enough to know it."""
    if framing.state != FRAMING_IN_STEP or framing.have < PREFIX + ID_BYTES or framing.have >= framing.need or (
            framing.torn and framing.cause >= 0):
        return
    framing.torn = True
    framing.cause = GAP_CUT_OFF
    if complete(framing, sink, arrival, contents(&framing.kept), False):
        begin_frame(framing, kept_total)
