# cython: language_level=3
# A number that a message has or has not.
#
# Rule: what is not known has the value 0, and no code reads it.

from libc.stdint cimport int64_t

cdef struct Known:
    bint is_known
    int64_t value


cdef inline void know(Known* known, int64_t value) noexcept nogil:
    known.is_known = True
    known.value = value


cdef inline void know_first(Known* known, int64_t value) noexcept nogil:
    if not known.is_known:
        known.is_known = True
        known.value = value
