# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""ICMP errors: what became of a TCP segment.

Rules
  1. An error is not TCP. It quotes the beginning of the packet that it is about; the sink gets that header.
  2. What quotes no TCP, or too little of it to know the connection, says nothing.

    type, code | checksum | four bytes | IP | ports, number ...

Source: RFC 792; RFC 1122 3.2.2.1 and RFC 1812 5.2.7.1 (codes); RFC 4443 3.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from kwsniff.core.declared cimport *
from kwsniff.core.capture.mapped cimport map_ipv4
from kwsniff.core.capture.reader cimport Reader, Segment
from kwsniff.core.bytes.span cimport Span, be16, be32, copy_out, drop, has, u8


cdef void read_icmp(Reader* reader, uint32_t protocol, Span packet, Segment* segment) noexcept nogil:
    """Type, code, checksum, four bytes more, and the beginning of the packet that it is about (RFC 792, RFC 4443 3)."""
    cdef int error = error_of_icmp6(u8(packet, 0), u8(packet, 1)) if protocol == ICMP6 else error_of_icmp(
        u8(packet, 0), u8(packet, 1))
    cdef Span quoted = drop(packet, 8)
    cdef size_t header = 40
    if error < 0 or quoted.num == 0:
        return
    memcpy(reader.icmp_from, segment.source, 16)
    if u8(quoted, 0) >> 4 == 4:
        header = (u8(quoted, 0) & 15) * 4
        if header < 20 or u8(quoted, 9) != 6 or be16(quoted, 6) & 0x1FFF or not has(quoted, header, 8):
            return
        map_ipv4(quoted, 12, segment.source)
        map_ipv4(quoted, 16, segment.target)
    elif u8(quoted, 0) >> 4 == 6 and u8(quoted, 6) == 6 and has(quoted, header, 8):
        copy_out(quoted, 8, segment.source, 16)
        copy_out(quoted, 24, segment.target, 16)
    else:
        return
    segment.source_port = be16(quoted, header)
    segment.target_port = be16(quoted, header + 2)
    segment.seq = be32(quoted, header + 4)
    reader.icmp_error = 1 + error


cdef int error_of_icmp(uint32_t kind, uint32_t code) noexcept nogil:
    if kind == 11:
        return ICMP_ERROR_TIME_EXCEEDED
    if kind != 3:
        return ICMP_ERROR_NONE
    if code in (0, 6, 11):
        return ICMP_ERROR_NET_UNREACHABLE
    if code in (1, 7, 8, 12):
        return ICMP_ERROR_HOST_UNREACHABLE
    if code in (9, 10, 13):
        return ICMP_ERROR_PROHIBITED
    if code == 2:
        return ICMP_ERROR_PROTOCOL_UNREACHABLE
    if code == 3:
        return ICMP_ERROR_PORT_UNREACHABLE
    return ICMP_ERROR_TOO_BIG if code == 4 else ICMP_ERROR_OTHER


cdef int error_of_icmp6(uint32_t kind, uint32_t code) noexcept nogil:
    if kind == 2:
        return ICMP_ERROR_TOO_BIG
    if kind == 3:
        return ICMP_ERROR_TIME_EXCEEDED
    if kind != 1:
        return ICMP_ERROR_NONE
    if code == 0:
        return ICMP_ERROR_NET_UNREACHABLE
    if code == 3:
        return ICMP_ERROR_HOST_UNREACHABLE
    if code == 4:
        return ICMP_ERROR_PORT_UNREACHABLE
    return ICMP_ERROR_PROHIBITED if code in (1, 5, 6) else ICMP_ERROR_OTHER
