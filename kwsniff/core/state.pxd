# cython: language_level=3
from kwsniff.core.buffer cimport Buffer
from kwsniff.core.exchanges cimport Context
from kwsniff.core.octets cimport Octets
from kwsniff.core.packets cimport Reader
from kwsniff.core.streams cimport Streams

cdef bint save_state(Buffer* out, Context* context, Streams* streams, Reader* reader) noexcept nogil
cdef bint load_state(Octets state, Context* context, Streams* streams, Reader* reader) noexcept nogil
