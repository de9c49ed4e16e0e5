# cython: language_level=3
# Holes of streams: noted in one reading of captures, filled in the next with what another place of capture saw.
#
# Rule 1: nothing here is called where no byte is missing: a stream without holes pays nothing.
#
#     first reading     declare_gap -> Hole, Hole ...
#     next reading      Fill, Fill ... -> bytes in place of a gap

from libc.stdint cimport int64_t, uint32_t, uint64_t

from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stream_table cimport Streams

# As Python reads them: native numbers of 64 bits.
cdef struct Hole:
    int64_t connection      # its id
    int64_t sender          # the endpoint
    int64_t offset          # position in its stream
    int64_t num             # bytes
    int64_t seq
    int64_t is_received     # its receiver acknowledged it
    uint64_t source         # numbers of the endpoints: see packet_offsets.pyi
    uint64_t target

cdef struct Fill:
    int64_t connection
    int64_t sender
    int64_t offset
    int64_t num
    int64_t begin           # where its bytes are
    int64_t ack             # what their segment acknowledged; -1: nothing

cdef void note_hole(Streams* streams, Connection* connection, int sender, int64_t num, int cause) noexcept nogil
cdef int64_t find_fill(Streams* streams, Connection* connection, int sender, int64_t offset) noexcept nogil
cdef bint is_of(Streams* streams, int64_t number, Connection* connection, int sender) noexcept nogil
cdef uint32_t hole_end(Streams* streams, Connection* connection, int sender, uint32_t to_seq) noexcept nogil
cdef bytes tell_holes(Streams* streams)
cdef int use_fills(Streams* streams, bytes fills, bytes data) except -1
