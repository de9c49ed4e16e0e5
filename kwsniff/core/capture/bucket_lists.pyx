# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Which records of a split a bucket reads, as a short list, and how they are fed.

Rules
  1. The lists are small: four varints where a bucket's records begin to lie side by side.
  2. They are trusted to come from a scan, but not to be of this file: reading by them never leaves the file, and what
     does not fit ends it.
  3. What all buckets read is listed once: two lists are read at a time, whichever is behind.

    runs      (bytes to skip, packets to skip, bytes to take, packets to take)*     all varints (LEB128)
    shared    Times | runs, of which the last one takes 0 bytes: it tells where the split ends
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from kwsniff.core.octets.buffer cimport Buffer, append_raw
from kwsniff.core.octets.cursor cimport VARINT_OK, Cursor, bytes_left, cursor_over, read_uvarlong
from kwsniff.core.octets.octets cimport Octets, copy_out, drop, has, keep
from kwsniff.core.capture.packets cimport NO_TIME, STOP_NONE, Reader, feed_reader


# -- writing runs -----------------------------------------------------------------------------------------------

cdef enum:
    MOST_FRAMES = 0x1000000000000000


cdef bint put_numbers(Buffer* out, uint64_t* numbers) noexcept nogil:
    cdef uint8_t[40] text
    cdef int i, num = 0
    for i in range(4):
        while numbers[i] > 127:
            text[num] = <uint8_t>(numbers[i] | 128)
            numbers[i] >>= 7
            num += 1
        text[num] = <uint8_t>numbers[i]
        num += 1
    return append_raw(out, text, <size_t>num)


cdef bint write_run(Place* place) noexcept nogil:
    cdef uint64_t[4] numbers
    numbers[0] = place.begin - place.written
    numbers[1] = <uint64_t>(place.frames_begin - place.frames_written)
    numbers[2] = place.end - place.begin
    numbers[3] = <uint64_t>(place.frames_end - place.frames_begin)
    place.written = place.end
    place.frames_written = place.frames_end
    return put_numbers(&place.out, numbers)


cdef bint take_record(Place* place, uint64_t at, uint64_t num, int64_t frame, int64_t frames) noexcept nogil:
    """Adds the record at `at`, with `frame` packets before it. False when memory is refused."""
    if at != place.end or place.end == place.begin:
        if place.end != place.begin and not write_run(place):
            return False
        place.begin = at
        place.frames_begin = frame
    place.end = at + num
    place.frames_end = frame + frames
    return True


cdef bint end_place(Place* place) noexcept nogil:
    """Writes the run under way, if there is one."""
    return place.end == place.begin or write_run(place)


cdef bint end_split(Place* place, uint64_t num, int64_t frames) noexcept nogil:
    """Writes where the split ends, as its last run."""
    if not end_place(place):
        return False
    place.begin = num
    place.end = num
    place.frames_begin = frames
    place.frames_end = frames
    return write_run(place)


# -- reading runs -----------------------------------------------------------------------------------------------

cdef void next_run(Run* run, uint64_t limit) noexcept nogil:
    """Goes to the next run; `limit`: bytes that there are in the split and behind it."""
    cdef uint64_t[4] numbers
    cdef Cursor cursor = cursor_over(run.left.at, run.left.num)
    cdef int i
    run.begun = False
    if run.left.num == 0:
        run.ended = True
        return
    for i in range(4):
        if read_uvarlong(&cursor, &numbers[i]) != VARINT_OK:
            run.broken = True
            return
    run.left = drop(run.left, run.left.num - bytes_left(&cursor))
    run.offset += run.num
    run.frames_before += run.frames
    limit -= run.offset
    if (numbers[0] > limit or numbers[2] > limit - numbers[0] or numbers[1] > MOST_FRAMES or numbers[3] > numbers[2]
            or run.frames_before > <int64_t>MOST_FRAMES):
        run.broken = True
        return
    run.offset += numbers[0]
    run.num = numbers[2]
    run.frames_before += <int64_t>numbers[1]
    run.frames = <int64_t>numbers[3]
    run.ended = run.num == 0


cdef bint start_runs(Runs* runs, Octets data, Octets own, Octets shared, int64_t frames_before,
                     uint32_t num_buckets) noexcept nogil:
    """False when the lists are not what a scan gives."""
    memset(runs, 0, sizeof(Runs))
    if not has(shared, 0, sizeof(Times)):
        return False
    copy_out(shared, 0, &runs.times, sizeof(Times))
    runs.data = data
    runs.frames_before = frames_before
    runs.own.left = own
    runs.shared.left = drop(shared, sizeof(Times))
    runs.num_buckets = num_buckets
    next_run(&runs.own, data.num)
    next_run(&runs.shared, data.num)
    return not (runs.own.broken or runs.shared.broken)


cdef int feed_some(Runs* runs, Reader* reader, uint64_t most) noexcept nogil:
    """Feeds up to `most` bytes, at least one."""
    cdef Run* run
    cdef uint64_t take
    while most:
        run = &runs.own
        if run.ended or not runs.shared.ended and runs.shared.offset < run.offset:
            run = &runs.shared
        if run.ended:
            return end_runs(runs, reader)
        if not run.begun:
            run.begun = True
            reader.frame = runs.frames_before + run.frames_before
        # The scan has looked at what the bucket's own packets are; datagrams are for each bucket to sort out.
        reader.num_buckets = runs.num_buckets if run == &runs.shared else 0
        take = run.num if run.num < most else most
        feed_reader(reader, keep(drop(runs.data, <size_t>run.offset), <size_t>take))
        if reader.stop != STOP_NONE:
            return FED_OTHER
        run.offset += take
        run.num -= take
        most -= take
        if run.num == 0:
            if (reader.carry.len or reader.skip
                    or reader.frame != runs.frames_before + run.frames_before + run.frames):
                return FED_OTHER
            next_run(run, runs.data.num)
            if run.broken:
                return FED_OTHER
    return FED_SOME


cdef int end_runs(Runs* runs, Reader* reader) noexcept nogil:
    """What all packets of the split have told, those of other buckets, too."""
    cdef Times* times = &runs.times
    reader.frame = runs.frames_before + runs.shared.frames_before
    reader.num_buckets = runs.num_buckets
    if times.first != NO_TIME and (reader.first_time == NO_TIME or times.first < reader.first_time):
        reader.first_time = times.first
    if times.last > reader.last_time:
        reader.last_time = times.last
    if times.tcp_frame and runs.frames_before + times.tcp_frame >= reader.tcp_frame:
        reader.tcp_frame = runs.frames_before + times.tcp_frame
        reader.tcp_time = times.tcp
    return FED_ALL
