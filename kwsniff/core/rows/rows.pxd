# cython: language_level=3
# What is known of calls, errors and oddities, written as rows. rows.pyx has the rules.

from libc.stdint cimport int32_t, int64_t, uint8_t

from kwsniff.core.columns.columns cimport Table, put_int64, put_null
from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection, Program
from kwsniff.core.wire.facts cimport Facts
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.bytes.buffer cimport Buffer, contents
from kwsniff.core.bytes.span cimport Span, make_span
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection

cdef void put_endpoints(Context* context, Table* table, KafkaConnection* kafka, int client_address, int client_port,
                        int broker_address, int broker_port) noexcept nogil
cdef void put_capture(Context* context, Table* table, int column, int64_t number) noexcept nogil
cdef void put_time(Table* table, int column, int64_t time) noexcept nogil
cdef void put_call_head(Context* context, Table* table, KafkaConnection* kafka, Call* call, int call_id, int capture,
                        int connection_id, int api_key, int api_name, int api_version, int client_id, int broker_address,
                        int broker_port) noexcept nogil
cdef Span capture_name(Context* context, int64_t number) noexcept nogil
cdef void write_call(Context* context, KafkaConnection* kafka, Call* call, int status, int reason, Frame* response,
                     Facts* facts) noexcept nogil
cdef void write_errors(Context* context, KafkaConnection* kafka, Call* call, Frame* response, Facts* facts,
                       Program* program) noexcept nogil
cdef void write_response_only(Context* context, KafkaConnection* kafka, int64_t id, Frame* response,
                              int32_t correlation_id, int reason) noexcept nogil
cdef void write_anomaly(Context* context, Connection* connection, int64_t call_id, Arrival* arrival, int direction,
                        int64_t offset, int name, int64_t value) noexcept nogil
cdef void write_uuid(Span id, uint8_t* text) noexcept nogil


cdef inline Span known_text(Buffer* buffer) noexcept nogil:
    """A fact of the connection; without an address while it is not known."""
    return contents(buffer) if buffer.len else make_span(NULL, 0)


cdef inline void put_known(Table* table, int column, bint known, int64_t value) noexcept nogil:
    if known:
        put_int64(table, column, value)
    else:
        put_null(table, column)
