# cython: language_level=3
# IP addresses as text. addresses.pyx has the rules.

from libc.stdint cimport uint8_t

cdef int format_address(const uint8_t* address, uint8_t* text) noexcept nogil
