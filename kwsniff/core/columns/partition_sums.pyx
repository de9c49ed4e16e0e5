# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, autotestdict=False
"""Sums of written bytes per partition, in passes over rows of partitions and of record batches.

Rules
  1. A place is a topic's code times a width and a partition: numbers of one batch. What they are among all
     batches is looked up in between, once for each place and not for each row.
  2. A place, or a code, that has no number ends the pass.

       places  | -1  12  -1  3 ...     of each row, where something was written
       sums    | bytes of place 0, 1, ... | calls | first time | last time
       writers | place 0: no name, client 0, 1, ...    | place 1: ...     one where it wrote
       ends    | the greatest offset of place 0, 1, ...
"""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t

from kwsniff.core.columns.numbers cimport CHUNK, View, keep_least, spread, take_views

cdef enum:
    SEEN_PLACE = 1
    WRITTEN_PLACE = 2

SEEN, WRITTEN = SEEN_PLACE, WRITTEN_PLACE


def place_rows(
    tuple columns, int64_t wanted, int64_t width, int64_t[::1] places, int64_t[::1] widths, uint8_t[::1] used,
):
    """The place of each row that counts; -1 of others.

    `columns`: topic, partition, api_name, record_bytes. A row counts where the API is `wanted` and something was
    written. `widths` gets each topic's greatest partition and one; `used` gets SEEN for each place of a row, and
    WRITTEN where one counts. Returns how many rows would count if they had a topic.
    """
    cdef View[4] views
    cdef int64_t[CHUNK] topic, partition, api, bytes_
    cdef Py_ssize_t begin = 0, size, row, rows = take_views(columns, views, 4)
    cdef int64_t place, nameless = 0
    cdef bint good = True
    if places.shape[0] != rows or width <= 0 or used.shape[0] != widths.shape[0] * width:
        raise ValueError("columns of different sizes")
    with nogil:
        while good and begin < rows:
            size = min(CHUNK, rows - begin)
            spread(&views[0], begin, size, -1, topic)
            spread(&views[1], begin, size, 0, partition)
            spread(&views[2], begin, size, -1, api)
            spread(&views[3], begin, size, 0, bytes_)
            for row in range(size):
                places[begin + row] = -1
                if topic[row] < 0:
                    nameless += api[row] == wanted and bytes_[row] > 0
                    continue
                if topic[row] >= widths.shape[0] or partition[row] < 0 or partition[row] >= width:
                    good = False
                    break
                widths[topic[row]] = max(widths[topic[row]], partition[row] + 1)
                place = topic[row] * width + partition[row]
                used[place] |= SEEN_PLACE
                if api[row] == wanted and bytes_[row] > 0:
                    places[begin + row] = place
                    used[place] |= WRITTEN_PLACE
            begin += size
    if not good:
        raise IndexError("a place that has no number")
    return nameless


cdef inline void add_row(
    int64_t[:, ::1] sums, int64_t number, int64_t bytes_, int64_t time,
) noexcept nogil:
    sums[0, number] += bytes_
    sums[1, number] += 1
    if time < sums[2, number]:
        sums[2, number] = time
    if time > sums[3, number] and time != INT64_MAX:
        sums[3, number] = time


def sum_places(
    const int64_t[::1] places, const int64_t[::1] numbers, tuple columns,
    int64_t[:, ::1] sums, int64_t[:, ::1] keys, int64_t[:, ::1] ids, uint8_t[::1] writers,
):
    """Adds up rows by the number of their place, which `numbers` has; rows without a place are passed over.

    `columns`: record_bytes, time, call_id, client_id. `keys` and `ids` keep the largest calls of each number.
    `writers` gets a mark for each number and client; it is left alone where it is empty.
    """
    cdef View[4] views
    cdef int64_t[CHUNK] bytes_, time, call_id, client
    cdef Py_ssize_t begin = 0, size, row, rows = take_views(columns, views, 4), num = sums.shape[1]
    cdef Py_ssize_t width = writers.shape[0] // num if num else 0
    cdef int64_t number
    cdef bint good = True
    if places.shape[0] != rows or sums.shape[0] != 4 or writers.shape[0] != width * num:
        raise ValueError("columns of different sizes")
    if keys.shape[0] != num or ids.shape[0] != num or keys.shape[1] != ids.shape[1] or not ids.shape[1]:
        raise ValueError("sums of different sizes")
    with nogil:
        while good and begin < rows:
            size = min(CHUNK, rows - begin)
            spread(&views[0], begin, size, 0, bytes_)
            spread(&views[1], begin, size, INT64_MAX, time)
            spread(&views[2], begin, size, INT64_MAX, call_id)
            spread(&views[3], begin, size, -1, client)
            for row in range(size):
                if places[begin + row] < 0:
                    continue
                number = numbers[places[begin + row]] if places[begin + row] < numbers.shape[0] else -1
                if number < 0 or number >= num or (width and not -1 <= client[row] < width - 1):
                    good = False
                    break
                add_row(sums, number, bytes_[row], time[row])
                keep_least(keys, ids, number, -bytes_[row], call_id[row])
                if width:
                    writers[number * width + client[row] + 1] = 1
            begin += size
    if not good:
        raise IndexError("a place that has no number")


def follow_ends(const int64_t[::1] places, const int64_t[::1] numbers, tuple columns, int64_t[::1] ends):
    """Follows how far the records of each number reach; returns how many rows begin below that.

    `columns`: base_offset, record_count. A row without a base offset is passed over, one without a count has one
    record. `ends`, added to: the greatest offset of each number, -1 before the first.
    """
    cdef View[2] views
    cdef int64_t[CHUNK] base, count
    cdef Py_ssize_t begin = 0, size, row, rows = take_views(columns, views, 2)
    cdef int64_t number, end, rewound = 0
    cdef bint good = True
    if places.shape[0] != rows:
        raise ValueError("columns of different sizes")
    with nogil:
        while good and begin < rows:
            size = min(CHUNK, rows - begin)
            spread(&views[0], begin, size, -1, base)
            spread(&views[1], begin, size, 1, count)
            for row in range(size):
                if places[begin + row] < 0 or base[row] < 0:
                    continue
                number = numbers[places[begin + row]] if places[begin + row] < numbers.shape[0] else -1
                if number < 0 or number >= ends.shape[0]:
                    good = False
                    break
                rewound += base[row] <= ends[number]
                # both are numbers from the wire: their sum may not fit
                end = INT64_MAX if count[row] > INT64_MAX - base[row] else base[row] + max(count[row], 1) - 1
                ends[number] = max(ends[number], end)
            begin += size
    if not good:
        raise IndexError("a place that has no number")
    return rewound


def sum_by_code(tuple columns, int64_t first_wanted, int64_t second_wanted, int64_t[:, ::1] sums):
    """Adds up numbers by code, null at the end, of the rows where two other columns have what is wanted, and
    counts these rows, whether they have a number or not.

    `columns`: codes, numbers, and the two. `sums`: the numbers, then the rows.
    """
    cdef View[4] views
    cdef int64_t[CHUNK] code, value, first, second
    cdef Py_ssize_t begin = 0, size, row, rows = take_views(columns, views, 4), nulls = sums.shape[1] - 1
    cdef int64_t place
    cdef bint good = nulls >= 0 and sums.shape[0] >= 2
    with nogil:
        while good and begin < rows:
            size = min(CHUNK, rows - begin)
            spread(&views[0], begin, size, -1, code)
            spread(&views[1], begin, size, 0, value)
            spread(&views[2], begin, size, ~first_wanted, first)
            spread(&views[3], begin, size, ~second_wanted, second)
            for row in range(size):
                if first[row] == first_wanted and second[row] == second_wanted:
                    if code[row] >= nulls:
                        good = False
                        break
                    place = code[row] if code[row] >= 0 else nulls
                    sums[0, place] += value[row]
                    sums[1, place] += 1
            begin += size
    if not good:
        raise IndexError("a code that has no sum")
