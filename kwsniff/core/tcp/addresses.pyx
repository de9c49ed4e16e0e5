# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""IP addresses as text.

Rules
  1. IPv4 is what is mapped into IPv6 (RFC 4291 2.5.5.2), as headers.pyx keeps it.
  2. The text never exceeds the 48 bytes that callers have for it.
"""

from libc.stdint cimport uint8_t

cdef extern from "<arpa/inet.h>" nogil:
    int AF_INET
    int AF_INET6
    const char* inet_ntop(int family, const void* source, char* text, unsigned int size)

cdef extern from "<string.h>" nogil:
    size_t strnlen(const char* text, size_t most)


cdef int format_address(const uint8_t* address, uint8_t* text) noexcept nogil:
    """Writes the usual text form of a mapped IPv4 or an IPv6 address to 48 bytes; returns its length."""
    cdef int i
    cdef bint mapped = address[10] == 0xFF and address[11] == 0xFF
    for i in range(10):
        mapped = mapped and address[i] == 0
    text[0] = 0
    if mapped:
        inet_ntop(AF_INET, &address[12], <char*>text, 48)
    else:
        inet_ntop(AF_INET6, address, <char*>text, 48)
    return <int>strnlen(<const char*>text, 47)
