# cython: language_level=3
from kwsniff.core.octets.buffer cimport Buffer
from kwsniff.core.kafka.exchanges cimport Context
from kwsniff.core.octets.octets cimport Octets
from kwsniff.core.capture.packets cimport Reader
from kwsniff.core.tcp.connections cimport Streams

cdef bint save_state(Buffer* out, Context* context, Streams* streams, Reader* reader, bint with_ended) noexcept nogil
cdef bint load_state(Octets state, Context* context, Streams* streams, Reader* reader) noexcept nogil
