# cython: language_level=3
# What the rooms of Kafka say to the rows, by the pointers of the context: they know no table.
#
# Rule: one call per row, never one per field.

from libc.stdint cimport int32_t, int64_t

from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection, Program
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.events cimport TcpEvent
from kwsniff.core.wire.facts cimport Facts


cdef inline void write_call(Context* context, KafkaConnection* kafka, Call* call, int status, int reason, Frame* response,
                            Facts* facts) noexcept nogil:
    context.rows.call(context, kafka, call, status, reason, response, facts)


cdef inline void write_partitions(Context* context, KafkaConnection* kafka, Call* call, Facts* facts) noexcept nogil:
    context.rows.partitions(context, kafka, call, facts)


cdef inline void write_latency(Context* context, KafkaConnection* kafka, Call* call, Frame* response,
                               Facts* facts) noexcept nogil:
    context.rows.latency(context, kafka, call, response, facts)


cdef inline void write_batches(Context* context, KafkaConnection* kafka, Call* call, Facts* facts,
                               int64_t time) noexcept nogil:
    context.rows.batches(context, kafka, call, facts, time)


cdef inline void write_errors(Context* context, KafkaConnection* kafka, Call* call, Frame* response, Facts* facts,
                              Program* program) noexcept nogil:
    context.rows.errors(context, kafka, call, response, facts, program)


cdef inline void write_response_only(Context* context, KafkaConnection* kafka, int64_t id, Frame* response,
                                     int32_t correlation_id, int reason) noexcept nogil:
    context.rows.response_only(context, kafka, id, response, correlation_id, reason)


cdef inline void write_connection(Context* context, Connection* connection, KafkaConnection* kafka) noexcept nogil:
    context.rows.connection(context, connection, kafka)


cdef inline void write_anomaly(Context* context, Connection* connection, int64_t call_id, Arrival* arrival,
                               int direction, int64_t offset, int name, int64_t value) noexcept nogil:
    context.rows.anomaly(context, connection, call_id, arrival, direction, offset, name, value)


cdef inline void write_event(Context* context, Connection* connection, KafkaConnection* kafka, TcpEvent* event,
                             int64_t call_id) noexcept nogil:
    context.rows.event(context, connection, kafka, event, call_id)


cdef inline void write_stalls(Context* context, KafkaConnection* kafka, Call* call, int64_t asked, int64_t arrived,
                              int64_t left, int64_t answered) noexcept nogil:
    """Of the request between `asked` and `arrived`, of the response between `left` and `answered`."""
    context.rows.stalls(context, kafka, call, asked, arrived, left, answered)
