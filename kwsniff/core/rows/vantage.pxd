# cython: language_level=3
from libc.stdint cimport int64_t

cdef int tell_vantage(int64_t client, int64_t broker) noexcept nogil
