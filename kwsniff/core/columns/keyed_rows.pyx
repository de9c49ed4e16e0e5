# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, autotestdict=False
"""Looks up rows of whole numbers by their values, without sorting them.

Rules
  1. Arrays belong to the caller. Their sizes, and numbers that are places in others, are looked at before
     they are used.
  2. Numbers are a capture's own: the hash has a seed that no capture can know (hash.pxd).
  3. Rows of columns are compared as 64-bit numbers. Null is NULL_VALUE there, which no 32-bit number is.

       rows    | (7, 1)  (9, 1)  (7, 1)  (7, 2) ...       numbers | 0  1  0  2 ...       firsts | 0  1  3 ...
"""

from os import urandom

from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy

from kwsniff.core.bytes.hash cimport mix
from kwsniff.core.columns.numbers cimport CHUNK, View, spread, take_views

ctypedef const int64_t* Values

cdef enum:
    MOST_COLUMNS = 4
    MOST_COUNTED = 24
    LEAST_PLACES = 1024

cdef int64_t NULL_VALUE = INT64_MIN + 1

cdef uint64_t SEED = int.from_bytes(urandom(8), "little")


cdef inline bint are_equal(Values* columns, Py_ssize_t num, Py_ssize_t row, Py_ssize_t other) noexcept nogil:
    cdef Py_ssize_t at
    for at in range(num):
        if columns[at][row] != columns[at][other]:
            return False
    return True


def number_rows(tuple columns, int64_t[::1] numbers, int64_t[::1] firsts):
    """Puts into `numbers` a number for each distinct combination of values, in the order in which they come
    first, and into `firsts` the row where each one does; gives how many there are."""
    cdef const int64_t[::1] column
    cdef Values[MOST_COLUMNS] values
    cdef Py_ssize_t at, row, num = len(columns), rows = numbers.shape[0], found = 0, size = 16, place
    cdef uint64_t hash
    cdef int32_t* table
    if not 0 < num <= MOST_COLUMNS or firsts.shape[0] != rows or rows > INT32_MAX // 2:
        raise ValueError("columns of different sizes")
    for at in range(num):
        column = columns[at]
        if column.shape[0] != rows:
            raise ValueError("columns of different sizes")
        values[at] = &column[0] if rows else NULL
    while size < 2 * rows:
        size *= 2
    table = <int32_t*>calloc(size, sizeof(int32_t))  # the number of a combination and one; 0: free
    if table is NULL:
        raise MemoryError("no memory for the numbers of rows")
    with nogil:
        for row in range(rows):
            hash = SEED
            for at in range(num):
                hash = mix(hash, <uint64_t>values[at][row])
            place = <Py_ssize_t>(hash & <uint64_t>(size - 1))
            while table[place] and not are_equal(values, num, row, firsts[table[place] - 1]):
                place = (place + 1) & (size - 1)
            if not table[place]:
                firsts[found] = row
                found += 1
                table[place] = <int32_t>found
            numbers[row] = table[place] - 1
    free(table)
    return found


cdef struct Combinations:
    int32_t* table          # the number of a combination and one; 0: free
    Py_ssize_t places       # of which half stay free
    int64_t* values         # of all combinations, which are touched once they are there
    Py_ssize_t columns
    Py_ssize_t num


cdef int make_combinations(Combinations* known, Py_ssize_t columns, Py_ssize_t rows) except -1:
    known.places, known.columns, known.num = LEAST_PLACES, columns, 0
    known.table = <int32_t*>calloc(known.places, sizeof(int32_t))
    known.values = <int64_t*>malloc(max(rows, 1) * columns * sizeof(int64_t))
    if known.table is NULL or known.values is NULL:
        free_combinations(known)
        raise MemoryError("no memory for the counts of rows")
    return 0


cdef void free_combinations(Combinations* known) noexcept nogil:
    free(known.table)
    free(known.values)


cdef inline Py_ssize_t find_place(Combinations* known, const int64_t* values) noexcept nogil:
    """Where the number of a combination is in the table, or a free place for it."""
    cdef Py_ssize_t at, place, num = known.columns
    cdef uint64_t hash = SEED
    for at in range(num):
        hash = mix(hash, <uint64_t>values[at])
    place = <Py_ssize_t>(hash & <uint64_t>(known.places - 1))
    while known.table[place] and memcmp(
            &known.values[(known.table[place] - 1) * num], values, num * sizeof(int64_t)):
        place = (place + 1) & (known.places - 1)
    return place


cdef bint grow_table(Combinations* known) noexcept nogil:
    """Four times the places; False when memory is refused."""
    cdef int32_t* table = <int32_t*>calloc(4 * known.places, sizeof(int32_t))
    cdef Py_ssize_t number
    if table == NULL:
        return False
    free(known.table)
    known.table, known.places = table, 4 * known.places
    for number in range(known.num):
        known.table[find_place(known, &known.values[number * known.columns])] = <int32_t>(number + 1)
    return True


cdef inline Py_ssize_t find_combination(Combinations* known, int64_t[CHUNK]* there, Py_ssize_t row) noexcept nogil:
    """The number of a row's combination of values; a new one is the last. -1 when memory is refused."""
    cdef int64_t[MOST_COUNTED] values
    cdef Py_ssize_t at, place
    for at in range(known.columns):
        values[at] = there[at][row]
    place = find_place(known, values)
    if known.table[place]:
        return known.table[place] - 1
    memcpy(&known.values[known.num * known.columns], values, known.columns * sizeof(int64_t))
    known.num += 1
    known.table[place] = <int32_t>known.num
    if 2 * known.num > known.places and not grow_table(known):
        return -1
    return known.num - 1


def count_rows(
    tuple columns, times, int64_t[::1] firsts, int64_t[::1] counts, int64_t[::1] least, int64_t[::1] most,
):
    """Counts the rows of each distinct combination of values, in the order in which they come first, and gives how
    many there are. `firsts`: the row where each one does; `least` and `most`: of its `times`, of which those of no
    time are INT64_MAX and its negative."""
    cdef View[MOST_COUNTED] views
    cdef View[1] of_times
    cdef int64_t[MOST_COUNTED][CHUNK] there
    cdef int64_t[CHUNK] time
    cdef Py_ssize_t num = len(columns), rows = firsts.shape[0], begin = 0, size, row, at = 0, before
    cdef Combinations known
    if not 0 < num <= MOST_COUNTED or take_views(columns, views, num) != rows or rows > INT32_MAX // 2:
        raise ValueError("columns of different sizes")
    if take_views((times,), of_times, 1) != rows or counts.shape[0] != rows:
        raise ValueError("columns of different sizes")
    if least.shape[0] != rows or most.shape[0] != rows:
        raise ValueError("columns of different sizes")
    make_combinations(&known, num, rows)
    with nogil:
        while begin < rows:
            size = min(CHUNK, rows - begin)
            for at in range(num):
                spread(&views[at], begin, size, NULL_VALUE, there[at])
            spread(&of_times[0], begin, size, NULL_VALUE, time)
            for row in range(size):
                before = known.num
                at = find_combination(&known, there, row)
                if at < 0:
                    break
                if at == before:
                    firsts[at], counts[at] = begin + row, 0
                    least[at], most[at] = INT64_MAX, -INT64_MAX
                counts[at] += 1
                if time[row] != NULL_VALUE:
                    least[at], most[at] = min(least[at], time[row]), max(most[at], time[row])
            if at < 0:
                break
            begin += size
    free_combinations(&known)
    if at < 0:
        raise MemoryError("no memory for the counts of rows")
    return known.num


def find_beyond(
    const int64_t[::1] slots, const int64_t[::1] offsets, const int64_t[::1] asked, const int64_t[::1] lasts,
    int64_t[:, ::1] spans, int64_t[::1] rises, int64_t[::1] found,
):
    """For each asked slot the first row of it whose offset is greater than its one of `lasts`; where there is
    none, `found` stays as it is.

    `spans`: two zeros for each slot; `rises`: room for each row. Only a row that is greater than all earlier
    ones of its slot can be found: these are put beside each other, and rise.
    """
    cdef Py_ssize_t row, rows = slots.shape[0], num = spans.shape[1]
    cdef int64_t slot, total = 0, size, low, high, middle
    cdef bint good = True
    if offsets.shape[0] != rows or rises.shape[0] != rows or spans.shape[0] != 2:
        raise ValueError("columns of different sizes")
    if asked.shape[0] != found.shape[0] or lasts.shape[0] != found.shape[0]:
        raise ValueError("asked columns of different sizes")
    with nogil:
        for row in range(rows):
            if slots[row] < 0 or slots[row] >= num:
                good = False
                break
            spans[0, slots[row]] += 1
        if good:
            for slot in range(num):
                size = spans[0, slot]
                spans[0, slot] = spans[1, slot] = total
                total += size
            for row in range(rows):
                slot = slots[row]
                if spans[1, slot] == spans[0, slot] or offsets[row] > offsets[rises[spans[1, slot] - 1]]:
                    rises[spans[1, slot]] = row
                    spans[1, slot] += 1
            for row in range(asked.shape[0]):
                slot = asked[row]
                if slot < 0 or slot >= num:
                    continue
                low, high = spans[0, slot], spans[1, slot]
                while low < high:
                    middle = (low + high) // 2
                    if offsets[rises[middle]] > lasts[row]:
                        high = middle
                    else:
                        low = middle + 1
                if low < spans[1, slot]:
                    found[row] = rises[low]
    if not good:
        raise IndexError("a slot that has no offsets")
