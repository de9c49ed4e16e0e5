# cython: language_level=3
# Holes that another place of capture fills, as soon as they show. fillings.pyx has the rules.

from libc.stdint cimport uint32_t

from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stream_table cimport Streams

cdef bint fill_held(Streams* streams, Connection* connection, int sender, Arrival* arrival, uint32_t to_seq) noexcept nogil
