# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""What is known of calls, errors and oddities, written as rows.

Rules
  1. What is not known is null; every null that needs a reason has it in the row's `reason`.
  2. A latency is taken from the capture's own clock at full precision; when that clock runs backwards between the two
     packets there is none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from kwsniff.core.octets.buffer cimport Buffer, contents
from kwsniff.core.columns.columns cimport *
from kwsniff.core.kafka.dialog cimport (
    TEXT_BROKER_ADDRESS, TEXT_CLIENT_ADDRESS, TEXT_CLIENT_ID, TEXT_MECHANISM, TEXT_PRINCIPAL,
    TEXT_SOFTWARE_NAME, TEXT_SOFTWARE_VERSION, Call, Context, Dialog, Program,
)
from kwsniff.core.wire.facts cimport NO_PARTITION, TOPIC_BY_ID, ErrorHit, Facts
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.kafka.apis cimport ApiRange, find_api
from kwsniff.core.octets.known cimport Known
from kwsniff.core.octets.octets cimport Octets, be16, drop, file32, keep, make_octets, same_octets, wipe
from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.tcp.connections cimport Arrival, Connection
from kwsniff.core.rows.details cimport write_detail
from kwsniff.core.wire.topic_ids cimport await_topic, find_topic
from kwsniff.core.columns.verdicts cimport *


cdef Octets capture_name(Context* context, int64_t number) noexcept nogil:
    cdef int64_t* ends = <int64_t*>context.capture_name_ends.data
    cdef int64_t start = ends[number - 1] if number > 0 else 0
    return keep(drop(contents(&context.capture_names), <size_t>start), <size_t>(ends[number] - start))


cdef inline Octets address_text(Dialog* dialog, int endpoint) noexcept nogil:
    return make_octets(dialog.address[endpoint], <size_t>dialog.address_len[endpoint])


cdef inline Octets call_client_id(Call* call) noexcept nogil:
    if call.client_id_len < 0:
        return make_octets(NULL, 0)
    return keep(contents(&call.text), <size_t>call.client_id_len)


cdef inline Octets text_at(Call* call, size_t at, int32_t num) noexcept nogil:
    if num < 0:
        return make_octets(NULL, 0)
    return keep(drop(contents(&call.text), at), <size_t>num)


cdef void put_time(Table* table, int column, int64_t time) noexcept nogil:
    if time == NO_TIME:
        put_null(table, column)
    else:
        put_int64(table, column, time)


cdef inline int number_of(Context* context, Table* table) noexcept nogil:
    return <int>(table - context.tables)


cdef void put_capture(Context* context, Table* table, int column, int64_t number) noexcept nogil:
    if context.capture_cached != number:
        context.capture_cached = number
        memset(context.capture_texts, 0, sizeof(context.capture_texts))
    put_again(table, column, &context.capture_texts[number_of(context, table)], capture_name(context, number))


cdef void put_client_id(Context* context, Table* table, int column, Dialog* dialog, Call* call) noexcept nogil:
    """Nearly always the connection's."""
    cdef Octets text = call_client_id(call)
    if text.num and same_octets(text, contents(&dialog.client_id)):
        put_again(table, column, &dialog.texts[<int>TEXT_CLIENT_ID + number_of(context, table)], text)
    else:
        put_string(table, column, text)


cdef inline void put_broker_address(Context* context, Table* table, int column, Dialog* dialog) noexcept nogil:
    put_again(table, column, &dialog.texts[<int>TEXT_BROKER_ADDRESS + number_of(context, table)],
              address_text(dialog, 1 - dialog.client))


cdef void put_endpoints(Context* context, Table* table, Dialog* dialog, int client_address, int client_port,
                        int broker_address, int broker_port) noexcept nogil:
    cdef int client = dialog.client if dialog.client >= 0 else 0
    put_again(table, client_address, &dialog.texts[<int>TEXT_CLIENT_ADDRESS + number_of(context, table)],
              address_text(dialog, client))
    if client_port >= 0:
        put_int32(table, client_port, dialog.connection.port[client])
    put_again(table, broker_address, &dialog.texts[<int>TEXT_BROKER_ADDRESS + number_of(context, table)],
              address_text(dialog, 1 - client))
    put_int32(table, broker_port, dialog.connection.port[1 - client])


cdef void write_call(Context* context, Dialog* dialog, Call* call, int status, int reason, Frame* response,
                     Facts* facts) noexcept nogil:
    """`response` and `facts` are NULL where there is none, or none that could be decoded."""
    cdef Table* table = &context.tables[<int>TABLE_API_CALLS]
    cdef const ApiRange* api
    cdef int64_t latency = -1
    if response != NULL and response.ended and response.last.time != NO_TIME and call.first.time != NO_TIME:
        latency = response.last.ready - call.first.time
        if latency < 0:
            write_anomaly(context, dialog.connection, call.id, &response.last, 1, -1, ANOMALY_TIME_BACKWARDS, latency)
    if not begin_row(table):
        return
    dialog.num_calls += 1
    put_int64(table, CALL_CALL_ID, call.id)
    put_capture(context, table, CALL_CAPTURE, call.capture)
    put_int64(table, CALL_CONNECTION_ID, dialog.connection.id)
    put_endpoints(context, table, dialog, CALL_CLIENT_ADDRESS, CALL_CLIENT_PORT, CALL_BROKER_ADDRESS, CALL_BROKER_PORT)
    put_int16(table, CALL_API_KEY, call.key)
    put_int16(table, CALL_API_VERSION, call.version)
    put_int32(table, CALL_CORRELATION_ID, call.correlation_id)
    put_client_id(context, table, CALL_CLIENT_ID, dialog, call)
    put_again(table, CALL_SOFTWARE_NAME, &dialog.texts[<int>TEXT_SOFTWARE_NAME], known_text(&dialog.software_name))
    put_again(table, CALL_SOFTWARE_VERSION, &dialog.texts[<int>TEXT_SOFTWARE_VERSION],
              known_text(&dialog.software_version))
    put_time(table, CALL_REQUEST_TIME, call.first.time)
    put_time(table, CALL_REQUEST_END_TIME, call.last.time if call.ended else NO_TIME)
    put_int64(table, CALL_REQUEST_FRAME, call.first.frame)
    put_known(table, CALL_REQUEST_END_FRAME, call.ended, call.last.frame)
    put_int64(table, CALL_REQUEST_BYTES, call.length)
    put_enum(table, CALL_STATUS, status)
    if reason == REASON_NONE:
        put_null(table, CALL_REASON)
    else:
        put_enum(table, CALL_REASON, reason)
    put_known(table, CALL_LATENCY, latency >= 0, latency)
    put_response(table, response)
    put_call_facts(context, table, call, facts)
    put_response_facts(table, facts)
    put_party(table, dialog, call, facts)
    api = find_api(&context.apis, call.key)
    if api != NULL and api.details:
        write_detail(context, api, call, response, table.rows)
    end_row(table)


cdef void put_response(Table* table, Frame* response) noexcept nogil:
    if response == NULL:
        put_null(table, CALL_RESPONSE_TIME)
        put_null(table, CALL_RESPONSE_END_TIME)
        put_null(table, CALL_RESPONSE_FRAME)
        put_null(table, CALL_RESPONSE_END_FRAME)
        put_null(table, CALL_RESPONSE_BYTES)
        return
    put_time(table, CALL_RESPONSE_TIME, response.first.time)
    put_time(table, CALL_RESPONSE_END_TIME, response.last.time if response.ended else NO_TIME)
    put_int64(table, CALL_RESPONSE_FRAME, response.first.frame)
    put_known(table, CALL_RESPONSE_END_FRAME, response.ended, response.last.frame)
    put_int64(table, CALL_RESPONSE_BYTES, response.length)


cdef void put_call_facts(Context* context, Table* table, Call* call, Facts* facts) noexcept nogil:
    """What the request says; where it says nothing of topics, partitions or records, what the response says."""
    cdef size_t at = 0
    put_null_or_acks(table, call)
    if call.client_id_len > 0:
        at += <size_t>call.client_id_len
    put_string(table, CALL_GROUP_ID, text_at(call, at, call.group_len))
    if call.group_len > 0:
        at += <size_t>call.group_len
    put_string(table, CALL_TRANSACTIONAL_ID, text_at(call, at, call.transactional_id_len))
    if call.transactional_id_len > 0:
        at += <size_t>call.transactional_id_len
    put_topics(context, table, call, at, facts)
    if call.partitions < 0:
        put_null(table, CALL_PARTITION_COUNT)       # a fetch session whose beginning is not known
    elif call.has_partitions and (call.partitions or facts == NULL or not facts.has_partitions):
        put_int32(table, CALL_PARTITION_COUNT, clamp(call.partitions))
    elif facts != NULL and facts.has_partitions:
        put_int32(table, CALL_PARTITION_COUNT, clamp(facts.partitions))
    else:
        put_null(table, CALL_PARTITION_COUNT)
    if call.has_records:
        put_known(table, CALL_RECORD_COUNT, not call.records_uncounted, call.records)
        put_int64(table, CALL_RECORD_BYTES, call.record_bytes)
    elif facts != NULL and facts.has_records:
        put_known(table, CALL_RECORD_COUNT, not facts.records_uncounted, facts.records)
        put_int64(table, CALL_RECORD_BYTES, facts.record_bytes)
    else:
        put_null(table, CALL_RECORD_COUNT)
        put_null(table, CALL_RECORD_BYTES)


cdef inline Known first_known(Known asked, Known answered) noexcept nogil:
    return asked if asked.is_known and asked.value >= 0 else answered


cdef void put_party(Table* table, Dialog* dialog, Call* call, Facts* facts) noexcept nogil:
    """Who takes part: what the request says, or else what the response gives it."""
    cdef Facts none
    cdef Known number
    cdef Octets text
    if facts == NULL:
        wipe(&none, sizeof(Facts))
        facts = &none
    put_again(table, CALL_SASL_MECHANISM, &dialog.texts[<int>TEXT_MECHANISM], known_text(&dialog.sasl_mechanism))
    put_again(table, CALL_PRINCIPAL, &dialog.texts[<int>TEXT_PRINCIPAL], known_text(&dialog.principal))
    if call.caller == CALLER_UNKNOWN:
        put_null(table, CALL_CALLER)
    else:
        put_enum(table, CALL_CALLER, call.caller)
    text = text_at(call, call.member_at, call.member_len)
    put_string(table, CALL_MEMBER_ID, text if text.num else facts.member)
    text = text_at(call, call.member_at + (call.member_len if call.member_len > 0 else 0), call.group_instance_len)
    put_string(table, CALL_GROUP_INSTANCE_ID, text if text.num else facts.group_instance)
    text = text_at(call, call.protocol_type_at, call.protocol_type_len)
    put_string(table, CALL_PROTOCOL_TYPE, text if text.num else facts.protocol_type)
    number = first_known(call.generation, facts.generation)
    put_known32(table, CALL_GENERATION, number)
    number = first_known(call.producer_id, facts.producer_id)
    put_known(table, CALL_PRODUCER_ID, number.is_known and number.value >= 0, number.value)
    number = first_known(call.producer_epoch, facts.producer_epoch)
    put_known16(table, CALL_PRODUCER_EPOCH, number)
    put_known16(table, CALL_ISOLATION_LEVEL, call.isolation)
    if call.committed.is_known:
        put_bool(table, CALL_COMMITTED, call.committed.value != 0)
    else:
        put_null(table, CALL_COMMITTED)
    number = call.session_id if call.session_id.is_known and call.session_id.value else facts.session_id
    put_known32(table, CALL_SESSION_ID, number)
    put_known32(table, CALL_MAX_WAIT, call.max_wait)
    put_known32(table, CALL_MIN_BYTES, call.min_bytes)


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
        put_int16(table, CALL_ACKS, call.acks)
    else:
        put_null(table, CALL_ACKS)


cdef void put_topics(Context* context, Table* table, Call* call, size_t at, Facts* facts) noexcept nogil:
    cdef Octets* topics
    cdef Octets text = contents(&call.text)
    cdef size_t i
    cdef uint32_t num
    cdef bint any_topic = False
    for i in range(<size_t>call.num_topics):
        num = file32(text, at, False)
        any_topic = add_topic(context, table, drop(text, at + 4), num) or any_topic
        at += 4 + (num & ~TOPIC_BY_ID)
    if call.num_topics == 0 and facts != NULL:
        topics = <Octets*>facts.topics.data
        for i in range(facts.topics.len // sizeof(Octets)):
            any_topic = add_topic(context, table, make_octets(topics[i].at, topics[i].num & ~<size_t>TOPIC_BY_ID),
                                  <uint32_t>topics[i].num) or any_topic
    end_list(table, CALL_TOPICS, any_topic)


cdef bint add_topic(Context* context, Table* table, Octets text, uint32_t num) noexcept nogil:
    """Adds the name; of a topic that only its id is known of, the name by now, or else the id."""
    cdef uint8_t[22] id_text
    cdef Octets name = keep(text, num & ~TOPIC_BY_ID)
    if num & TOPIC_BY_ID:
        text = name
        name = find_topic(&context.topic_ids, text)
        if name.at == NULL:
            await_topic(&context.topic_ids, text)
            write_uuid(text, id_text)
            name = make_octets(id_text, 22)
    return add_to_list(table, CALL_TOPICS, name)


cdef void put_response_facts(Table* table, Facts* facts) noexcept nogil:
    if facts == NULL:
        put_null(table, CALL_ERROR_CODE)
        put_null(table, CALL_ERROR_COUNT)
        put_null(table, CALL_THROTTLE_TIME)
        return
    # The part of a broken message that could not be read may hold errors, too.
    if facts.broken:
        put_null(table, CALL_ERROR_COUNT)
    else:
        put_int32(table, CALL_ERROR_COUNT, facts.num_errors)
    if facts.broken and facts.num_errors == 0:
        put_null(table, CALL_ERROR_CODE)
    else:
        put_int16(table, CALL_ERROR_CODE, facts.first_error)
    if facts.has_throttle:
        put_int32(table, CALL_THROTTLE_TIME, <int32_t>facts.throttle)
    else:
        put_null(table, CALL_THROTTLE_TIME)


cdef void put_call_head(Context* context, Table* table, Dialog* dialog, Call* call, int call_id, int capture,
                        int connection_id, int api_key, int api_version, int client_id, int broker_address,
                        int broker_port) noexcept nogil:
    """What every table about calls repeats of the call; no broker columns where broker_address is -1."""
    put_int64(table, call_id, call.id)
    put_capture(context, table, capture, call.capture)
    put_int64(table, connection_id, dialog.connection.id)
    put_int16(table, api_key, call.key)
    put_int16(table, api_version, call.version)
    put_client_id(context, table, client_id, dialog, call)
    if broker_address >= 0:
        put_broker_address(context, table, broker_address, dialog)
        put_int32(table, broker_port, dialog.connection.port[1 - dialog.client])


cdef inline Octets path_of(Program* program, uint32_t node) noexcept nogil:
    return make_octets(&program.paths[program.path_ends[node]], program.path_ends[node + 1] - program.path_ends[node])


cdef void write_errors(Context* context, Dialog* dialog, Call* call, Frame* response, Facts* facts,
                       Program* program) noexcept nogil:
    cdef Table* table = &context.tables[<int>TABLE_ERROR_CODES]
    cdef ErrorHit* hits = <ErrorHit*>facts.errors.data
    cdef ErrorHit* hit
    cdef size_t i
    cdef size_t group_at = <size_t>call.client_id_len if call.client_id_len > 0 else 0
    cdef uint8_t topic_id[22]
    for i in range(facts.errors.len // sizeof(ErrorHit)):
        hit = &hits[i]
        if not begin_row(table):
            return
        put_int64(table, ERROR_CALL_ID, call.id)
        put_capture(context, table, ERROR_CAPTURE, call.capture)
        put_int64(table, ERROR_CONNECTION_ID, dialog.connection.id)
        put_endpoints(context, table, dialog, ERROR_CLIENT_ADDRESS, -1, ERROR_BROKER_ADDRESS, ERROR_BROKER_PORT)
        put_int16(table, ERROR_API_KEY, call.key)
        put_int16(table, ERROR_API_VERSION, call.version)
        put_int32(table, ERROR_CORRELATION_ID, call.correlation_id)
        put_client_id(context, table, ERROR_CLIENT_ID, dialog, call)
        put_time(table, ERROR_RESPONSE_TIME, response.first.time)
        put_int64(table, ERROR_RESPONSE_FRAME, response.first.frame)
        put_string(table, ERROR_PATH, path_of(program, hit.node))
        put_string(table, ERROR_TOPIC, hit.topic)
        if hit.topic_id.num == 16 and hit.topic_id.at != NULL:
            if hit.topic.at == NULL:
                await_topic(&context.topic_ids, hit.topic_id)
            write_uuid(hit.topic_id, topic_id)
            put_string(table, ERROR_TOPIC_ID, make_octets(topic_id, 22))
        else:
            put_null(table, ERROR_TOPIC_ID)
        if hit.partition == NO_PARTITION:
            put_null(table, ERROR_PARTITION)
        else:
            put_int32(table, ERROR_PARTITION, <int32_t>hit.partition)
        put_string(table, ERROR_GROUP_ID, hit.group if hit.group.at != NULL else text_at(call, group_at, call.group_len))
        put_int16(table, ERROR_CODE, hit.code)
        put_string(table, ERROR_MESSAGE, hit.message)
        end_row(table)


cdef void write_uuid(Octets id, uint8_t* text) noexcept nogil:
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


cdef void write_response_only(Context* context, Dialog* dialog, int64_t id, Frame* response,
                              int32_t correlation_id, int reason) noexcept nogil:
    cdef Table* table = &context.tables[<int>TABLE_API_CALLS]
    cdef int i
    cdef int[27] unknown = [
        CALL_API_KEY, CALL_API_VERSION, CALL_CLIENT_ID, CALL_REQUEST_TIME, CALL_REQUEST_END_TIME, CALL_REQUEST_FRAME,
        CALL_REQUEST_END_FRAME, CALL_REQUEST_BYTES, CALL_LATENCY, CALL_GROUP_ID, CALL_TRANSACTIONAL_ID, CALL_ACKS,
        CALL_PARTITION_COUNT, CALL_RECORD_COUNT, CALL_RECORD_BYTES, CALL_CALLER, CALL_MEMBER_ID,
        CALL_GROUP_INSTANCE_ID, CALL_GENERATION, CALL_PROTOCOL_TYPE, CALL_PRODUCER_ID, CALL_PRODUCER_EPOCH,
        CALL_ISOLATION_LEVEL, CALL_COMMITTED, CALL_SESSION_ID, CALL_MAX_WAIT, CALL_MIN_BYTES,
    ]
    if not begin_row(table):
        return
    dialog.num_calls += 1
    for i in range(27):
        put_null(table, unknown[i])
    end_list(table, CALL_TOPICS, False)
    put_response_facts(table, NULL)
    put_again(table, CALL_SASL_MECHANISM, &dialog.texts[<int>TEXT_MECHANISM], known_text(&dialog.sasl_mechanism))
    put_again(table, CALL_PRINCIPAL, &dialog.texts[<int>TEXT_PRINCIPAL], known_text(&dialog.principal))
    put_int64(table, CALL_CALL_ID, id)
    put_capture(context, table, CALL_CAPTURE, dialog.connection.capture)
    put_int64(table, CALL_CONNECTION_ID, dialog.connection.id)
    put_endpoints(context, table, dialog, CALL_CLIENT_ADDRESS, CALL_CLIENT_PORT, CALL_BROKER_ADDRESS, CALL_BROKER_PORT)
    put_int32(table, CALL_CORRELATION_ID, correlation_id)
    put_again(table, CALL_SOFTWARE_NAME, &dialog.texts[<int>TEXT_SOFTWARE_NAME], known_text(&dialog.software_name))
    put_again(table, CALL_SOFTWARE_VERSION, &dialog.texts[<int>TEXT_SOFTWARE_VERSION],
              known_text(&dialog.software_version))
    put_response(table, response)
    put_enum(table, CALL_STATUS, STATUS_RESPONSE_ONLY)
    if reason == REASON_NONE:
        put_null(table, CALL_REASON)
    else:
        put_enum(table, CALL_REASON, reason)
    end_row(table)


cdef void write_anomaly(Context* context, Connection* connection, int64_t call_id, Arrival* arrival, int direction,
                        int64_t offset, int name, int64_t value) noexcept nogil:
    """`connection` and `arrival` may be NULL; call_id, direction and offset are -1 where there is none."""
    cdef Table* table = &context.tables[<int>TABLE_ANOMALIES]
    cdef int64_t latest = <int64_t>(context.capture_name_ends.len // sizeof(int64_t)) - 1
    if not begin_row(table):
        return
    put_string(table, ANOMALY_CAPTURE, capture_name(
        context, arrival.capture if arrival != NULL else connection.last_capture if connection != NULL else latest))
    put_known(table, ANOMALY_CONNECTION_ID, connection != NULL, connection.id if connection != NULL else 0)
    put_known(table, ANOMALY_CALL_ID, call_id >= 0, call_id)
    put_time(table, ANOMALY_TIME, arrival.time if arrival != NULL else NO_TIME)
    put_known(table, ANOMALY_FRAME, arrival != NULL, arrival.frame if arrival != NULL else 0)
    if direction < 0:
        put_null(table, ANOMALY_DIRECTION)
    else:
        put_enum(table, ANOMALY_DIRECTION, direction)
    put_known(table, ANOMALY_STREAM_OFFSET, offset >= 0, offset)
    put_enum(table, ANOMALY_NAME, name)
    put_int64(table, ANOMALY_VALUE, value)
    end_row(table)
