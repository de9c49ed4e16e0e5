# cython: language_level=3
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kwsniff.core.columns.blocks cimport Spares
from kwsniff.core.octets.buffer cimport Buffer
from kwsniff.core.octets.octets cimport Octets

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
    uint64_t* slots         # hash << 32 | entry number + 1, or 0
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
    uint32_t generation     # counts the times that the table was taken, from 1
    bint wanted             # false: rows are not even begun
    bint failed             # memory was refused: the row under way is lost
    Spares* spares          # one for all tables

cdef enum TableNumber:
    TABLE_API_CALLS = 0
    TABLE_LATENCIES = 1
    TABLE_ERROR_CODES = 2
    TABLE_CONNECTIONS = 3
    TABLE_ANOMALIES = 4
    TABLE_PARTITIONS = 5
    TABLE_RECORD_BATCHES = 6
    TABLE_TCP_EVENTS = 7
    TABLE_DETAILS = 8
    NUM_TABLES = 9

cdef enum ApiCallsColumn:
    CALL_CALL_ID, CALL_CAPTURE, CALL_CONNECTION_ID, CALL_CLIENT_ADDRESS, CALL_CLIENT_PORT, CALL_BROKER_ADDRESS,
    CALL_BROKER_PORT, CALL_API_KEY, CALL_API_VERSION, CALL_CORRELATION_ID, CALL_CLIENT_ID, CALL_SOFTWARE_NAME,
    CALL_SOFTWARE_VERSION, CALL_REQUEST_TIME, CALL_REQUEST_END_TIME, CALL_RESPONSE_TIME, CALL_RESPONSE_END_TIME,
    CALL_REQUEST_FRAME, CALL_REQUEST_END_FRAME, CALL_RESPONSE_FRAME, CALL_RESPONSE_END_FRAME, CALL_REQUEST_BYTES,
    CALL_RESPONSE_BYTES, CALL_STATUS, CALL_REASON, CALL_LATENCY, CALL_ERROR_CODE, CALL_ERROR_COUNT,
    CALL_THROTTLE_TIME, CALL_TOPICS, CALL_GROUP_ID, CALL_TRANSACTIONAL_ID, CALL_ACKS, CALL_PARTITION_COUNT,
    CALL_RECORD_COUNT, CALL_RECORD_BYTES, CALL_SASL_MECHANISM, CALL_PRINCIPAL, CALL_CALLER, CALL_MEMBER_ID,
    CALL_GROUP_INSTANCE_ID, CALL_GENERATION, CALL_PROTOCOL_TYPE, CALL_PRODUCER_ID, CALL_PRODUCER_EPOCH,
    CALL_ISOLATION_LEVEL, CALL_COMMITTED, CALL_SESSION_ID, CALL_MAX_WAIT, CALL_MIN_BYTES, NUM_API_CALLS_COLUMNS

cdef enum LatenciesColumn:
    LATENCY_CALL_ID, LATENCY_CAPTURE, LATENCY_CONNECTION_ID, LATENCY_API_KEY, LATENCY_API_VERSION, LATENCY_CLIENT_ID,
    LATENCY_BROKER_ADDRESS, LATENCY_BROKER_PORT, LATENCY_REQUEST_TIME, LATENCY_TOTAL, LATENCY_REQUEST_TRANSMISSION,
    LATENCY_NETWORK, LATENCY_QUEUE_WAIT, LATENCY_BROKER, LATENCY_DELIBERATE_WAIT, LATENCY_RESPONSE_TRANSMISSION, LATENCY_WAIT,
    LATENCY_BEHIND, LATENCY_BEHIND_WAIT, LATENCY_ROUND_TRIP, LATENCY_RETRANSMISSIONS, LATENCY_ZERO_WINDOW, NUM_LATENCIES_COLUMNS

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
    CONN_SASL_MECHANISM, CONN_END, CONN_CLIENT_ROUND_TRIP, CONN_BROKER_ROUND_TRIP, CONN_VANTAGE,
    CONN_CLIENT_ZERO_WINDOW, CONN_BROKER_ZERO_WINDOW, CONN_PRINCIPAL, CONN_CALLER,
    CONN_TLS_VERSION, CONN_TLS_SERVER_NAME, CONN_TLS_CIPHER,
    CONN_CLOSED_BY, CONN_CLOSE_FRAME, CONN_REFUSED, CONN_SYN_RETRIES,
    CONN_ENCAPSULATION, CONN_DUPLICATE_PACKETS, CONN_TWIN_OF, CONN_TLS_HELLO,
    CONN_TLS_ALERT, CONN_TLS_ALERT_BY, CONN_PROXIED_ADDRESS, CONN_PROXIED_PORT, NUM_CONNECTIONS_COLUMNS

cdef enum AnomaliesColumn:
    ANOMALY_CAPTURE, ANOMALY_CONNECTION_ID, ANOMALY_CALL_ID, ANOMALY_TIME, ANOMALY_FRAME, ANOMALY_DIRECTION,
    ANOMALY_STREAM_OFFSET, ANOMALY_NAME, ANOMALY_VALUE, NUM_ANOMALIES_COLUMNS

cdef enum PartitionsColumn:
    PART_CALL_ID, PART_CAPTURE, PART_CONNECTION_ID, PART_API_KEY, PART_API_VERSION, PART_CLIENT_ID, PART_BROKER_ADDRESS,
    PART_BROKER_PORT, PART_TIME, PART_TOPIC, PART_TOPIC_ID, PART_PARTITION, PART_ERROR_CODE, PART_OFFSET,
    PART_BASE_OFFSET, PART_LAST_OFFSET, PART_HIGH_WATERMARK, PART_LAST_STABLE_OFFSET, PART_LOG_START_OFFSET, PART_LAG,
    PART_RECORD_BYTES, PART_RECORD_COUNT, PART_BATCH_COUNT, NUM_PARTITIONS_COLUMNS

cdef enum RecordBatchesColumn:
    BATCH_CALL_ID, BATCH_CAPTURE, BATCH_CONNECTION_ID, BATCH_API_KEY, BATCH_API_VERSION, BATCH_CLIENT_ID, BATCH_TIME,
    BATCH_TOPIC, BATCH_TOPIC_ID, BATCH_PARTITION, BATCH_MAGIC, BATCH_CODEC, BATCH_BYTES, BATCH_UNCOMPRESSED,
    BATCH_RECORD_COUNT, BATCH_BASE_OFFSET, BATCH_LAST_OFFSET, BATCH_PRODUCER_ID, BATCH_PRODUCER_EPOCH,
    BATCH_BASE_SEQUENCE, BATCH_TRANSACTIONAL, BATCH_CONTROL, BATCH_TIMESTAMP_TYPE, BATCH_FIRST_TIMESTAMP,
    BATCH_MAX_TIMESTAMP, NUM_RECORD_BATCHES_COLUMNS

cdef enum TcpEventsColumn:
    EVENT_CAPTURE, EVENT_CONNECTION_ID, EVENT_TIME, EVENT_FRAME, EVENT_KIND, EVENT_SENDER, EVENT_STREAM_OFFSET, EVENT_BYTES,
    EVENT_COUNT, EVENT_CALL_ID, NUM_TCP_EVENTS_COLUMNS

cdef enum DetailsColumn:
    DETAIL_ROW, DETAIL_ASKED, DETAIL_ANSWERED, NUM_DETAILS_COLUMNS

cdef bint start_tables(Table* tables)
cdef void free_tables(Table* tables) noexcept nogil
cdef bint begin_row(Table* table) noexcept nogil
cdef bint put_text(Table* table, int column, Octets text) noexcept nogil
cdef bint add_to_list(Table* table, int column, Octets text) noexcept nogil
cdef void end_list(Table* table, int column, bint valid) noexcept nogil
cdef object take_table(Table* table, int number)

cdef inline void put_null(Table* table, int column) noexcept nogil:
    cdef Column* c = &table.columns[column]
    c.nulls += 1
    c.validity.data[table.rows >> 3] &= <uint8_t>~(1 << (table.rows & 7))

cdef inline bint put_string(Table* table, int column, Octets text) noexcept nogil:
    """Puts `text`; a span without an address is null. Whether there is a value now."""
    if text.at != NULL:
        return put_text(table, column, text)
    put_null(table, column)
    return False

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

# Where the dictionary of a string column has a text that comes again and again. Good for one generation.
cdef struct TextCache:
    uint32_t generation
    int32_t entry

cdef inline void put_again(Table* table, int column, TextCache* cache, Octets text) noexcept nogil:
    """Puts a text that is the same as when the cache was filled, or fills it."""
    cdef int32_t* slot = &(<int32_t*>table.columns[column].values.data)[table.rows]
    if cache.generation == table.generation:
        slot[0] = cache.entry
        return
    if put_string(table, column, text):
        cache.generation = table.generation
        cache.entry = slot[0]

cdef inline void end_row(Table* table) noexcept nogil:
    table.rows += 1
