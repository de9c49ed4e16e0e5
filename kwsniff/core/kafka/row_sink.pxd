# cython: language_level=3
# What the rooms of Kafka say to the rows, by the pointers of the context: they know no table.
#
# Rule: one call per row, never one per field.

from libc.stdint cimport int32_t, int64_t

from kwsniff.core.kafka.dialog cimport Call, Context, Dialog, Program
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.tcp.connections cimport Arrival, Connection, TcpEvent
from kwsniff.core.wire.facts cimport Facts


cdef inline void write_call(Context* context, Dialog* dialog, Call* call, int status, int reason, Frame* response,
                            Facts* facts) noexcept nogil:
    context.rows.call(context, dialog, call, status, reason, response, facts)


cdef inline void write_partitions(Context* context, Dialog* dialog, Call* call, Facts* facts) noexcept nogil:
    context.rows.partitions(context, dialog, call, facts)


cdef inline void write_latency(Context* context, Dialog* dialog, Call* call, Frame* response,
                               Facts* facts) noexcept nogil:
    context.rows.latency(context, dialog, call, response, facts)


cdef inline void write_batches(Context* context, Dialog* dialog, Call* call, Facts* facts,
                               int64_t time) noexcept nogil:
    context.rows.batches(context, dialog, call, facts, time)


cdef inline void write_errors(Context* context, Dialog* dialog, Call* call, Frame* response, Facts* facts,
                              Program* program) noexcept nogil:
    context.rows.errors(context, dialog, call, response, facts, program)


cdef inline void write_response_only(Context* context, Dialog* dialog, int64_t id, Frame* response,
                                     int32_t correlation_id, int reason) noexcept nogil:
    context.rows.response_only(context, dialog, id, response, correlation_id, reason)


cdef inline void write_connection(Context* context, Connection* connection, Dialog* dialog) noexcept nogil:
    context.rows.connection(context, connection, dialog)


cdef inline void write_anomaly(Context* context, Connection* connection, int64_t call_id, Arrival* arrival,
                               int direction, int64_t offset, int name, int64_t value) noexcept nogil:
    context.rows.anomaly(context, connection, call_id, arrival, direction, offset, name, value)


cdef inline void write_event(Context* context, Connection* connection, Dialog* dialog, TcpEvent* event,
                             int64_t call_id) noexcept nogil:
    context.rows.event(context, connection, dialog, event, call_id)
