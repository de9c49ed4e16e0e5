# cython: language_level=3
from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.tcp.streams cimport Connection, Streams

cdef Connection* find_connection(Streams* streams, Segment* segment, int sender) noexcept nogil
cdef Connection* add_connection(Streams* streams, Segment* segment, int sender) noexcept nogil
cdef void adopt_connection(Streams* streams, Connection* connection) noexcept nogil
cdef void begin_connection(Streams* streams, Connection* connection) noexcept nogil
cdef void remove_connection(Streams* streams, Connection* connection) noexcept nogil
cdef void link_reset(Streams* streams, Connection* connection) noexcept nogil
cdef void unlink_reset(Streams* streams, Connection* connection) noexcept nogil
