# cython: language_level=3
# Duplicates: one packet captured more than once. duplicates.pyx has the rules.

from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.control_block cimport Direction

cdef bint is_copy(Connection* connection, int sender, Segment* segment) noexcept nogil
cdef void remember_packet(Direction* own, Segment* segment) noexcept nogil
