# cython: language_level=3
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stream_table cimport Streams

cdef void end_connection(Streams* streams, Connection* connection, int why) noexcept nogil
