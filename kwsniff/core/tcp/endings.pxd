# cython: language_level=3
# How a connection ends: what was held is handed on, what is missing is named, and the reason is recorded.
# endings.pyx has the rules.

from kwsniff.core.declared cimport ENDING_FIN
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.control_block cimport Direction, block_of
from kwsniff.core.tcp.segments cimport distance
from kwsniff.core.tcp.stream_table cimport Streams

cdef void end_connection(Streams* streams, Connection* connection, int why) noexcept nogil


cdef inline bint closed_by(Direction* own) noexcept nogil:
    """This direction's FIN was sent and acknowledged."""
    return own.snd.fin_done and (not own.snd.known or own.snd.acked_known and distance(own.snd.acked, own.snd.fin_seq + 1) >= 0)


cdef inline void close_if_done(Streams* streams, Connection* connection) noexcept nogil:
    cdef int i
    cdef Direction* own
    if connection.ended:
        return
    for i in range(2):
        own = &block_of(connection).direction[i]
        if own.snd.fin and own.snd.known and distance(own.snd.next_seq, own.snd.fin_seq) >= 0:
            own.snd.fin_done = True
    if closed_by(&block_of(connection).direction[0]) and closed_by(&block_of(connection).direction[1]):
        end_connection(streams, connection, ENDING_FIN)
