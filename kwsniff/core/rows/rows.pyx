# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""What is known of calls, errors and oddities, written as rows.

Rules
  1. What is not known is null; every null that needs a reason has it in the row's `reason`.
  2. A latency is taken from the capture's own clock at full precision; when that clock runs backwards between the two
     packets there is none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memset

from kwsniff.core.bytes.buffer cimport contents
from kwsniff.core.columns.columns cimport *
from kwsniff.core.kafka.kafka_connection cimport (
    KEPT_CLIENT_ID, KEPT_GROUP_ID, KEPT_GROUP_INSTANCE_ID, KEPT_MEMBER_ID, KEPT_PROTOCOL_TYPE, KEPT_RACK, KEPT_TOPICS,
    KEPT_TRANSACTIONAL_ID, TEXT_BROKER_ADDRESS, TEXT_CLIENT_ADDRESS, TEXT_CLIENT_ID, TEXT_MECHANISM, TEXT_PRINCIPAL,
    TEXT_SOFTWARE_NAME, TEXT_SOFTWARE_VERSION, Call, Context, KafkaConnection, Program, called_client,
)
from kwsniff.core.wire.facts cimport NO_PARTITION, TOPIC_BY_ID, ErrorHit, Facts
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.kafka.request_texts cimport kept_text, next_topic
from kwsniff.core.kafka.apis cimport ApiRange, api_at
from kwsniff.core.bytes.known cimport Known
from kwsniff.core.bytes.span cimport Span, be16, drop, keep, make_span, same_bytes, wipe
from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.rows.bodies cimport write_detail
from kwsniff.core.wire.topic_ids cimport await_topic, find_topic
from kwsniff.core.declared cimport *


cdef Span capture_name(Context* context, int64_t number) noexcept nogil:
    cdef int64_t* ends = <int64_t*>context.capture_name_ends.data
    cdef int64_t start = ends[number - 1] if number > 0 else 0
    return keep(drop(contents(&context.capture_names), <size_t>start), <size_t>(ends[number] - start))


cdef inline Span address_text(KafkaConnection* kafka, int endpoint) noexcept nogil:
    return make_span(kafka.address[endpoint], <size_t>kafka.address_len[endpoint])


cdef void put_time(Table* table, int column, int64_t time) noexcept nogil:
    if time == NO_TIME:
        put_null(table, column)
    else:
        put_int64(table, column, time)


cdef inline int number_of(Context* context, Table* table) noexcept nogil:
    return <int>(table - context.tables)


cdef void put_capture(Context* context, Table* table, int column, int64_t number) noexcept nogil:
    cdef TextCache* cache = &context.capture_texts[number_of(context, table)]
    if context.capture_cached != number:
        context.capture_cached = number
        memset(context.capture_texts, 0, sizeof(context.capture_texts))
    if not put_cached(table, column, cache):
        put_again(table, column, cache, capture_name(context, number))


cdef void put_client_id(Context* context, Table* table, int column, KafkaConnection* kafka, Call* call) noexcept nogil:
    """Nearly always the connection's."""
    cdef Span text = kept_text(call, KEPT_CLIENT_ID)
    if is_held(table, text):
        put_string(table, column, text)
    elif text.num and same_bytes(text, contents(&kafka.client_id)):
        put_again(table, column, &kafka.texts[<int>TEXT_CLIENT_ID + number_of(context, table)], text)
    else:
        put_string(table, column, text)


cdef inline void put_broker_address(Context* context, Table* table, int column, KafkaConnection* kafka) noexcept nogil:
    put_again(table, column, &kafka.texts[<int>TEXT_BROKER_ADDRESS + number_of(context, table)],
              address_text(kafka, 1 - kafka.client))


cdef void put_endpoints(Context* context, Table* table, KafkaConnection* kafka, int client_address, int client_port,
                        int broker_address, int broker_port) noexcept nogil:
    cdef int client = called_client(kafka)
    put_again(table, client_address, &kafka.texts[<int>TEXT_CLIENT_ADDRESS + number_of(context, table)],
              address_text(kafka, client))
    if client_port >= 0:
        put_int32(table, client_port, kafka.connection.port[client])
    put_again(table, broker_address, &kafka.texts[<int>TEXT_BROKER_ADDRESS + number_of(context, table)],
              address_text(kafka, 1 - client))
    put_int32(table, broker_port, kafka.connection.port[1 - client])


cdef void write_call(Context* context, KafkaConnection* kafka, Call* call, int status, int reason, Frame* response,
                     Facts* facts) noexcept nogil:
    """`response` and `facts` are NULL where there is none, or none that could be decoded."""
    cdef Table* table = &context.tables[<int>TABLE_API_CALLS]
    cdef const ApiRange* api
    cdef int64_t latency = -1
    if response != NULL and response.ended and response.last.time != NO_TIME and call.first.time != NO_TIME:
        latency = response.last.ready - call.first.time
        if latency < 0:
            write_anomaly(context, kafka.connection, call.id, &response.last, 1, -1, ANOMALY_TIME_BACKWARDS, latency)
    if not begin_row(table):
        return
    kafka.num_calls += 1
    put_int64(table, API_CALLS_CALL_ID, call.id)
    put_capture(context, table, API_CALLS_CAPTURE, call.capture)
    put_int64(table, API_CALLS_CONNECTION_ID, kafka.connection.id)
    put_endpoints(context, table, kafka, API_CALLS_CLIENT_ADDRESS, API_CALLS_CLIENT_PORT, API_CALLS_BROKER_ADDRESS, API_CALLS_BROKER_PORT)
    put_api(table, API_CALLS_API_KEY, API_CALLS_API_NAME, call)
    put_int16(table, API_CALLS_API_VERSION, call.version)
    put_int32(table, API_CALLS_CORRELATION_ID, call.correlation_id)
    put_client_id(context, table, API_CALLS_CLIENT_ID, kafka, call)
    put_again(table, API_CALLS_CLIENT_SOFTWARE_NAME, &kafka.texts[<int>TEXT_SOFTWARE_NAME], known_text(&kafka.software_name))
    put_again(table, API_CALLS_CLIENT_SOFTWARE_VERSION, &kafka.texts[<int>TEXT_SOFTWARE_VERSION],
              known_text(&kafka.software_version))
    put_time(table, API_CALLS_REQUEST_TIME, call.first.time)
    put_time(table, API_CALLS_REQUEST_END_TIME, call.last.time if call.ended else NO_TIME)
    put_int64(table, API_CALLS_REQUEST_FRAME, call.first.frame)
    put_known(table, API_CALLS_REQUEST_END_FRAME, call.ended, call.last.frame)
    put_int64(table, API_CALLS_REQUEST_BYTES, call.length)
    put_enum(table, API_CALLS_STATUS, status)
    if reason == REASON_NONE:
        put_null(table, API_CALLS_REASON)
    else:
        put_enum(table, API_CALLS_REASON, reason)
    put_known(table, API_CALLS_LATENCY_NS, latency >= 0, latency)
    put_response(table, response)
    put_call_facts(context, table, call, facts)
    put_response_facts(table, facts)
    put_party(table, kafka, call, facts)
    api = api_at(&context.apis, call.slot)
    if api != NULL and api.details:
        write_detail(context, api, call, response, table.rows)
    end_row(table)


cdef void put_response(Table* table, Frame* response) noexcept nogil:
    if response == NULL:
        put_null(table, API_CALLS_RESPONSE_TIME)
        put_null(table, API_CALLS_RESPONSE_END_TIME)
        put_null(table, API_CALLS_RESPONSE_FRAME)
        put_null(table, API_CALLS_RESPONSE_END_FRAME)
        put_null(table, API_CALLS_RESPONSE_BYTES)
        return
    put_time(table, API_CALLS_RESPONSE_TIME, response.first.time)
    put_time(table, API_CALLS_RESPONSE_END_TIME, response.last.time if response.ended else NO_TIME)
    put_int64(table, API_CALLS_RESPONSE_FRAME, response.first.frame)
    put_known(table, API_CALLS_RESPONSE_END_FRAME, response.ended, response.last.frame)
    put_int64(table, API_CALLS_RESPONSE_BYTES, response.length)


cdef void put_call_facts(Context* context, Table* table, Call* call, Facts* facts) noexcept nogil:
    """What the request says; where it says nothing of topics, partitions or records, what the response says."""
    put_null_or_acks(table, call)
    put_string(table, API_CALLS_GROUP_ID, kept_text(call, KEPT_GROUP_ID))
    put_string(table, API_CALLS_TRANSACTIONAL_ID, kept_text(call, KEPT_TRANSACTIONAL_ID))
    put_topics(context, table, call, facts)
    if call.partitions < 0:
        put_null(table, API_CALLS_PARTITION_COUNT)       # a fetch session whose beginning is not known
    elif call.has_partitions and (call.partitions or facts == NULL or not facts.has_partitions):
        put_int32(table, API_CALLS_PARTITION_COUNT, clamp(call.partitions))
    elif facts != NULL and facts.has_partitions:
        put_int32(table, API_CALLS_PARTITION_COUNT, clamp(facts.partitions))
    else:
        put_null(table, API_CALLS_PARTITION_COUNT)
    if call.has_records:
        put_known(table, API_CALLS_RECORD_COUNT, not call.records_uncounted, call.records)
        put_int64(table, API_CALLS_RECORD_BYTES, call.record_bytes)
    elif facts != NULL and facts.has_records:
        put_known(table, API_CALLS_RECORD_COUNT, not facts.records_uncounted, facts.records)
        put_int64(table, API_CALLS_RECORD_BYTES, facts.record_bytes)
    else:
        put_null(table, API_CALLS_RECORD_COUNT)
        put_null(table, API_CALLS_RECORD_BYTES)


cdef inline Known first_known(Known asked, Known answered) noexcept nogil:
    return asked if asked.is_known and asked.value >= 0 else answered


cdef void put_party(Table* table, KafkaConnection* kafka, Call* call, Facts* facts) noexcept nogil:
    """Who takes part: what the request says, or else what the response gives it."""
    cdef Facts none
    cdef Known number
    cdef Span text
    if facts == NULL:
        wipe(&none, sizeof(Facts))
        facts = &none
    put_again(table, API_CALLS_SASL_MECHANISM, &kafka.texts[<int>TEXT_MECHANISM], known_text(&kafka.sasl_mechanism))
    put_again(table, API_CALLS_PRINCIPAL, &kafka.texts[<int>TEXT_PRINCIPAL], known_text(&kafka.principal))
    if call.caller == CALLER_UNKNOWN:
        put_null(table, API_CALLS_CALLER)
    else:
        put_enum(table, API_CALLS_CALLER, call.caller)
    text = kept_text(call, KEPT_MEMBER_ID)
    put_string(table, API_CALLS_MEMBER_ID, text if text.num else facts.member)
    text = kept_text(call, KEPT_GROUP_INSTANCE_ID)
    put_string(table, API_CALLS_GROUP_INSTANCE_ID, text if text.num else facts.group_instance)
    text = kept_text(call, KEPT_PROTOCOL_TYPE)
    put_string(table, API_CALLS_PROTOCOL_TYPE, text if text.num else facts.protocol_type)
    number = first_known(call.generation, facts.generation)
    put_known32(table, API_CALLS_GENERATION, number)
    number = first_known(call.producer_id, facts.producer_id)
    put_known(table, API_CALLS_PRODUCER_ID, number.is_known and number.value >= 0, number.value)
    number = first_known(call.producer_epoch, facts.producer_epoch)
    put_known16(table, API_CALLS_PRODUCER_EPOCH, number)
    put_known16(table, API_CALLS_ISOLATION_LEVEL, call.isolation)
    if call.committed.is_known:
        put_bool(table, API_CALLS_COMMITTED, call.committed.value != 0)
    else:
        put_null(table, API_CALLS_COMMITTED)
    number = call.session_id if call.session_id.is_known and call.session_id.value else facts.session_id
    put_known32(table, API_CALLS_SESSION_ID, number)
    put_known32(table, API_CALLS_SESSION_EPOCH, call.session_epoch)
    put_known32(table, API_CALLS_MAX_WAIT_MS, call.max_wait)
    put_known32(table, API_CALLS_MIN_BYTES, call.min_bytes)
    put_known32(table, API_CALLS_MAX_BYTES, call.max_bytes)
    put_known(table, API_CALLS_TIMEOUT_MS, call.timeout.is_known and call.timeout.value >= 0, call.timeout.value)
    put_string(table, API_CALLS_RACK_ID, kept_text(call, KEPT_RACK))


cdef inline void put_known32(Table* table, int column, Known number) noexcept nogil:
    if number.is_known:
        put_int32(table, column, <int32_t>number.value)
    else:
        put_null(table, column)


cdef inline void put_known16(Table* table, int column, Known number) noexcept nogil:
    if number.is_known and number.value >= 0:
        put_int16(table, column, <int16_t>number.value)
    else:
        put_null(table, column)


cdef inline int32_t clamp(int64_t value) noexcept nogil:
    return <int32_t>value if value < 0x7FFFFFFF else 0x7FFFFFFF


cdef inline void put_null_or_acks(Table* table, Call* call) noexcept nogil:
    if call.has_acks:
        put_int16(table, API_CALLS_ACKS, call.acks)
    else:
        put_null(table, API_CALLS_ACKS)


cdef void put_topics(Context* context, Table* table, Call* call, Facts* facts) noexcept nogil:
    cdef Span* topics
    cdef Span topic, left = kept_text(call, KEPT_TOPICS)
    cdef size_t i
    cdef bint by_id = False, any_topic = False
    while left.num:
        topic = next_topic(&left, &by_id)
        any_topic = add_topic(context, table, topic, by_id) or any_topic
    if call.kept[<int>KEPT_TOPICS].num < 0 and facts != NULL:
        topics = <Span*>facts.topics.data
        for i in range(facts.topics.len // sizeof(Span)):
            topic = make_span(topics[i].at, topics[i].num & ~<size_t>TOPIC_BY_ID)
            any_topic = add_topic(context, table, topic, topics[i].num & TOPIC_BY_ID) or any_topic
    end_list(table, API_CALLS_TOPICS, any_topic)


cdef bint add_topic(Context* context, Table* table, Span topic, bint by_id) noexcept nogil:
    """Adds the name; of a topic that only its id is known of, the name by now, or else the id."""
    cdef uint8_t[22] id_text
    cdef Span name = topic
    if by_id:
        name = find_topic(&context.topic_ids, topic)
        if name.at == NULL:
            await_topic(&context.topic_ids, topic)
            write_uuid(topic, id_text)
            name = make_span(id_text, 22)
    return add_to_list(table, API_CALLS_TOPICS, name)


cdef void put_response_facts(Table* table, Facts* facts) noexcept nogil:
    if facts == NULL:
        put_null(table, API_CALLS_ERROR_CODE)
        put_null(table, API_CALLS_ERROR_COUNT)
        put_null(table, API_CALLS_THROTTLE_TIME_MS)
        return
    # The part of a broken message that could not be read may hold errors, too.
    if facts.broken:
        put_null(table, API_CALLS_ERROR_COUNT)
    else:
        put_int32(table, API_CALLS_ERROR_COUNT, facts.num_errors)
    if facts.broken and facts.num_errors == 0:
        put_null(table, API_CALLS_ERROR_CODE)
    else:
        put_int16(table, API_CALLS_ERROR_CODE, facts.first_error)
    if facts.has_throttle:
        put_int32(table, API_CALLS_THROTTLE_TIME_MS, <int32_t>facts.throttle)
    else:
        put_null(table, API_CALLS_THROTTLE_TIME_MS)


cdef inline void put_api(Table* table, int key, int name, Call* call) noexcept nogil:
    """Names are in the order of the slots."""
    put_int16(table, key, call.key)
    if call.slot < 0:
        put_null(table, name)
    else:
        put_int16(table, name, <int16_t>call.slot)


cdef void put_call_head(Context* context, Table* table, KafkaConnection* kafka, Call* call, int call_id, int capture,
                        int connection_id, int api_key, int api_name, int api_version, int client_id,
                        int broker_address, int broker_port) noexcept nogil:
    """What every table about calls repeats of the call; no broker columns where broker_address is -1."""
    put_int64(table, call_id, call.id)
    put_capture(context, table, capture, call.capture)
    put_int64(table, connection_id, kafka.connection.id)
    put_api(table, api_key, api_name, call)
    put_int16(table, api_version, call.version)
    put_client_id(context, table, client_id, kafka, call)
    if broker_address >= 0:
        put_broker_address(context, table, broker_address, kafka)
        put_int32(table, broker_port, kafka.connection.port[1 - kafka.client])


cdef inline Span path_of(Program* program, uint32_t node) noexcept nogil:
    return make_span(&program.paths[program.path_ends[node]], program.path_ends[node + 1] - program.path_ends[node])


cdef void write_errors(Context* context, KafkaConnection* kafka, Call* call, Frame* response, Facts* facts,
                       Program* program) noexcept nogil:
    cdef Table* table = &context.tables[<int>TABLE_ERROR_CODES]
    cdef ErrorHit* hits = <ErrorHit*>facts.errors.data
    cdef ErrorHit* hit
    cdef size_t i
    cdef Span group = kept_text(call, KEPT_GROUP_ID)
    cdef uint8_t topic_id[22]
    hold_texts(table)
    for i in range(facts.errors.len // sizeof(ErrorHit)):
        hit = &hits[i]
        if not begin_row(table):
            break
        put_int64(table, ERROR_CODES_CALL_ID, call.id)
        put_capture(context, table, ERROR_CODES_CAPTURE, call.capture)
        put_int64(table, ERROR_CODES_CONNECTION_ID, kafka.connection.id)
        put_endpoints(context, table, kafka, ERROR_CODES_CLIENT_ADDRESS, -1, ERROR_CODES_BROKER_ADDRESS, ERROR_CODES_BROKER_PORT)
        put_api(table, ERROR_CODES_API_KEY, ERROR_CODES_API_NAME, call)
        put_int16(table, ERROR_CODES_API_VERSION, call.version)
        put_int32(table, ERROR_CODES_CORRELATION_ID, call.correlation_id)
        put_client_id(context, table, ERROR_CODES_CLIENT_ID, kafka, call)
        put_time(table, ERROR_CODES_RESPONSE_TIME, response.first.time)
        put_int64(table, ERROR_CODES_RESPONSE_FRAME, response.first.frame)
        put_string(table, ERROR_CODES_PATH, path_of(program, hit.node))
        put_string(table, ERROR_CODES_TOPIC, hit.topic)
        if hit.topic_id.num == 16 and hit.topic_id.at != NULL:
            if hit.topic.at == NULL:
                await_topic(&context.topic_ids, hit.topic_id)
            write_uuid(hit.topic_id, topic_id)
            put_string(table, ERROR_CODES_TOPIC_ID, make_span(topic_id, 22))
        else:
            put_null(table, ERROR_CODES_TOPIC_ID)
        if hit.partition == NO_PARTITION:
            put_null(table, ERROR_CODES_PARTITION)
        else:
            put_int32(table, ERROR_CODES_PARTITION, <int32_t>hit.partition)
        put_string(table, ERROR_CODES_GROUP_ID, hit.group if hit.group.at != NULL else group)
        put_int16(table, ERROR_CODES_ERROR_CODE, hit.code)
        put_string(table, ERROR_CODES_ERROR_MESSAGE, hit.message)
        end_row(table)
    let_texts_go(table)


cdef void write_uuid(Span id, uint8_t* text) noexcept nogil:
    """URL-safe base64 without padding, as Kafka prints uuids (org.apache.kafka.common.Uuid)."""
    cdef const char* digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    cdef int i, at = 0
    cdef uint32_t word
    for i in range(5):
        word = be16(id, 3 * i) << 8 | (be16(id, 3 * i + 1) & 0xFF)
        text[at] = digits[word >> 18]
        text[at + 1] = digits[word >> 12 & 63]
        text[at + 2] = digits[word >> 6 & 63]
        text[at + 3] = digits[word & 63]
        at += 4
    word = (be16(id, 14) & 0xFF) << 4
    text[at] = digits[word >> 6 & 63]
    text[at + 1] = digits[word & 63]


cdef void write_response_only(Context* context, KafkaConnection* kafka, int64_t id, Frame* response,
                              int32_t correlation_id, int reason) noexcept nogil:
    cdef Table* table = &context.tables[<int>TABLE_API_CALLS]
    cdef int i
    cdef int[31] unknown = [
        API_CALLS_API_KEY, API_CALLS_API_VERSION, API_CALLS_CLIENT_ID, API_CALLS_REQUEST_TIME, API_CALLS_REQUEST_END_TIME, API_CALLS_REQUEST_FRAME,
        API_CALLS_REQUEST_END_FRAME, API_CALLS_REQUEST_BYTES, API_CALLS_LATENCY_NS, API_CALLS_GROUP_ID, API_CALLS_TRANSACTIONAL_ID, API_CALLS_ACKS,
        API_CALLS_PARTITION_COUNT, API_CALLS_RECORD_COUNT, API_CALLS_RECORD_BYTES, API_CALLS_CALLER, API_CALLS_MEMBER_ID,
        API_CALLS_GROUP_INSTANCE_ID, API_CALLS_GENERATION, API_CALLS_PROTOCOL_TYPE, API_CALLS_PRODUCER_ID, API_CALLS_PRODUCER_EPOCH,
        API_CALLS_ISOLATION_LEVEL, API_CALLS_COMMITTED, API_CALLS_SESSION_ID,
        API_CALLS_SESSION_EPOCH, API_CALLS_MAX_WAIT_MS, API_CALLS_MIN_BYTES,
        API_CALLS_MAX_BYTES, API_CALLS_TIMEOUT_MS, API_CALLS_RACK_ID,
    ]
    if not begin_row(table):
        return
    kafka.num_calls += 1
    for i in range(31):
        put_null(table, unknown[i])
    end_list(table, API_CALLS_TOPICS, False)
    put_response_facts(table, NULL)
    put_again(table, API_CALLS_SASL_MECHANISM, &kafka.texts[<int>TEXT_MECHANISM], known_text(&kafka.sasl_mechanism))
    put_again(table, API_CALLS_PRINCIPAL, &kafka.texts[<int>TEXT_PRINCIPAL], known_text(&kafka.principal))
    put_int64(table, API_CALLS_CALL_ID, id)
    put_capture(context, table, API_CALLS_CAPTURE, kafka.connection.capture)
    put_int64(table, API_CALLS_CONNECTION_ID, kafka.connection.id)
    put_endpoints(context, table, kafka, API_CALLS_CLIENT_ADDRESS, API_CALLS_CLIENT_PORT, API_CALLS_BROKER_ADDRESS, API_CALLS_BROKER_PORT)
    put_int32(table, API_CALLS_CORRELATION_ID, correlation_id)
    put_again(table, API_CALLS_CLIENT_SOFTWARE_NAME, &kafka.texts[<int>TEXT_SOFTWARE_NAME], known_text(&kafka.software_name))
    put_again(table, API_CALLS_CLIENT_SOFTWARE_VERSION, &kafka.texts[<int>TEXT_SOFTWARE_VERSION],
              known_text(&kafka.software_version))
    put_response(table, response)
    put_enum(table, API_CALLS_STATUS, STATUS_RESPONSE_ONLY)
    if reason == REASON_NONE:
        put_null(table, API_CALLS_REASON)
    else:
        put_enum(table, API_CALLS_REASON, reason)
    end_row(table)


cdef void write_anomaly(Context* context, Connection* connection, int64_t call_id, Arrival* arrival, int direction,
                        int64_t offset, int name, int64_t value) noexcept nogil:
    """`connection` and `arrival` may be NULL; call_id, direction and offset are -1 where there is none."""
    cdef Table* table = &context.tables[<int>TABLE_ANOMALIES]
    cdef int64_t latest = <int64_t>(context.capture_name_ends.len // sizeof(int64_t)) - 1
    if not begin_row(table):
        return
    put_string(table, ANOMALIES_CAPTURE, capture_name(
        context, arrival.capture if arrival != NULL else connection.last_capture if connection != NULL else latest))
    put_known(table, ANOMALIES_CONNECTION_ID, connection != NULL, connection.id if connection != NULL else 0)
    put_known(table, ANOMALIES_CALL_ID, call_id >= 0, call_id)
    put_time(table, ANOMALIES_TIME, arrival.time if arrival != NULL else NO_TIME)
    put_known(table, ANOMALIES_FRAME, arrival != NULL, arrival.frame if arrival != NULL else 0)
    if direction < 0:
        put_null(table, ANOMALIES_DIRECTION)
    else:
        put_enum(table, ANOMALIES_DIRECTION, direction)
    put_known(table, ANOMALIES_STREAM_OFFSET, offset >= 0, offset)
    put_enum(table, ANOMALIES_NAME, name)
    put_int64(table, ANOMALIES_VALUE, value)
    end_row(table)
