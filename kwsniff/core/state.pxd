# cython: language_level=3
# Everything that an analysis needs to continue, as bytes: connections, unfinished frames, held segments,
# waiting calls, names, limits, the open capture. state.pyx has the rules.

from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.kafka.dispatch cimport Context
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.capture.packets cimport Reader
from kwsniff.core.tcp.stream_table cimport Streams

cdef bint save_state(Buffer* out, Context* context, Streams* streams, Reader* reader, bint with_ended) noexcept nogil
cdef bint load_state(Span state, Context* context, Streams* streams, Reader* reader) noexcept nogil
