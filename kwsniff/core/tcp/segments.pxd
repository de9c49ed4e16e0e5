# cython: language_level=3
"""What every room that follows TCP asks of a segment."""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from kwsniff.core.bytes.span cimport be64, make_span
from kwsniff.core.capture.packets cimport Segment


cdef enum:
    WINDOW = 1 << 30            # the largest window of RFC 7323
    LEAST_WINDOW = 65535        # what a receiver may have open when its scale is not known (RFC 9293 3.1)


cdef inline int32_t distance(uint32_t to, uint32_t since) noexcept nogil:
    """How far `to` is ahead of `since`, by signed 32-bit difference (RFC 9293 3.4)."""
    return <int32_t>(to - since)


cdef inline uint64_t address_half(const uint8_t* address, size_t at) noexcept nogil:
    return be64(make_span(address, 16), at)


cdef inline int source_endpoint(Segment* segment) noexcept nogil:
    """0 when the sender is the smaller endpoint of the two."""
    cdef uint64_t source = address_half(segment.source, 0)
    cdef uint64_t target = address_half(segment.target, 0)
    if source == target:
        source = address_half(segment.source, 8)
        target = address_half(segment.target, 8)
    if source != target:
        return 0 if source < target else 1
    return 0 if segment.source_port <= segment.target_port else 1
