# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Finds the beginning of a record from any offset in a capture.

Rules
  1. Every reading of the bytes is followed until those that are left agree: a capture inside a capture ends with the
     record around it, and chance does not last long.
  2. The answer is still a good guess, and always the same one: the caller checks that a walk from the beginning
     arrives there.
  3. What such a walk would read, but programs hardly ever write, is not looked for: packets of hardly any bytes, of more
     than were on the wire, from a day before the first one or ten years after it.

Every offset of a window as long as the longest record is taken for one, from the last to the first, so
that each offset's fate is known from the one it leads to. Of those that lead out of the window, the least advanced one
continues, until one is left or all have met:

    offset |  x ......... o---->o------>o-|->o------>o      x leads nowhere
           |     y----------------^       |                 y leads to one that others lead to as well
"""

from libc.stdint cimport UINT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer

from kwsniff.core.bytes.span cimport Span, drop, file32, has, make_span
from kwsniff.core.capture.packets cimport (
    BLOCK_CUSTOM, BLOCK_CUSTOM_NO_COPY, BLOCK_SECTION, BLOCK_SYSDIG, BLOCK_SYSDIG_2, BLOCK_SYSDIG_2_FLAGS,
    BLOCK_SYSDIG_FLAGS, BLOCK_SYSDIG_LARGE, BLOCK_SYSDIG_LARGE_FLAGS, FORMAT_PCAPNG, FORMAT_UNKNOWN, STOP_NONE,
    Reader, Segment, feed_reader, free_reader, start_reader,
)

from kwsniff.errors import UsageError

cdef enum:
    SHORTEST_PACKET = 10        # acknowledgements of IEEE 802.11
    LONGEST_RECORD = 1 << 20    # that is looked for
    USUAL_RECORD = 1 << 18      # tcpdump's and Wireshark's own snapshot length
    MOST_ENDS = 256             # readings of the window that are followed behind it
    MOST_STEPS = 16384
    DAY = 86400
    TEN_YEARS = 3652 * DAY
    CHAIN = 16                  # records in a row before the only reading is believed


cdef void pass_over(void* opaque, Segment* segment) noexcept nogil:
    pass


cdef struct Search:
    Span data
    bint blocks
    bint swapped
    uint32_t fractions          # in a second
    uint32_t earliest           # second since the epoch of a packet
    uint32_t record_header
    uint32_t longest            # bytes captured of a packet, or of a block
    size_t step                 # records begin at multiples of it,
    size_t base                 # counted from the file's beginning, where the data has this place


cdef inline bint is_block(uint32_t kind) noexcept nogil:
    """Kinds that are registered, or for private use."""
    return (1 <= kind <= 0xC or kind == BLOCK_SECTION or kind >> 31 or kind in (
        BLOCK_CUSTOM, BLOCK_CUSTOM_NO_COPY, BLOCK_SYSDIG, BLOCK_SYSDIG_FLAGS, BLOCK_SYSDIG_2, BLOCK_SYSDIG_2_FLAGS,
        BLOCK_SYSDIG_LARGE, BLOCK_SYSDIG_LARGE_FLAGS))


cdef size_t record_length(Search* search, size_t at) noexcept nogil:
    """Of a record that may begin here; 0: none does, or it is not whole."""
    cdef Span data = drop(search.data, at)
    cdef uint32_t length, original
    if search.blocks:
        length = file32(data, 4, search.swapped)
        if length < 12 or length & 3 or length > search.longest or not has(data, 0, length):
            return 0
        if file32(data, length - 4, search.swapped) != length or not is_block(file32(data, 0, search.swapped)):
            return 0
        if file32(data, 0, search.swapped) == BLOCK_SECTION and file32(data, 8, search.swapped) != 0x1A2B3C4D:
            return 0
        return length
    length = file32(data, 8, search.swapped)
    if length < SHORTEST_PACKET or length > search.longest or file32(data, 4, search.swapped) >= search.fractions:
        return 0
    original = file32(data, 12, search.swapped)
    if original < length or original > LONGEST_RECORD or not has(data, search.record_header, length):
        return 0
    if file32(data, 0, search.swapped) - search.earliest > <uint32_t>TEN_YEARS:
        return 0
    return search.record_header + length


cdef size_t follow(Search* search, size_t* ends, uint32_t num) noexcept nogil:
    """Where all readings that continue have met; 0: none does, or they do not. Those that break off become 0."""
    cdef uint32_t i, least = 0
    cdef int steps, chained = 0
    cdef bint differ
    cdef size_t length
    for steps in range(MOST_STEPS):
        least = num
        differ = False
        for i in range(num):
            if ends[i]:
                if least < num and ends[i] != ends[least]:
                    differ = True
                if least == num or ends[i] < ends[least]:
                    least = i
        if least == num:
            return 0
        if ends[least] == search.data.num or not differ and chained >= CHAIN:
            return ends[least]
        chained = 0 if differ else chained + 1
        length = record_length(search, ends[least])
        for i in range(num):
            if i != least and ends[i] == ends[least]:
                ends[i] = ends[i] + length if length else 0
        ends[least] = ends[least] + length if length else 0
    return 0


cdef int64_t find(Search* search, size_t begin, uint32_t* fates, uint32_t* before, size_t window) noexcept nogil:
    """-1: none. Both arrays have an entry for each of the `window` offsets, all 0."""
    cdef size_t[256] ends
    cdef size_t[256] firsts
    cdef uint32_t num = 0, last = 0, i
    cdef size_t at = window, next_at, met, root = 0
    while at:
        at -= 1
        if (search.base + begin + at) % search.step:
            continue
        next_at = record_length(search, begin + at)
        if next_at == 0:
            continue
        next_at += at
        if next_at < window:
            fates[at] = fates[next_at]
            continue
        for i in range(num):
            if firsts[i] == begin + next_at:
                break
        else:
            i = num
            if num == MOST_ENDS:
                return -1
            ends[num] = firsts[num] = begin + next_at
            num += 1
        fates[at] = i + 1
    met = follow(search, ends, num)
    if met == 0:
        return -1
    for i in range(num):
        if ends[i]:
            if root:
                return <int64_t>met if met < search.data.num else -1     # they meet behind the window
            root = firsts[i]
    # From where the window is left back to the first record that no other reading leads to.
    for at in range(window):
        if fates[at] and ends[fates[at] - 1]:
            next_at = at + record_length(search, begin + at)
            if next_at < window:
                before[next_at] = UINT32_MAX if before[next_at] else <uint32_t>at + 1
            else:
                last = UINT32_MAX if last else <uint32_t>at + 1
    if last == UINT32_MAX:
        return <int64_t>root if root < search.data.num else -1
    while before[last - 1] and before[last - 1] != UINT32_MAX:
        last = before[last - 1]
    return <int64_t>(begin + last - 1)


cdef feed_head(Reader* reader, bytes head):
    feed_reader(reader, make_span(<const uint8_t*><const char*>head, len(head)))
    if reader.stop != STOP_NONE or reader.format == FORMAT_UNKNOWN or reader.carry.len or reader.skip or reader.frame:
        raise UsageError("that is not the head of a capture: take what read_head gives")


cdef bint prepare(Search* search, bytes head, Span data, uint32_t earliest):
    """What records of this capture look like."""
    cdef Reader reader
    cdef uint32_t i, snaplen = 0
    start_reader(&reader, pass_over, NULL, LONGEST_RECORD, UINT32_MAX, 1)
    try:
        feed_head(&reader, head)
        search.data = data
        search.blocks = reader.format == FORMAT_PCAPNG
        search.swapped = reader.swapped
        search.fractions = 1000000000 if reader.nanoseconds else 1000000
        search.record_header = <uint32_t>reader.record_header
        search.step = 4 if search.blocks else 1
        search.earliest = earliest if earliest else file32(data, <size_t>len(head), reader.swapped)
        search.earliest -= DAY if search.earliest > DAY else search.earliest
        for i in range(reader.num_interfaces):
            if reader.interfaces[i].snaplen == 0 or reader.interfaces[i].snaplen > LONGEST_RECORD:
                snaplen = LONGEST_RECORD
            elif reader.interfaces[i].snaplen > snaplen:
                snaplen = reader.interfaces[i].snaplen
        # Offloading cards make packets of more than the 65535 bytes that some writers think are the most.
        if search.blocks or snaplen >= 65535 and snaplen < USUAL_RECORD:
            snaplen = snaplen if snaplen > USUAL_RECORD else USUAL_RECORD
        search.longest = snaplen if snaplen < LONGEST_RECORD else LONGEST_RECORD
        return True
    finally:
        free_reader(&reader)


def find_record(bytes head, data, uint64_t offset, *, uint64_t at=0, uint32_t earliest=0):
    cdef Search search
    cdef Py_buffer view
    cdef uint32_t* fates = NULL
    cdef uint32_t* before = NULL
    cdef size_t window
    cdef int64_t found = -1
    memset(&search, 0, sizeof(Search))
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        prepare(&search, head, make_span(<const uint8_t*>view.buf, <size_t>view.len), earliest)
        if offset <= <uint64_t>len(head):
            return len(head) if len(head) < view.len else None
        if offset < at or offset - at >= <uint64_t>view.len:
            return None
        search.base = at
        offset -= at
        window = search.longest + search.record_header
        if window > <size_t>view.len - offset:
            window = <size_t>view.len - offset
        fates = <uint32_t*>calloc(window, sizeof(uint32_t))
        before = <uint32_t*>calloc(window, sizeof(uint32_t))
        if fates == NULL or before == NULL:
            raise MemoryError
        with nogil:
            found = find(&search, offset, fates, before, window)
        return None if found < 0 else found + at
    finally:
        free(fates)
        free(before)
        PyBuffer_Release(&view)
