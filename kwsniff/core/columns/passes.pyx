# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Passes over whole columns, for which numpy takes several, with arrays in between.

Rules
  1. Arrays belong to whoever calls. Their sizes, and numbers that are places in others, are looked at before
     they are used.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t

ctypedef fused Whole:
    int8_t
    int16_t
    int32_t
    int64_t


def fill_nulls(
    const Whole[::1] values, const uint8_t[::1] valid, Py_ssize_t first, int64_t null, int64_t[::1] filled,
):
    """The values as they are, `null` where their bit is not set; that of the first one is number `first`."""
    cdef Py_ssize_t row = 0, each, rows = filled.shape[0]
    cdef Py_ssize_t aligned = min(rows, -first & 7)
    cdef uint8_t eight
    cdef int64_t there
    if values.shape[0] != rows or first < 0 or (first + rows + 7) >> 3 > valid.shape[0]:
        raise ValueError("columns of different sizes")
    with nogil:
        while row < aligned:
            filled[row] = values[row] if valid[(first + row) >> 3] >> ((first + row) & 7) & 1 else null
            row += 1
        # Eight rows at a time: nulls come in runs, of calls that have no such field.
        while rows - row >= 8:
            eight = valid[(first + row) >> 3]
            if eight == 0xFF:
                for each in range(8):
                    filled[row + each] = values[row + each]
            elif not eight:
                for each in range(8):
                    filled[row + each] = null
            else:
                for each in range(8):
                    there = -<int64_t>(eight >> each & 1)
                    filled[row + each] = (<int64_t>values[row + each] & there) | (null & ~there)
            row += 8
        while row < rows:
            filled[row] = values[row] if valid[(first + row) >> 3] >> ((first + row) & 7) & 1 else null
            row += 1


def follow(const int64_t[::1] ids, const int64_t[::1] wanted, int64_t[::1] places):
    """Where each of `wanted` stands in `ids`, if all do and in that order; else False, and places are any."""
    cdef Py_ssize_t row, place = 0, num = ids.shape[0]
    if wanted.shape[0] != places.shape[0]:
        raise ValueError("columns of different sizes")
    with nogil:
        for row in range(wanted.shape[0]):
            while place < num and ids[place] != wanted[row]:
                place += 1
            if place == num:
                break
            places[row] = place
    return place < num or not wanted.shape[0]


def sum_calls(
    const int64_t[::1] groups, const int64_t[::1] times, const int64_t[::1] took,
    const int64_t[::1] records, const int64_t[::1] sizes, const int64_t[::1] waits,
    int64_t[:, ::1] sums, int64_t[::1] first, int64_t[::1] last, int64_t[::1] wait,
):
    """Adds up calls by group. `records`, `sizes`, `waits` are -1 where there are none.

    `sums` has rows for the calls, those whose records are known, those without any, what calls took, records
    and bytes; `first`, `last` are of times, `wait` is the least one.
    """
    cdef Py_ssize_t row, rows = groups.shape[0], num = first.shape[0]
    cdef int64_t group
    cdef bint good = True
    if times.shape[0] != rows or took.shape[0] != rows or records.shape[0] != rows:
        raise ValueError("columns of different sizes")
    if sizes.shape[0] != rows or waits.shape[0] != rows:
        raise ValueError("columns of different sizes")
    if sums.shape[0] != 6 or sums.shape[1] != num or last.shape[0] != num or wait.shape[0] != num:
        raise ValueError("sums of different sizes")
    with nogil:
        for row in range(rows):
            group = groups[row]
            if group < 0 or group >= num:
                good = False
                break
            sums[0, group] += 1
            if records[row] >= 0:
                sums[1, group] += 1
                sums[4, group] += records[row]
            if records[row] <= 0:
                sums[2, group] += 1
            sums[3, group] += took[row]
            if sizes[row] >= 0:
                sums[5, group] += sizes[row]
            if times[row] < first[group]:
                first[group] = times[row]
            if times[row] > last[group]:
                last[group] = times[row]
            if waits[row] >= 0 and waits[row] < wait[group]:
                wait[group] = waits[row]
    if not good:
        raise IndexError("a group that has no sums")


def follow_ends(
    const int64_t[::1] slots, const int64_t[::1] reached, const int64_t[::1] times, const int64_t[::1] ids,
    const int64_t[::1] asked, const int64_t[::1] others,
    int64_t[:, ::1] latest, int64_t[:, ::1] before, int64_t[:, ::1] beside,
):
    """The greatest end of each slot, with its time and id, of equal ones the last; negative ends are none.

    `latest` has a column for each slot, and how it stood in front of the rows of `asked`, which are sorted, is
    put into `before`; how the slot of `others` stood, which is negative where there is none, into `beside`.
    """
    cdef Py_ssize_t row, rows = slots.shape[0], num = latest.shape[1], place = 0, places = asked.shape[0]
    cdef int64_t slot, other
    cdef bint good = True
    if reached.shape[0] != rows or times.shape[0] != rows or ids.shape[0] != rows or others.shape[0] != places:
        raise ValueError("columns of different sizes")
    if before.shape[1] != places or beside.shape[1] != places:
        raise ValueError("ends of different sizes")
    if latest.shape[0] != 3 or before.shape[0] != 3 or beside.shape[0] != 3:
        raise ValueError("ends have three numbers")
    with nogil:
        for row in range(rows):
            slot = slots[row]
            if slot < 0 or slot >= num:
                good = False
                break
            if place < places and asked[place] == row:
                before[0, place], before[1, place] = latest[0, slot], latest[1, slot]
                before[2, place] = latest[2, slot]
                other = others[place]
                if other >= num:
                    good = False
                    break
                if other >= 0:
                    beside[0, place], beside[1, place] = latest[0, other], latest[1, other]
                    beside[2, place] = latest[2, other]
                place += 1
            if reached[row] >= 0 and reached[row] >= latest[0, slot]:
                latest[0, slot], latest[1, slot], latest[2, slot] = reached[row], times[row], ids[row]
    if not good:
        raise IndexError("a slot that has no end")
