# cython: language_level=3
# Frames of both directions to calls: what streams and frames hand over, and to which room it goes.
# dispatch.pyx has the rules.

from libc.stdint cimport int64_t, uint64_t

from kwsniff.core.kafka.kafka_connection cimport Context, KafkaConnection
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stream_table cimport Streams

cdef void start_context(Context* context, uint64_t seed) noexcept nogil
cdef void free_context(Context* context) noexcept nogil
cdef void close_kafka(Context* context, KafkaConnection* kafka) noexcept nogil
cdef void take_bytes(void* context, Connection* connection, int direction, Arrival* arrival, Span data) noexcept nogil
cdef void take_gap(void* context, Connection* connection, int direction, Arrival* arrival, int64_t num, int cause) noexcept nogil
cdef void end_too_many(Context* context, int64_t time) noexcept nogil
cdef void forget_sealed(Context* context) noexcept nogil
cdef void end_all_sealed(Context* context) noexcept nogil
cdef void take_secrets(Context* context, Streams* streams) noexcept nogil
cdef void take_end(void* context, Connection* connection) noexcept nogil
cdef void take_dropped(void* context, int64_t capture, int cause, int64_t num) noexcept nogil
cdef void take_oddity(void* context, Connection* connection, int direction, Arrival* arrival, int oddity, int64_t value) noexcept nogil
