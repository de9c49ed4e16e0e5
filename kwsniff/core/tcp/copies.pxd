# cython: language_level=3
from libc.stdint cimport int64_t

from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.tcp.connections cimport Connection, Direction

cdef bint is_copy(Direction* own, Direction* other, Segment* segment) noexcept nogil
cdef void remember_packet(Direction* own, Segment* segment) noexcept nogil
cdef int64_t strangeness(Connection* connection, Segment* segment, int sender) noexcept nogil
