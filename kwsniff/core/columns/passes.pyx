# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Single passes over whole columns, where numpy needs several and arrays in between.

Rules
  1. Arrays belong to the caller. Their sizes, and numbers that are places in others, are looked at before
     they are used.
"""

from libc.stdint cimport int64_t, uint8_t


def follow(const int64_t[::1] ids, const int64_t[::1] wanted, int64_t[::1] places):
    """The place of each of `wanted` in `ids`, if all are there and in that order; else False, and places are any."""
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


def follow_ends(
    const int64_t[::1] slots, const int64_t[::1] reached, const int64_t[::1] times, const int64_t[::1] ids,
    const int64_t[::1] asked, const int64_t[::1] others,
    int64_t[:, ::1] latest, int64_t[:, ::1] before, int64_t[:, ::1] beside,
):
    """The greatest end of each slot, with its time and id, of equal ones the last; negative ends are none.

    `latest` has a column for each slot. Its state before the rows of `asked`, which are sorted, is put into
    `before`; the state of the slot of `others`, which is negative where there is none, into `beside`.
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


def find_rises(const int64_t[::1] slots, const int64_t[::1] values, int64_t[::1] latest, uint8_t[::1] rises):
    """Sets `rises` where a value is greater than all earlier ones of its slot, of which `latest` has the
    greatest."""
    cdef Py_ssize_t row, rows = slots.shape[0], num = latest.shape[0]
    cdef int64_t slot
    cdef bint good = True
    if values.shape[0] != rows or rises.shape[0] != rows:
        raise ValueError("columns of different sizes")
    with nogil:
        for row in range(rows):
            slot = slots[row]
            if slot < 0 or slot >= num:
                good = False
                break
            if values[row] > latest[slot]:
                latest[slot] = values[row]
                rises[row] = 1
    if not good:
        raise IndexError("a slot that has no value")


def find_partitions(
    const int64_t[::1] calls, const int64_t[::1] topics, const int64_t[::1] partitions,
    const int64_t[::1] asked_calls, const int64_t[::1] asked_topics, const int64_t[::1] asked_partitions,
    int64_t[::1] found,
):
    """The row of each asked partition of a topic and call; where there is none, `found` stays as it is.

    Calls rise, and the partitions of a call come in the same order on both sides: one pass finds them all.
    """
    cdef Py_ssize_t row, place = 0, num = calls.shape[0], asked = asked_calls.shape[0]
    if topics.shape[0] != num or partitions.shape[0] != num:
        raise ValueError("columns of different sizes")
    if asked_topics.shape[0] != asked or asked_partitions.shape[0] != asked or found.shape[0] != asked:
        raise ValueError("asked columns of different sizes")
    with nogil:
        for row in range(asked):
            while place < num and calls[place] < asked_calls[row]:
                place += 1
            while place < num and calls[place] == asked_calls[row]:
                if topics[place] == asked_topics[row] and partitions[place] == asked_partitions[row]:
                    found[row] = place
                    break
                place += 1
