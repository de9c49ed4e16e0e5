# cython: language_level=3
"""Addresses of IPv4 among those of IPv6."""

from libc.stdint cimport uint8_t
from libc.string cimport memset

from kwsniff.core.bytes.span cimport Span, copy_out


cdef inline void map_ipv4(Span packet, size_t at, uint8_t* address) noexcept nogil:
    memset(address, 0, 10)
    address[10] = 0xFF
    address[11] = 0xFF
    copy_out(packet, at, &address[12], 4)
