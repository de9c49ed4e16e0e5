# cython: language_level=3
# The Community ID flow hash of a connection, version 1, by which Zeek, Suricata and Arkime name it, too.
# community_id.pyx has the rules.

from libc.stdint cimport uint8_t

from kwsniff.core.tcp.connection cimport Connection

cdef enum:
    COMMUNITY_ID_BYTES = 30     # "1:", 28 characters of base64

cdef void write_community_id(Connection* connection, uint8_t* text) noexcept nogil
