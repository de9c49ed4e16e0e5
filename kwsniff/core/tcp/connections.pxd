# cython: language_level=3
# Which connection a segment belongs to: a hash table by addresses and ports, and an order by age.
# connections.pyx has the rules.

from libc.stdint cimport int64_t, uint8_t

from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stream_table cimport Streams

cdef Connection* find_connection(Streams* streams, Segment* segment, int sender) noexcept nogil
cdef Connection* add_connection(Streams* streams, Segment* segment, int sender) noexcept nogil
cdef void note_icmp_error(void* opaque, Segment* quoted, int error, const uint8_t* source) noexcept nogil
cdef void adopt_connection(Streams* streams, Connection* connection) noexcept nogil
cdef void drop_events(Streams* streams, Connection* connection) noexcept nogil
cdef void begin_connection(Streams* streams, Connection* connection) noexcept nogil
cdef void mark_ended(Streams* streams, Connection* connection, bint ended) noexcept nogil
cdef void forget_ended(Streams* streams, int64_t time) noexcept nogil
cdef void remove_connection(Streams* streams, Connection* connection) noexcept nogil
cdef void link_reset(Streams* streams, Connection* connection) noexcept nogil
cdef void unlink_reset(Streams* streams, Connection* connection) noexcept nogil
