# cython: language_level=3
# cython: boundscheck=False, wraparound=False
# Columns of whole numbers, read where Arrow keeps them, a few rows at a time. numbers.pyx has the rules.

from libc.stdint cimport INT64_MAX, int64_t, uint8_t

cdef enum:
    CHUNK = 256

cdef struct View:
    const void* values      # NULL: all rows are null
    const uint8_t* valid    # NULL: none is
    Py_ssize_t first
    int width               # bytes per number

cdef class WholeColumn:
    cdef Py_buffer _values
    cdef Py_buffer _valid
    cdef View view
    cdef readonly Py_ssize_t rows

cdef void spread(
    const View* view, Py_ssize_t begin, Py_ssize_t rows, int64_t null, int64_t* into,
) noexcept nogil

cdef Py_ssize_t take_views(tuple columns, View* views, Py_ssize_t num) except -1


cdef inline int64_t look_up(const int64_t[::1] by_code, int64_t code) noexcept nogil:
    """The number of a code; INT64_MAX where it has none."""
    cdef Py_ssize_t nulls = by_code.shape[0] - 1
    if code < 0:
        return by_code[nulls]
    return by_code[code] if code < nulls else INT64_MAX


cdef inline void keep_least(
    int64_t[:, ::1] keys, int64_t[:, ::1] ids, int64_t group, int64_t key, int64_t call_id,
) noexcept nogil:
    """Puts a row among the least of its group by (key, id), which are kept in order."""
    cdef Py_ssize_t place = keys.shape[1] - 1
    if key > keys[group, place] or (key == keys[group, place] and call_id >= ids[group, place]):
        return
    while place and (
        key < keys[group, place - 1] or (key == keys[group, place - 1] and call_id < ids[group, place - 1])
    ):
        keys[group, place], ids[group, place] = keys[group, place - 1], ids[group, place - 1]
        place -= 1
    keys[group, place], ids[group, place] = key, call_id
