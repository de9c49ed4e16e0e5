# cython: language_level=3
# ICMP errors: what became of a TCP segment. icmp.pyx has the rules.

from libc.stdint cimport uint32_t

from kwsniff.core.capture.reader cimport Reader, Segment
from kwsniff.core.bytes.span cimport Span

cdef enum:
    ICMP = 1            # protocols of IP
    ICMP6 = 58

cdef void read_icmp(Reader* reader, uint32_t protocol, Span packet, Segment* segment) noexcept nogil
