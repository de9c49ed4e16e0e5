# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, autotestdict=False
"""Whether readers advance, in one pass over rows of partitions.

Rules
  1. A reader is a partition on a connection, by a number that mixes both with its topic. 0 is a free place.
  2. A request of a fetch session leaves out an offset that has not changed: it asks for the last one.
  3. A table is full when half of its places are taken; readers that come after are counted, not followed.
  4. Places are seeded: a hostile capture cannot choose readers that share one.
  5. Fetches in a row count where nothing moves on: a delivery at the same offset, or a fetch at the end, is among
     them. The rule may break the row there; this is its bound.

       table  | reader        0   r1  0   r2 ...   where its number leads, or the next free place
              | asked         -   17  -   40       the offset that it asked for last; -1: none yet
              | delivered     -   17  -   -1       that of its last delivery
              | stayed        -   -1  -   40       the offset of the fetches in a row that got nothing below the end
              | empty         -   0   -   3        how many these are
"""

from libc.stdint cimport INT64_MAX, int64_t, uint64_t

from kwsniff.core.bytes.hash cimport mix
from kwsniff.core.columns.numbers cimport CHUNK, View, look_up, spread, take_views

cdef enum:
    NUM_READERS = 0
    NUM_EMPTY = 1
    MOST_EMPTY = 2
    NUM_REPEATED = 3
    NUM_BEYOND_START = 4
    FIRST_TIME = 5
    LAST_TIME = 6
    NUM_SUMS = 7
    NUM_ROWS = 5


cdef inline int64_t number_of(int64_t topic, int64_t partition, int64_t connection) noexcept nogil:
    """The number of a reader, the same in every process."""
    cdef uint64_t number = mix(mix(<uint64_t>topic, <uint64_t>partition), <uint64_t>connection)
    return <int64_t>number if number else 1


cdef inline Py_ssize_t place_of(int64_t[:, ::1] table, int64_t reader, uint64_t seed) noexcept nogil:
    """Where a reader is, or where it may be put."""
    cdef Py_ssize_t last = table.shape[1] - 1
    cdef Py_ssize_t place = <Py_ssize_t>(mix(seed, <uint64_t>reader) & <uint64_t>last)
    while table[0, place] != 0 and table[0, place] != reader:
        place = (place + 1) & last
    return place


cdef inline void follow(
    int64_t[:, ::1] table, int64_t[::1] sums, uint64_t seed, int64_t reader,
    int64_t asked, int64_t end, bint is_empty, int64_t bytes_,
) noexcept nogil:
    """Adds one fetch of a reader; see follow_reads."""
    cdef Py_ssize_t place = place_of(table, reader, seed)
    if table[0, place] == 0:
        sums[NUM_READERS] += 1
        if sums[NUM_READERS] > table.shape[1] // 2:
            return
        table[0, place], table[1, place], table[2, place], table[3, place], table[4, place] = reader, -1, -1, -1, 0
    if asked >= 0:
        table[1, place] = asked
    if table[1, place] < 0 or end < 0:
        return
    if is_empty:
        if end > table[1, place]:
            if table[3, place] != table[1, place]:
                table[3, place], table[4, place] = table[1, place], 0
            table[4, place] += 1
            sums[NUM_EMPTY] += 1
            sums[MOST_EMPTY] = max(sums[MOST_EMPTY], table[4, place])
    elif bytes_ > 0:
        if table[3, place] != table[1, place]:
            table[4, place] = 0
        if table[1, place] <= table[2, place]:
            sums[NUM_REPEATED] += 1
            sums[NUM_BEYOND_START] += table[1, place] > 0
        table[2, place] = table[1, place]


def follow_reads(
    tuple columns, const int64_t[::1] topics, const int64_t[::1] topic_ids, int64_t[:, ::1] table,
    int64_t[::1] sums, uint64_t seed,
):
    """Follows the offsets of readers, whose rows are in the order of time on each connection.

    `columns`: topic, topic_id, partition, connection_id, requested_offset, high_watermark, record_bytes,
    record_count, time. `topics`, `topic_ids`: a number for each code, null at the end. `sums`, added to: readers,
    fetches that got nothing below the high watermark, the most of them in a row at one offset, deliveries that are not beyond the one before, those of
    them that are not of offset 0, and the first and the last time. `seed`: a number that no capture can know, the same for one table.
    """
    cdef View[9] views
    cdef int64_t[CHUNK] topic, topic_id, partition, connection, asked, end, bytes_, count, time
    cdef Py_ssize_t begin = 0, size, row, rows = take_views(columns, views, 9)
    cdef int64_t reader
    cdef bint is_empty
    if table.shape[0] != NUM_ROWS or table.shape[1] < 2 or table.shape[1] & (table.shape[1] - 1):
        raise ValueError("the places of a table are a power of two")
    if sums.shape[0] != NUM_SUMS or not topics.shape[0] or not topic_ids.shape[0]:
        raise ValueError("sums of different sizes")
    with nogil:
        while begin < rows:
            size = min(CHUNK, rows - begin)
            spread(&views[4], begin, size, -1, asked)
            spread(&views[5], begin, size, -1, end)
            spread(&views[0], begin, size, -1, topic)
            spread(&views[1], begin, size, -1, topic_id)
            spread(&views[2], begin, size, -1, partition)
            spread(&views[3], begin, size, -1, connection)
            spread(&views[6], begin, size, -1, bytes_)
            spread(&views[7], begin, size, 1, count)
            spread(&views[8], begin, size, INT64_MAX, time)
            for row in range(size):
                if end[row] < 0 and asked[row] < 0:
                    continue
                sums[FIRST_TIME] = min(sums[FIRST_TIME], time[row])
                if time[row] != INT64_MAX:
                    sums[LAST_TIME] = max(sums[LAST_TIME], time[row])
                reader = look_up(topics, topic[row]) if topic[row] >= 0 else look_up(topic_ids, topic_id[row])
                reader = number_of(reader, partition[row], connection[row])
                is_empty = bytes_[row] == 0 or count[row] == 0
                follow(table, sums, seed, reader, asked[row], end[row], is_empty, bytes_[row])
            begin += size


def add_readers(const int64_t[:, ::1] readers, int64_t[:, ::1] table, int64_t[::1] sums, uint64_t seed):
    """Puts readers with their offsets into a table. One that is there counts as one more repeated delivery:
    which of both was earlier is not known."""
    cdef Py_ssize_t at, place, row
    if readers.shape[0] != NUM_ROWS or table.shape[0] != NUM_ROWS or sums.shape[0] != NUM_SUMS:
        raise ValueError("sums of different sizes")
    if table.shape[1] < 2 or table.shape[1] & (table.shape[1] - 1):
        raise ValueError("the places of a table are a power of two")
    with nogil:
        for at in range(readers.shape[1]):
            if readers[0, at] == 0:
                continue
            place = place_of(table, readers[0, at], seed)
            if table[0, place]:
                sums[NUM_REPEATED] += 1
                sums[NUM_BEYOND_START] += 1
            else:
                sums[NUM_READERS] += 1
                if sums[NUM_READERS] > table.shape[1] // 2:
                    continue
            for row in range(NUM_ROWS):
                table[row, place] = readers[row, at]
