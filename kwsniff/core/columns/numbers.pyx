# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, autotestdict=False
"""Columns of whole numbers, read where Arrow keeps them, a few rows at a time.

Rules
  1. A column is whole numbers of 1, 2, 4 or 8 bytes, a bit for each that is there, and the row it begins with.
     One that a table lacks has no numbers: all its rows are null. Sizes are looked at when it is made.
  2. Rows are taken CHUNK at a time. Their columns become 64-bit numbers, null a number that the caller says, in
     memory that stays in the processor's first cache.
  3. Codes of texts, and numbers of groups, are looked at before they are places in arrays. Null is code -1; what
     is looked up by code has one place more, the last, for null.
  4. Sums wrap around, as all numbers of 64 bits do; nothing else of what rows say can do harm.

       values  | v v v v v v v v v v ...       valid  | 1 1 1 0 1 0 1 1 ...
                     ^ first                                ^ bit number `first`
       chunk   | v N v N v v ...   64 bits each, N where the bit is not set
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int16_t, int32_t, int64_t, uint8_t

ctypedef fused Whole:
    int8_t
    int16_t
    int32_t
    int64_t


cdef class WholeColumn:
    """Rows of one column. `width`: bytes of each number, 0 where there are none; `first`: the number, and the
    bit, of the first row; `valid`: None where all are there. Holds both buffers as long as it lives.
    """

    def __cinit__(self, values, int width, Py_ssize_t first, Py_ssize_t rows, valid=None):
        if width not in (0, 1, 2, 4, 8) or first < 0 or rows < 0:
            raise ValueError("no column has such numbers")
        if width:
            PyObject_GetBuffer(values, &self._values, PyBUF_SIMPLE)
            if rows > self._values.len // width - first:
                raise ValueError("less numbers than rows")
        if valid is not None:
            PyObject_GetBuffer(valid, &self._valid, PyBUF_SIMPLE)
            if rows > self._valid.len * 8 - first:
                raise ValueError("less bits than rows")
        self.view.values, self.view.valid = self._values.buf, <const uint8_t*>self._valid.buf
        self.view.width, self.view.first, self.rows = width, first, rows

    def __dealloc__(self):
        # Does nothing to one that was not filled.
        PyBuffer_Release(&self._values)
        PyBuffer_Release(&self._valid)

    def spread(self, int64_t null, int64_t[::1] into):
        """All rows as 64-bit numbers, `null` where they are null."""
        if into.shape[0] != self.rows:
            raise ValueError("columns of different sizes")
        if self.rows:
            with nogil:
                spread(&self.view, 0, self.rows, null, &into[0])

    def bounds(self, int64_t null):
        """The least and the greatest number, `null` where rows are null; (`null`, `null`) of no rows."""
        cdef int64_t[CHUNK] there
        cdef Py_ssize_t begin = 0, size, row
        cdef int64_t least = INT64_MAX, most = INT64_MIN
        if not self.rows:
            return null, null
        with nogil:
            while begin < self.rows:
                size = min(CHUNK, self.rows - begin)
                spread(&self.view, begin, size, null, there)
                for row in range(size):
                    least = min(least, there[row])
                    most = max(most, there[row])
                begin += size
        return least, most

    def count(self, int64_t wanted):
        """Rows with this number."""
        cdef int64_t[CHUNK] there
        cdef Py_ssize_t begin = 0, size, row, found = 0
        with nogil:
            if self.view.width == 1 and self.view.valid is NULL and wanted == <int8_t>wanted:
                found = equal_bytes(<const int8_t*>self.view.values + self.view.first, self.rows, <int8_t>wanted)
                begin = self.rows
            while begin < self.rows:
                size = min(CHUNK, self.rows - begin)
                spread(&self.view, begin, size, ~wanted, there)
                for row in range(size):
                    found += there[row] == wanted
                begin += size
        return found

    def sum_above(self, int64_t above):
        """The sum of all numbers that are greater."""
        cdef int64_t[CHUNK] there
        cdef Py_ssize_t begin = 0, size, row
        cdef int64_t total = 0
        with nogil:
            while begin < self.rows:
                size = min(CHUNK, self.rows - begin)
                spread(&self.view, begin, size, above, there)
                for row in range(size):
                    total += there[row] if there[row] > above else 0
                begin += size
        return total


cdef Py_ssize_t take_views(tuple columns, View* views, Py_ssize_t num) except -1:
    """The views of `num` columns; gives their rows. They hold while `columns` does."""
    cdef WholeColumn column
    cdef Py_ssize_t at, rows = -1
    if len(columns) != num:
        raise ValueError("more or less columns than are read")
    for at, column in enumerate(columns):
        if at and column.rows != rows:
            raise ValueError("columns of different sizes")
        rows, views[at] = column.rows, column.view
    return rows


cdef Py_ssize_t equal_bytes(const int8_t* values, Py_ssize_t rows, int8_t wanted) noexcept nogil:
    """Most codes of words are bytes, of which a processor compares sixteen at a time, if it may count so as well."""
    cdef Py_ssize_t begin = 0, row, size, found = 0
    cdef int8_t some
    while begin < rows:
        size, some = min(64, rows - begin), 0
        for row in range(size):
            some += values[begin + row] == wanted
        found, begin = found + some, begin + size
    return found


cdef void spread(
    const View* view, Py_ssize_t begin, Py_ssize_t rows, int64_t null, int64_t* into,
) noexcept nogil:
    """Some rows as 64-bit numbers, `null` where they are null."""
    cdef Py_ssize_t row, first = view.first + begin
    if view.width == 1:
        spread_whole(<const int8_t*>view.values + first, view.valid, first, rows, null, into)
    elif view.width == 2:
        spread_whole(<const int16_t*>view.values + first, view.valid, first, rows, null, into)
    elif view.width == 4:
        spread_whole(<const int32_t*>view.values + first, view.valid, first, rows, null, into)
    elif view.width == 8:
        spread_whole(<const int64_t*>view.values + first, view.valid, first, rows, null, into)
    else:
        for row in range(rows):
            into[row] = null


cdef void spread_whole(
    const Whole* values, const uint8_t* valid, Py_ssize_t first, Py_ssize_t rows, int64_t null, int64_t* into,
) noexcept nogil:
    cdef Py_ssize_t row = 0, each, aligned = min(rows, -first & 7)
    cdef uint8_t eight
    cdef int64_t there
    if valid is NULL:
        for row in range(rows):
            into[row] = values[row]
        return
    while row < aligned:
        into[row] = values[row] if valid[(first + row) >> 3] >> ((first + row) & 7) & 1 else null
        row += 1
    # Eight rows at a time: nulls come in runs, of calls that have no such field.
    while rows - row >= 8:
        eight = valid[(first + row) >> 3]
        if eight == 0xFF:
            for each in range(8):
                into[row + each] = values[row + each]
        elif not eight:
            for each in range(8):
                into[row + each] = null
        else:
            for each in range(8):
                there = -<int64_t>(eight >> each & 1)
                into[row + each] = (<int64_t>values[row + each] & there) | (null & ~there)
        row += 8
    while row < rows:
        into[row] = values[row] if valid[(first + row) >> 3] >> ((first + row) & 7) & 1 else null
        row += 1
