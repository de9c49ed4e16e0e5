# cython: language_level=3
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kwsniff.core.buffer cimport Buffer
from kwsniff.core.octets cimport Octets

cdef enum ColumnKind:
    COLUMN_INT64 = 0
    COLUMN_TIME = 1
    COLUMN_INT32 = 2
    COLUMN_INT16 = 3
    COLUMN_ENUM = 4
    COLUMN_BOOL = 5
    COLUMN_STRING = 6
    COLUMN_STRINGS = 7

cdef struct Dictionary:
    Buffer bytes            # all entries, one behind the other
    Buffer ends             # int32 per entry: where it ends in bytes; one leading 0
    Buffer hashes           # uint32 per entry
    uint32_t* slots         # entry number + 1, or 0
    uint32_t num_slots
    uint32_t num

cdef struct Column:
    int kind
    size_t width            # bytes per value; 0 for bits
    Buffer values           # fixed-width values, or int32 dictionary indices
    Buffer validity
    int64_t nulls
    Buffer list_ends        # COLUMN_STRINGS: int32 per row, one leading 0
    Dictionary dictionary

cdef struct Table:
    Column* columns
    int num_columns
    int64_t rows
    int64_t room            # rows that fit without growing
    bint failed             # memory was refused: the row under way is lost

cdef enum TableNumber:
    TABLE_API_CALLS = 0
    TABLE_LATENCIES = 1
    TABLE_ERROR_CODES = 2
    TABLE_CONNECTIONS = 3
    TABLE_ANOMALIES = 4
    NUM_TABLES = 5

cdef enum ApiCallsColumn:
    CALL_CALL_ID, CALL_CAPTURE, CALL_CONNECTION_ID, CALL_CLIENT_ADDRESS, CALL_CLIENT_PORT, CALL_BROKER_ADDRESS,
    CALL_BROKER_PORT, CALL_API_KEY, CALL_API_VERSION, CALL_CORRELATION_ID, CALL_CLIENT_ID, CALL_SOFTWARE_NAME,
    CALL_SOFTWARE_VERSION, CALL_REQUEST_TIME, CALL_REQUEST_END_TIME, CALL_RESPONSE_TIME, CALL_RESPONSE_END_TIME,
    CALL_REQUEST_FRAME, CALL_REQUEST_END_FRAME, CALL_RESPONSE_FRAME, CALL_RESPONSE_END_FRAME, CALL_REQUEST_BYTES,
    CALL_RESPONSE_BYTES, CALL_STATUS, CALL_REASON, CALL_LATENCY, CALL_ERROR_CODE, CALL_ERROR_COUNT,
    CALL_THROTTLE_TIME, CALL_TOPICS, CALL_GROUP_ID, CALL_TRANSACTIONAL_ID, CALL_ACKS, CALL_PARTITION_COUNT,
    CALL_RECORD_COUNT, CALL_RECORD_BYTES, NUM_API_CALLS_COLUMNS

cdef enum LatenciesColumn:
    LATENCY_CALL_ID, LATENCY_CAPTURE, LATENCY_CONNECTION_ID, LATENCY_API_KEY, LATENCY_API_VERSION, LATENCY_CLIENT_ID,
    LATENCY_BROKER_ADDRESS, LATENCY_BROKER_PORT, LATENCY_REQUEST_TIME, LATENCY_TOTAL, NUM_LATENCIES_COLUMNS

cdef enum ErrorCodesColumn:
    ERROR_CALL_ID, ERROR_CAPTURE, ERROR_CONNECTION_ID, ERROR_CLIENT_ADDRESS, ERROR_BROKER_ADDRESS, ERROR_BROKER_PORT,
    ERROR_API_KEY, ERROR_API_VERSION, ERROR_CORRELATION_ID, ERROR_CLIENT_ID, ERROR_RESPONSE_TIME,
    ERROR_RESPONSE_FRAME, ERROR_PATH, ERROR_TOPIC, ERROR_TOPIC_ID, ERROR_PARTITION, ERROR_GROUP_ID, ERROR_CODE,
    ERROR_MESSAGE, NUM_ERROR_CODES_COLUMNS

cdef enum ConnectionsColumn:
    CONN_CONNECTION_ID, CONN_CAPTURE, CONN_CLIENT_ADDRESS, CONN_CLIENT_PORT, CONN_BROKER_ADDRESS, CONN_BROKER_PORT,
    CONN_PROTOCOL, CONN_ROLE, CONN_FIRST_TIME, CONN_LAST_TIME, CONN_FIRST_FRAME, CONN_LAST_FRAME, CONN_HANDSHAKE,
    CONN_ROUND_TRIP, CONN_CLIENT_BYTES, CONN_BROKER_BYTES, CONN_CLIENT_PACKETS, CONN_BROKER_PACKETS,
    CONN_CLIENT_RETRANSMITTED, CONN_BROKER_RETRANSMITTED, CONN_CLIENT_OUT_OF_ORDER, CONN_BROKER_OUT_OF_ORDER,
    CONN_CLIENT_MISSING, CONN_BROKER_MISSING, CONN_CALLS, CONN_CLIENT_ID, CONN_SOFTWARE_NAME, CONN_SOFTWARE_VERSION,
    CONN_SASL_MECHANISM, CONN_END, NUM_CONNECTIONS_COLUMNS

cdef enum AnomaliesColumn:
    ANOMALY_CAPTURE, ANOMALY_CONNECTION_ID, ANOMALY_CALL_ID, ANOMALY_TIME, ANOMALY_FRAME, ANOMALY_DIRECTION,
    ANOMALY_STREAM_OFFSET, ANOMALY_NAME, ANOMALY_VALUE, NUM_ANOMALIES_COLUMNS

cdef bint start_tables(Table* tables)
cdef void free_tables(Table* tables) noexcept nogil
cdef bint begin_row(Table* table) noexcept nogil
cdef void put_string(Table* table, int column, Octets text) noexcept nogil
cdef bint add_to_list(Table* table, int column, Octets text) noexcept nogil
cdef void end_list(Table* table, int column, bint valid) noexcept nogil
cdef object take_table(Table* table, int number)

cdef inline void put_null(Table* table, int column) noexcept nogil:
    cdef Column* c = &table.columns[column]
    c.nulls += 1
    c.validity.data[table.rows >> 3] &= <uint8_t>~(1 << (table.rows & 7))

cdef inline void put_int64(Table* table, int column, int64_t value) noexcept nogil:
    (<int64_t*>table.columns[column].values.data)[table.rows] = value

cdef inline void put_int32(Table* table, int column, int32_t value) noexcept nogil:
    (<int32_t*>table.columns[column].values.data)[table.rows] = value

cdef inline void put_int16(Table* table, int column, int16_t value) noexcept nogil:
    (<int16_t*>table.columns[column].values.data)[table.rows] = value

cdef inline void put_enum(Table* table, int column, int value) noexcept nogil:
    (<int8_t*>table.columns[column].values.data)[table.rows] = <int8_t>value

cdef inline void put_bool(Table* table, int column, bint value) noexcept nogil:
    if value:
        table.columns[column].values.data[table.rows >> 3] |= <uint8_t>(1 << (table.rows & 7))

cdef inline void end_row(Table* table) noexcept nogil:
    table.rows += 1
