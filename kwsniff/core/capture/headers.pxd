# cython: language_level=3
# Packets to TCP segments: link layers, tags, IP, tunnels, TCP. headers.pyx has the rules.

from libc.stdint cimport int32_t, uint32_t

from kwsniff.core.bytes.span cimport Span
from kwsniff.core.capture.reader cimport Reader, Segment

cdef int read_link(Reader* reader, int32_t link_type, Span packet, uint32_t original, Segment* segment,
                   int depth) noexcept nogil
