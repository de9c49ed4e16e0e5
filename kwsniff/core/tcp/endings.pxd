# cython: language_level=3
# How a connection ends: what was held is handed on, what is missing is named, and the reason is recorded.
# endings.pyx has the rules.

from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stream_table cimport Streams

cdef void end_connection(Streams* streams, Connection* connection, int why) noexcept nogil
