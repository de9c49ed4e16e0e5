# cython: language_level=3
# Resynchronization of a direction after a gap: whether a frame begins here. frame_resync.pyx has the rules.

from libc.stdint cimport int64_t

from kwsniff.core.kafka.frames cimport Link
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.tcp.arrivals cimport Arrival

# For a FrameSink: the pointers are a Context's and a KafkaConnection's.
cdef int look_for_frame(void* context, void* kafka, int side, Span data, bint first) noexcept nogil
cdef bint may_chain(void* context, void* kafka) noexcept nogil
cdef void take_chain(void* context, void* kafka, Link* chain, int num) noexcept nogil
cdef void note_step(void* context, void* kafka, int side, Arrival* arrival, int64_t offset, bint lost,
                    int64_t value) noexcept nogil
