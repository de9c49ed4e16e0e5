# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The records that a bucket reads of a part of a capture, one behind the other, and how they are fed.

Rules
  1. Records are as the capture has them. Those that lie side by side make one run, whose header tells which they are.
  2. Runs are trusted to come from a walk, but not to be whole: reading never leaves them, and what does not fit ends it.
  3. What all buckets read is there once: two streams are read at a time, whichever is behind.
  4. Of a capture that can be read again, long runs are named by their offset, and their records read there, a window
     at a time, as they are fed (shuffle_windows.pyx).

    runs      (packets to skip, packets, bytes: u32 each | records, or their offset: u64)*
    shared    runs | PartEnd
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from kwsniff.core.bytes.buffer cimport append, append_raw, contents
from kwsniff.core.bytes.span cimport Span, copy_out, drop, keep
from kwsniff.core.capture.shuffle_windows cimport SEEN_ALL, SEEN_ERROR, SEEN_NO_MEMORY, Window, is_seen, look_at, seen_from
from kwsniff.core.capture.packets cimport NO_TIME, STOP_NONE, Reader, feed_reader

import os

from kwsniff.errors import CaptureError

cdef enum:
    MOST_GAP = 1 << 13          # bytes that cost no more than a request
    MANY_BYTES = 1 << 16        # of a window: others' packets between ours are read with them
    MOST_RUN = 1 << 28          # bytes
    MOST_FRAMES = 0x1000000000000000
    MOST_OFFSET = 0x4000000000000000


# -- writing ----------------------------------------------------------------------------------------------------

cdef bint take_record(Place* place, Span record, uint64_t end, int64_t frame, int64_t frames, uint32_t epoch,
                      uint32_t least_named) noexcept nogil:
    """Adds a record with `frame` packets of the part before it, which ends at `end` of the capture. Runs of `least_named`
    bytes are named, with 0 none. False when memory is refused, and for a record that no header can tell the size of."""
    if record.num >= <size_t>NAMED:
        return False
    if (not place.begun or frame != place.frames or epoch != place.epoch
            or least_named and place.end != end - record.num or place.run.num + record.num > <size_t>MOST_RUN):
        end_place(place)
        place.run.skip = <uint32_t>(frame - place.frames)
        place.run.packets = 0
        place.run.num = 0
        place.header_at = place.out.len
        if not append_raw(&place.out, &place.run, sizeof(RunHeader)):
            return False
        place.begun = True
        place.epoch = epoch
    if (least_named and not place.named and place.run.num + record.num >= least_named
            and not name_run(place, end - record.num - place.run.num)):
        return False
    if place.named:
        place.elsewhere += record.num
    elif not append(&place.out, record):
        return False
    place.run.num += <uint32_t>record.num
    place.run.packets += <uint32_t>frames
    place.frames = frame + frames
    place.end = end
    return True


cdef bint name_run(Place* place, uint64_t begin) noexcept nogil:
    """The bytes that were copied of the current run are named instead."""
    place.out.len = place.header_at + sizeof(RunHeader)
    place.named = True
    place.elsewhere += place.run.num
    return append_raw(&place.out, &begin, NAMED_BYTES)


cdef void end_place(Place* place) noexcept nogil:
    """Completes the current run, if there is one."""
    cdef RunHeader header = place.run
    if place.begun:
        if place.named:
            header.num |= <uint32_t>NAMED
        memcpy(<void*>drop(contents(&place.out), place.header_at).at, &header, sizeof(RunHeader))
    place.begun = place.named = False


# -- reading ----------------------------------------------------------------------------------------------------

cdef void next_run(Run* run) noexcept nogil:
    cdef RunHeader header
    run.begun = False
    if run.left.num == 0:
        run.ended = True
        return
    if run.left.num < sizeof(RunHeader):
        run.broken = True
        return
    run.named = take_header(&run.left, &header, &run.offset)
    run.frames_before += run.frames
    if (header.num == 0 or not run.named and header.num > run.left.num or header.packets > header.num
            or run.frames_before > <int64_t>MOST_FRAMES):
        run.broken = True
        return
    run.frames_before += header.skip
    run.frames = header.packets
    run.num = header.num


cdef bint take_header(Span* left, RunHeader* header, uint64_t* at) noexcept nogil:
    """Takes off the header of a run; whether it is named, by an offset. A run has at least one byte."""
    cdef bint named
    copy_out(left[0], 0, header, sizeof(RunHeader))
    left[0] = drop(left[0], sizeof(RunHeader))
    named = header.num & <uint32_t>NAMED
    if named:
        header.num &= ~<uint32_t>NAMED
        if left.num < NAMED_BYTES:
            header.num = 0
            return True
        copy_out(left[0], 0, at, NAMED_BYTES)
        left[0] = drop(left[0], NAMED_BYTES)
        if at[0] > MOST_OFFSET:
            header.num = 0
    return named


cdef inline bint is_time(int64_t time) noexcept nogil:
    """As a capture gives them: any two can be subtracted."""
    return time >= 0 or time == NO_TIME


cdef bint start_runs(Runs* runs, Span own, Span shared, int64_t frames_before,
                     uint32_t num_buckets) noexcept nogil:
    """False when these are not what a walk gives."""
    memset(runs, 0, sizeof(Runs))
    if shared.num < sizeof(PartEnd):
        return False
    copy_out(shared, shared.num - sizeof(PartEnd), &runs.end, sizeof(PartEnd))
    if not 0 <= runs.end.packets <= <int64_t>MOST_FRAMES or not 0 <= runs.end.tcp_frame <= runs.end.packets:
        return False
    if not (is_time(runs.end.first) and is_time(runs.end.last) and is_time(runs.end.tcp)):
        return False
    runs.frames_before = frames_before
    runs.own.left = own
    runs.shared.left = keep(shared, shared.num - sizeof(PartEnd))
    runs.num_buckets = num_buckets
    next_run(&runs.own)
    next_run(&runs.shared)
    return not (runs.own.broken or runs.shared.broken)


cdef bint goes_on(Run* run) noexcept nogil:
    """Whether what is named next lies near behind."""
    cdef RunHeader header
    cdef Span left = run.left
    cdef uint64_t at = 0, end = run.offset + run.num
    return (left.num >= sizeof(RunHeader) and take_header(&left, &header, &at) and header.num
            and at >= end and at - end <= MOST_GAP)


cdef int next_bytes(Run* run, Window* window, Span* found) noexcept nogil:
    """Bytes of the current run, at least one."""
    cdef int seen
    if not run.named:
        found[0] = keep(run.left, <size_t>run.num)
        return FED_SOME
    if window.descriptor < 0:
        return FED_OTHER
    if not is_seen(window, run.offset):
        seen = look_at(window, run.offset, run.num, MANY_BYTES if goes_on(run) else 0)
        if seen == SEEN_NO_MEMORY:
            return FED_NO_MEMORY
        if seen != SEEN_ALL:
            return FED_ERROR if seen == SEEN_ERROR else FED_OTHER
    found[0] = seen_from(window, run.offset, run.num)
    return FED_SOME


cdef int feed_some(Runs* runs, Reader* reader, Window* window, uint64_t most) noexcept nogil:
    """Feeds up to `most` bytes, at least one."""
    cdef Run* run
    cdef Span found
    cdef int fed
    while most:
        run = &runs.own
        # Of two that begin behind the same packet, the shared one holds blocks that are not packets.
        if run.ended or not runs.shared.ended and runs.shared.frames_before <= run.frames_before:
            run = &runs.shared
        if run.ended:
            return end_runs(runs, reader)
        if not run.begun:
            run.begun = True
            reader.frame = runs.frames_before + run.frames_before
        # The walk has looked at what the bucket's own packets are; datagrams are for each bucket to sort out.
        reader.num_buckets = runs.num_buckets if run == &runs.shared else 0
        fed = next_bytes(run, window, &found)
        if fed != FED_SOME:
            return fed
        if found.num > most:
            found = keep(found, <size_t>most)
        feed_reader(reader, found)
        if reader.stop != STOP_NONE:
            return FED_OTHER
        if run.named:
            run.offset += found.num
            window.total += found.num
        else:
            run.left = drop(run.left, found.num)
        run.num -= found.num
        most -= found.num
        if run.num == 0:
            if (reader.carry.len or reader.skip
                    or reader.frame != runs.frames_before + run.frames_before + run.frames):
                return FED_OTHER
            next_run(run)
            if run.broken:
                return FED_OTHER
    return FED_SOME


cdef int end_runs(Runs* runs, Reader* reader) noexcept nogil:
    """What all packets of the part showed, those of other buckets, too."""
    cdef PartEnd* end = &runs.end
    reader.frame = runs.frames_before + end.packets
    reader.num_buckets = runs.num_buckets
    if end.first != NO_TIME and (reader.first_time == NO_TIME or end.first < reader.first_time):
        reader.first_time = end.first
    if end.last > reader.last_time:
        reader.last_time = end.last
    if end.tcp_frame and runs.frames_before + end.tcp_frame >= reader.tcp_frame:
        reader.tcp_frame = runs.frames_before + end.tcp_frame
        reader.tcp_time = end.tcp
    return FED_ALL


cdef int raise_unfed(int fed, Window* window) except -1:
    if fed == FED_NO_MEMORY:
        raise MemoryError
    if fed == FED_ERROR:
        raise CaptureError("the capture cannot be read again") from OSError(window.why, os.strerror(window.why))
    if fed == FED_OTHER:
        raise CaptureError("what was kept of the capture is not what it was when it was walked")
    return 0
