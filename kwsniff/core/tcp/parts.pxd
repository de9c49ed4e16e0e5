# cython: language_level=3
# Accessors to parts of a connection, for folders that do not know its structure. parts.pyx has the rules.

from libc.stdint cimport int64_t, uint32_t

from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.lifecycle cimport Closing, Handshake, IcmpError, Reset
from kwsniff.core.tcp.round_trips cimport RoundTrips
from kwsniff.core.tcp.send_sequence cimport SendSequence
from kwsniff.core.tcp.traffic cimport Traffic

cdef SendSequence* sequence_of(Connection* connection, int direction) noexcept nogil
cdef Traffic* traffic_of(Connection* connection, int direction) noexcept nogil
cdef RoundTrips* round_trips_of(Connection* connection, int direction) noexcept nogil
cdef Handshake* handshake_of(Connection* connection) noexcept nogil
cdef Closing* closing_of(Connection* connection) noexcept nogil
cdef Reset* reset_of(Connection* connection) noexcept nogil
cdef IcmpError* icmp_error_of(Connection* connection) noexcept nogil
cdef uint32_t furthest_of(Connection* connection, int direction) noexcept nogil
cdef Connection* copy_of(Connection* connection) noexcept nogil
cdef int64_t bytes_of(Connection* connection) noexcept nogil
