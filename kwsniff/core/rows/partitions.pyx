# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""What a call moved or asked, partition by partition and batch by batch.

Rules
  1. A partition has one row per call: what the request says of it and what the response says of it, joined by topic
     (name or id) and partition. Brokers answer in the order of the request, so the join looks a few places ahead only.
  2. A row needs something to say: an offset, records, or an answer to what was asked. Metadata's partitions have none.
  3. What only one of the two messages has is a row with the other's columns null.
  4. A name of many partitions is looked at one time, not for each: it may have 32 kB, and a partition a few bytes.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp

from kwsniff.core.wire.batches cimport FIRST_KEY_SET, FIRST_KEY_UNKNOWN, BatchHit
from kwsniff.core.bytes.buffer cimport contents
from kwsniff.core.columns.columns cimport *
from kwsniff.core.declared cimport *
from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection, KEPT_GROUP_ID, PartRow
from kwsniff.core.kafka.request_texts cimport kept_text
from kwsniff.core.wire.facts cimport Facts, PartitionHit
from kwsniff.core.bytes.hash cimport hash_span
from kwsniff.core.bytes.known cimport Known
from kwsniff.core.bytes.span cimport Span, drop, keep, make_span, wipe
from kwsniff.core.rows.rows cimport put_call_head, put_time, write_uuid
from kwsniff.core.wire.topic_ids cimport await_topic, find_topic

cdef enum:
    LOOK_AHEAD = 64             # places that an answer may be away from where the request has its partition

cdef extern from *:
    """
    #define MILLISECOND 1000000LL
    #define LAST_MILLISECOND 9000000000000LL
    """
    const int64_t MILLISECOND
    const int64_t LAST_MILLISECOND


cdef inline Span row_name(Call* call, PartRow* row) noexcept nogil:
    if row.name_len < 0:
        return make_span(NULL, 0)
    return keep(drop(contents(&call.text), row.name_at), <size_t>row.name_len)


cdef bint is_about(PartRow* row, PartitionHit* hit, uint64_t name_hash) noexcept nogil:
    if row.answered or row.partition != hit.partition:
        return False
    if row.has_topic_id and hit.topic_id.at != NULL:
        return memcmp(row.topic_id, hit.topic_id.at, 16) == 0
    return row.name_len >= 0 and hit.topic.at != NULL and row.name_hash == name_hash


cdef inline uint64_t hash_name(Span name, uint64_t seed) noexcept nogil:
    return hash_span(name, seed) | 1


cdef void hash_names(Call* call, PartRow* rows, size_t num, uint64_t seed) noexcept nogil:
    cdef size_t i
    for i in range(num):
        if i and rows[i].name_at == rows[i - 1].name_at and rows[i].name_len == rows[i - 1].name_len:
            rows[i].name_hash = rows[i - 1].name_hash
        elif rows[i].name_len >= 0:
            rows[i].name_hash = hash_name(row_name(call, &rows[i]), seed)


cdef void write_partitions(Context* context, KafkaConnection* kafka, Call* call, Facts* facts) noexcept nogil:
    """`facts`: of the response, or NULL when there is none."""
    cdef PartRow* rows = <PartRow*>call.parts.data
    cdef size_t num = call.parts.len // sizeof(PartRow), num_hits = 0
    cdef PartitionHit* hits = NULL
    cdef size_t i, j, expected = 0
    cdef PartRow* row
    cdef Span name = make_span(NULL, 0)
    cdef uint64_t name_hash = 0
    if not context.tables[<int>TABLE_PARTITIONS].wanted:
        return
    if facts != NULL:
        hits = <PartitionHit*>facts.partition_hits.data
        num_hits = facts.partition_hits.len // sizeof(PartitionHit)
    if num and num_hits:
        hash_names(call, rows, num, context.topic_ids.seed)
    hold_texts(&context.tables[<int>TABLE_PARTITIONS])
    for i in range(num_hits):
        row = NULL
        if num and (hits[i].topic.at != name.at or hits[i].topic.num != name.num):
            name = hits[i].topic
            name_hash = hash_name(name, context.topic_ids.seed) if name.at != NULL else 0
        for j in range(expected, num if num < expected + LOOK_AHEAD else expected + LOOK_AHEAD):
            if is_about(&rows[j], &hits[i], name_hash):
                row = &rows[j]
                row.answered = True
                if j == expected:
                    expected += 1
                break
        while expected < num and rows[expected].answered:
            expected += 1
        if row != NULL or says_something(&hits[i]):
            write_partition(context, kafka, call, row, &hits[i])
    for i in range(num):
        if not rows[i].answered:
            write_partition(context, kafka, call, &rows[i], NULL)
    let_texts_go(&context.tables[<int>TABLE_PARTITIONS])


cdef inline bint says_something(PartitionHit* hit) noexcept nogil:
    return (hit.offset.is_known or hit.base_offset.is_known or hit.high_watermark.is_known
            or hit.record_bytes.is_known)


cdef inline void put_number(Table* table, int column, Known number) noexcept nogil:
    if number.is_known:
        put_int64(table, column, number.value)
    else:
        put_null(table, column)


cdef inline void put_offset(Table* table, int column, Known number) noexcept nogil:
    """Kafka writes -1 where there is none."""
    if number.is_known and number.value >= 0:
        put_int64(table, column, number.value)
    else:
        put_null(table, column)


cdef inline void put_broker_id(Table* table, int column, Known number) noexcept nogil:
    """-1 is none."""
    if number.is_known and number.value >= 0:
        put_int32(table, column, <int32_t>number.value)
    else:
        put_null(table, column)


cdef void put_topic(Context* context, Table* table, int name_column, int id_column, Span name,
                    Span topic_id) noexcept nogil:
    cdef uint8_t[22] text
    if name.at == NULL and topic_id.at != NULL:
        name = find_topic(&context.topic_ids, topic_id)
        if name.at == NULL:
            await_topic(&context.topic_ids, topic_id)
    put_string(table, name_column, name)
    if topic_id.at != NULL and topic_id.num == 16:
        write_uuid(topic_id, text)
        put_string(table, id_column, make_span(text, 22))
    else:
        put_null(table, id_column)


cdef inline void put_subject(Context* context, Table* table, Call* call, PartitionHit* answered, Span name,
                             Span topic_id) noexcept nogil:
    """An answer that speaks of several groups names the partition's own."""
    put_string(table, PARTITIONS_GROUP_ID, answered.group if answered.group.at != NULL else kept_text(call, KEPT_GROUP_ID))
    put_topic(context, table, PARTITIONS_TOPIC, PARTITIONS_TOPIC_ID, name, topic_id)


cdef void write_partition(Context* context, KafkaConnection* kafka, Call* call, PartRow* asked,
                          PartitionHit* answered) noexcept nogil:
    """Either of the two may be NULL."""
    cdef Table* table = &context.tables[<int>TABLE_PARTITIONS]
    cdef PartitionHit none
    cdef Span name = make_span(NULL, 0)
    cdef Span topic_id = make_span(NULL, 0)
    cdef Known offset, record_bytes, records
    cdef int64_t batches
    if not begin_row(table):
        return
    if answered == NULL:
        wipe(&none, sizeof(PartitionHit))
        answered = &none
    name = answered.topic
    topic_id = answered.topic_id
    offset = answered.offset
    record_bytes = answered.record_bytes
    records = answered.records
    batches = answered.batches
    if asked != NULL:
        if name.at == NULL:
            name = row_name(call, asked)
        if topic_id.at == NULL and asked.has_topic_id:
            topic_id = make_span(asked.topic_id, 16)
        if asked.offset.is_known:
            offset = asked.offset
        if not record_bytes.is_known:
            record_bytes = asked.record_bytes
            records = asked.records
            batches = asked.batches
    put_call_head(context, table, kafka, call, PARTITIONS_CALL_ID, PARTITIONS_CAPTURE, PARTITIONS_CONNECTION_ID, PARTITIONS_API_KEY,
                  PARTITIONS_API_NAME, PARTITIONS_API_VERSION, PARTITIONS_CLIENT_ID, PARTITIONS_BROKER_ADDRESS, PARTITIONS_BROKER_PORT)
    put_time(table, PARTITIONS_TIME, call.first.time)
    put_subject(context, table, call, answered, name, topic_id)
    put_int32(table, PARTITIONS_PARTITION, asked.partition if asked != NULL else answered.partition)
    if answered.error.is_known:
        put_int16(table, PARTITIONS_ERROR_CODE, <int16_t>answered.error.value)
    else:
        put_null(table, PARTITIONS_ERROR_CODE)
    put_offset(table, PARTITIONS_REQUESTED_OFFSET, offset)
    put_offset(table, PARTITIONS_BASE_OFFSET, answered.base_offset)
    put_offset(table, PARTITIONS_LAST_OFFSET, answered.last_offset)
    put_offset(table, PARTITIONS_HIGH_WATERMARK, answered.high_watermark)
    put_offset(table, PARTITIONS_LAST_STABLE_OFFSET, answered.last_stable_offset)
    put_offset(table, PARTITIONS_LOG_START_OFFSET, answered.log_start_offset)
    put_broker_id(table, PARTITIONS_PREFERRED_READ_REPLICA, answered.read_replica)
    put_lag(table, offset, answered)
    put_number(table, PARTITIONS_RECORD_BYTES, record_bytes)
    put_number(table, PARTITIONS_RECORD_COUNT, records)
    if record_bytes.is_known:
        put_int32(table, PARTITIONS_BATCH_COUNT, <int32_t>batches)
    else:
        put_null(table, PARTITIONS_BATCH_COUNT)
    end_row(table)


cdef void put_lag(Table* table, Known offset, PartitionHit* answered) noexcept nogil:
    """How far the reader is behind the high watermark once it has read what came."""
    cdef int64_t following
    if not answered.high_watermark.is_known or answered.high_watermark.value < 0:
        put_null(table, PARTITIONS_LAG)
        return
    if answered.last_offset.is_known:
        following = answered.last_offset.value + 1
    elif offset.is_known:
        following = offset.value
    else:
        put_null(table, PARTITIONS_LAG)
        return
    if following < 0 or following > answered.high_watermark.value:
        put_null(table, PARTITIONS_LAG)
    else:
        put_int64(table, PARTITIONS_LAG, answered.high_watermark.value - following)


cdef inline void put_stamp(Table* table, int column, Known milliseconds) noexcept nogil:
    """Producers write what they like: what is not a date of this age is null."""
    if milliseconds.is_known and 0 <= milliseconds.value <= LAST_MILLISECOND:
        put_int64(table, column, milliseconds.value * MILLISECOND)
    else:
        put_null(table, column)


cdef void write_batches(Context* context, KafkaConnection* kafka, Call* call, Facts* facts, int64_t time) noexcept nogil:
    cdef Table* table = &context.tables[<int>TABLE_RECORD_BATCHES]
    cdef BatchHit* batches = <BatchHit*>facts.batch_hits.data
    cdef BatchHit* batch
    cdef size_t i
    hold_texts(table)
    for i in range(facts.batch_hits.len // sizeof(BatchHit)):
        batch = &batches[i]
        if not begin_row(table):
            break
        put_call_head(context, table, kafka, call, RECORD_BATCHES_CALL_ID, RECORD_BATCHES_CAPTURE, RECORD_BATCHES_CONNECTION_ID, RECORD_BATCHES_API_KEY,
                      RECORD_BATCHES_API_NAME, RECORD_BATCHES_API_VERSION, RECORD_BATCHES_CLIENT_ID, -1, -1)
        put_time(table, RECORD_BATCHES_TIME, time)
        put_topic(context, table, RECORD_BATCHES_TOPIC, RECORD_BATCHES_TOPIC_ID, batch.topic, batch.topic_id)
        if batch.partition.is_known:
            put_int32(table, RECORD_BATCHES_PARTITION, <int32_t>batch.partition.value)
        else:
            put_null(table, RECORD_BATCHES_PARTITION)
        put_int16(table, RECORD_BATCHES_MAGIC, <int16_t>batch.magic)
        put_enum(table, RECORD_BATCHES_CODEC, batch.attributes & 7)
        put_int64(table, RECORD_BATCHES_BYTES, batch.bytes)
        put_number(table, RECORD_BATCHES_UNCOMPRESSED_BYTES, batch.uncompressed)
        if batch.records.is_known:
            put_int32(table, RECORD_BATCHES_RECORD_COUNT, <int32_t>batch.records.value)
        else:
            put_null(table, RECORD_BATCHES_RECORD_COUNT)
        put_int64(table, RECORD_BATCHES_BASE_OFFSET, batch.base_offset)
        put_number(table, RECORD_BATCHES_LAST_OFFSET, batch.last_offset)
        put_number(table, RECORD_BATCHES_PRODUCER_ID, batch.producer_id)
        if batch.producer_id.is_known:
            put_int16(table, RECORD_BATCHES_PRODUCER_EPOCH, <int16_t>batch.producer_epoch)
        else:
            put_null(table, RECORD_BATCHES_PRODUCER_EPOCH)
        if batch.producer_id.is_known and batch.base_sequence >= 0:
            put_int32(table, RECORD_BATCHES_BASE_SEQUENCE, batch.base_sequence)
        else:
            put_null(table, RECORD_BATCHES_BASE_SEQUENCE)
        put_bool(table, RECORD_BATCHES_TRANSACTIONAL, batch.magic >= 2 and batch.attributes & 0x10)
        put_bool(table, RECORD_BATCHES_CONTROL, batch.magic >= 2 and batch.attributes & 0x20)
        if batch.key != FIRST_KEY_UNKNOWN:
            put_bool(table, RECORD_BATCHES_KEYED, batch.key == FIRST_KEY_SET)
        else:
            put_null(table, RECORD_BATCHES_KEYED)
        put_enum(table, RECORD_BATCHES_TIMESTAMP_TYPE, 2 if batch.magic == 0 else batch.attributes >> 3 & 1)
        put_stamp(table, RECORD_BATCHES_FIRST_TIMESTAMP, batch.first_timestamp)
        put_stamp(table, RECORD_BATCHES_MAX_TIMESTAMP, batch.max_timestamp)
        put_int64(table, RECORD_BATCHES_CRC, batch.crc)
        end_row(table)
    let_texts_go(table)
