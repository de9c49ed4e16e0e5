# cython: language_level=3
from libc.stdint cimport int64_t

from kwsniff.core.tcp.connections cimport Direction

cdef int tell_vantage(Direction* asks, Direction* answers) noexcept nogil
cdef int64_t way_to_broker(Direction* asks, Direction* answers) noexcept nogil
