# cython: language_level=3
from kwsniff.core.tcp.connections cimport Connection, Streams

cdef void end_connection(Streams* streams, Connection* connection, int why) noexcept nogil
