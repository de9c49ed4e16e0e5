# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""One fold over a message's tape: the facts that rows of the tables are made of.

Rules
  1. Fields are known by the meaning that their layout gives them, never by API or name.
  2. A value belongs to its struct and to what is nested in it: it is forgotten at that struct's end. An error
     therefore finds its topic, partition and message whether they are before or after it in the struct.
  3. A message that breaks off gives the facts up to the break.
  4. Whatever the number of cells, one pass; the topics and errors that are kept are bounded by the message's bytes.

    responses [ name  partitions [ index  error_code  ... END ] END ]
                |                  |      |                |     `- name forgotten
                |                  |      `- remembered    `- error row: topic=name, partition=index
                `- topic (depth 1) `- partition (depth 2)
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kwsniff.core.wire.batches cimport BatchHit, describe_batch
from kwsniff.core.bytes.buffer cimport append_raw, release
from kwsniff.core.bytes.cursor cimport Cursor, bytes_left, cursor_over
from kwsniff.core.bytes.known cimport know, know_first
from kwsniff.core.wire.meaning cimport *
from kwsniff.core.bytes.span cimport Span, drop, keep, make_span, same_bytes, wipe
from kwsniff.core.wire.records cimport BATCH_OK, BATCH_UNKNOWN_FORMAT, Batch, next_batch
from kwsniff.core.wire.tape cimport *
from kwsniff.core.wire.topic_ids cimport TopicIds, find_topic, learn_topic

cdef enum:
    MAX_DEPTH = 40              # the engine's own bound is lower
    MAX_PENDING = 64            # error fields of open structs; one per struct in every known layout
    OWN_DEPTH = 2               # the message's own struct, and those that are directly in it
    RECENT_TOPICS = 8           # a topic is looked for among this number before it counts as another

cdef struct Register:
    Span span
    int depth

cdef struct Pending:
    uint32_t node
    int16_t code
    int depth
    Span message

cdef struct Fold:
    Span message
    int depth
    Register topic
    Register topic_id
    Register group
    Register message_text
    int64_t partition
    int partition_depth
    int64_t aborted             # where the latest listed one of the partition's aborted transactions begins
    int64_t readable            # the partition's end for this reader: no offset from here on can be in the message
    PartitionHit hit            # of the struct at hit_depth
    int hit_depth
    int num_pending
    bint header_read            # the first struct of a message is its header
    int64_t listed              # names still to come of an array of topic names, or of coordinators' keys
    bint one_key                # that array of keys has one
    Forgotten forgotten
    int forgotten_depth         # inside the topics that a fetch session drops: they are not part of the call
    int named_depth             # no struct below this one said anything that its end forgets
    # From here on nothing is read before it is written.
    int64_t left[40]            # elements still to come of the array at that depth
    Pending pending[64]


cdef void free_facts(Facts* facts) noexcept nogil:
    release(&facts.topics)
    release(&facts.errors)
    release(&facts.partition_hits)
    release(&facts.forgotten)
    release(&facts.batch_hits)


cdef inline void reset_facts(Facts* facts) noexcept nogil:
    wipe(facts, <size_t>(<char*>&facts.topics - <char*>facts))
    facts.topics.len = 0
    facts.errors.len = 0
    facts.partition_hits.len = 0
    facts.forgotten.len = 0
    facts.batch_hits.len = 0


cdef inline Span cell_span(Span message, Cell* cell) noexcept nogil:
    """The bytes a string, bytes or uuid cell points at; without an address when null."""
    if cell.value < 0:
        return make_span(NULL, 0)
    return keep(drop(message, cell.offset), <size_t>cell.value)


cdef void gather_facts(Facts* facts, const Op* ops, Tape* tape, Span message, TopicIds* topic_ids) noexcept nogil:
    cdef Fold fold
    cdef Cell* cell
    cdef const Op* op
    cdef size_t i
    reset_facts(facts)
    wipe(&fold, <size_t>(<char*>&fold.left - <char*>&fold))
    fold.message = message
    fold.partition = NO_PARTITION
    for i in range(tape.num):
        cell = &tape.cells[i]
        op = &ops[cell.node]
        if op.kind == KIND_END:
            end_struct(facts, &fold, topic_ids)
        elif op.kind == KIND_ARRAY or op.kind == KIND_STRUCT:
            if cell.value > 0 and fold.depth < MAX_DEPTH - 1:
                fold.depth += 1
                fold.left[fold.depth] = cell.value
                if op.meaning == MEANING_FORGOTTEN:
                    fold.forgotten_depth = fold.named_depth = fold.depth
        elif fold.forgotten_depth:
            take_forgotten(&fold, op, cell)
        elif op.meaning:
            take_field(facts, &fold, op, cell, topic_ids)
    while fold.depth > 0:
        fold.left[fold.depth] = 1
        end_struct(facts, &fold, topic_ids)
    settle_errors(facts, &fold, topic_ids)


cdef void take_forgotten(Fold* fold, const Op* op, Cell* cell) noexcept nogil:
    if op.meaning == MEANING_TOPIC: fold.forgotten.topic = cell_span(fold.message, cell)
    elif op.meaning == MEANING_TOPIC_ID: fold.forgotten.topic_id = cell_span(fold.message, cell)
    elif op.meaning == MEANING_PARTITION and op.kind == KIND_ARRAY_SCALAR and cell.value > 0:
        fold.forgotten.partitions = keep(drop(fold.message, cell.offset), 4 * <size_t>cell.value)


cdef inline void end_struct(Facts* facts, Fold* fold, TopicIds* topic_ids) noexcept nogil:
    if fold.named_depth >= fold.depth or fold.depth <= 1:
        forget_struct(facts, fold, fold.depth, topic_ids)
    if fold.depth > 0:
        fold.left[fold.depth] -= 1
        if fold.left[fold.depth] <= 0:
            if fold.forgotten_depth == fold.depth:
                fold.forgotten_depth = 0
            fold.depth -= 1


cdef void forget_struct(Facts* facts, Fold* fold, int depth, TopicIds* topic_ids) noexcept nogil:
    """Notes and forgets what the struct at `depth`, which ends, has said."""
    if fold.forgotten_depth and fold.forgotten_depth == depth:
        if facts.forgotten.len < facts.most_hits * sizeof(Forgotten):
            append_raw(&facts.forgotten, &fold.forgotten, sizeof(Forgotten))
        wipe(&fold.forgotten, sizeof(Forgotten))
    if fold.num_pending and fold.pending[fold.num_pending - 1].depth >= depth:
        settle_errors(facts, fold, topic_ids)
    if fold.hit_depth and fold.hit_depth >= depth:
        end_hit(facts, fold, depth)
    if fold.topic.span.at != NULL and fold.topic_id.span.at != NULL and fold.topic.depth == fold.topic_id.depth == depth:
        learn_topic(topic_ids, fold.topic_id.span, fold.topic.span)
    if fold.topic.depth >= depth:
        if fold.topic.span.at != NULL:
            note_topic(facts, fold.topic.span)
        elif fold.topic_id.span.at != NULL and fold.topic_id.depth >= depth:
            note_topic_id(facts, fold.topic_id.span, topic_ids)
        fold.topic.span.at = NULL
        fold.topic.depth = 0
    elif fold.topic_id.depth >= depth and fold.topic_id.span.at != NULL:
        note_topic_id(facts, fold.topic_id.span, topic_ids)
    if fold.topic_id.depth >= depth:
        fold.topic_id.span.at = NULL
        fold.topic_id.depth = 0
    if fold.group.depth >= depth:
        fold.group.span.at = NULL
        fold.group.depth = 0
    if fold.message_text.depth >= depth:
        fold.message_text.span.at = NULL
        fold.message_text.depth = 0
    if fold.partition_depth >= depth:
        fold.partition = NO_PARTITION
        fold.partition_depth = 0
    if depth == 1:
        fold.header_read = True
    fold.named_depth = depth if fold.forgotten_depth == depth else depth - 1


cdef void end_hit(Facts* facts, Fold* fold, int depth) noexcept nogil:
    """What a struct said of a partition becomes a hit, if it named the partition."""
    if fold.partition_depth == depth and fold.hit_depth == depth:
        fold.hit.topic, fold.hit.topic_id = fold.topic.span, fold.topic_id.span
        fold.hit.group = fold.group.span
        fold.hit.partition = <int32_t>fold.partition
        if facts.partition_hits.len < facts.most_hits * sizeof(PartitionHit):
            append_raw(&facts.partition_hits, &fold.hit, sizeof(PartitionHit))
    if fold.hit_depth >= depth:
        fold.hit_depth = 0


cdef inline PartitionHit* hit_here(Facts* facts, Fold* fold) noexcept nogil:
    """The hit that the current struct fills; NULL where it is not wanted, and in the structs inside a partition:
    the offsets of aborted transactions and snapshots are not the partition's own."""
    if not facts.wants_partitions or 0 < fold.partition_depth == fold.hit_depth < fold.depth:
        return NULL
    if fold.hit_depth != fold.depth:
        wipe(&fold.hit, sizeof(PartitionHit))
        fold.hit_depth = fold.named_depth = fold.depth
    return &fold.hit


cdef void settle_errors(Facts* facts, Fold* fold, TopicIds* topic_ids) noexcept nogil:
    """Turns the remembered errors of the structs that end now into hits, with what these structs and those around
    them said."""
    cdef ErrorHit hit
    cdef Pending* pending
    cdef int i, kept = fold.num_pending
    while kept > 0 and fold.pending[kept - 1].depth >= fold.depth:
        kept -= 1
    for i in range(kept, fold.num_pending):
        pending = &fold.pending[i]
        wipe(&hit, sizeof(ErrorHit))
        hit.node = pending.node
        hit.code = pending.code
        hit.partition = fold.partition
        hit.topic = fold.topic.span
        hit.topic_id = fold.topic_id.span
        if hit.topic.at == NULL and hit.topic_id.at != NULL:
            hit.topic = find_topic(topic_ids, hit.topic_id)
        hit.group = fold.group.span
        hit.message = pending.message
        if facts.errors.len < facts.most_hits * sizeof(ErrorHit):
            append_raw(&facts.errors, &hit, sizeof(ErrorHit))
    fold.num_pending = kept


cdef inline void set_register(Fold* fold, Register* register, Span span) noexcept nogil:
    register.span = span
    register.depth = fold.named_depth = fold.depth


cdef inline void take_field(Facts* facts, Fold* fold, const Op* op, Cell* cell, TopicIds* topic_ids) noexcept nogil:
    cdef uint8_t meaning = op.meaning
    if meaning == MEANING_PARTITION:
        facts.has_partitions = True
        if op.kind == KIND_ARRAY_SCALAR:
            facts.partitions += cell.value if cell.value > 0 else 0
        elif op.kind == KIND_INT32:
            facts.partitions += 1
            fold.partition = cell.value
            fold.aborted = 0
            fold.partition_depth = fold.named_depth = fold.depth
    elif meaning == MEANING_ERROR:
        take_error(facts, fold, op, cell, topic_ids)
    elif meaning == MEANING_TOPIC:
        if op.kind == KIND_STRING:
            set_register(fold, &fold.topic, cell_span(fold.message, cell))
        elif op.kind == KIND_ARRAY_STRING:
            take_listed(facts, fold, meaning, cell)
    elif meaning == MEANING_TOPIC_ID:
        if op.kind == KIND_UUID:
            set_register(fold, &fold.topic_id, cell_span(fold.message, cell))
    elif meaning == MEANING_RECORDS:
        if cell.value >= 0:
            count_records(facts, fold, cell_span(fold.message, cell))
    elif meaning == MEANING_ERROR_MESSAGE:
        take_message(fold, cell_span(fold.message, cell))
    elif meaning == MEANING_THROTTLE or meaning == MEANING_HELD_BACK:
        facts.has_throttle = True
        facts.held_back = meaning == MEANING_HELD_BACK
        facts.throttle = cell.value
    elif meaning == MEANING_HIGH_WATERMARK or meaning == MEANING_LAST_STABLE_OFFSET:
        if cell.value >= 0 and (meaning == MEANING_HIGH_WATERMARK or cell.value < fold.readable):
            fold.readable = cell.value
        take_offset(hit_here(facts, fold), meaning, cell.value)
    elif (meaning == MEANING_OFFSET or meaning == MEANING_LOG_START_OFFSET or meaning == MEANING_COMMITTED_OFFSET
            or meaning == MEANING_BASE_OFFSET or meaning == MEANING_READ_REPLICA):
        take_offset(hit_here(facts, fold), meaning, cell.value)
    elif meaning == MEANING_ACKS:
        facts.has_acks = True
        facts.acks = <int16_t>cell.value
    elif meaning == MEANING_COORDINATOR_KEY:
        if op.kind == KIND_STRING:
            facts.coordinator_key = cell_span(fold.message, cell)
        elif op.kind == KIND_ARRAY_STRING:
            take_listed(facts, fold, meaning, cell)
    else:
        if op.kind == KIND_STRING:
            take_text(facts, fold, meaning, cell_span(fold.message, cell))
        else:
            take_number(facts, fold, op, cell)


cdef inline void take_text(Facts* facts, Fold* fold, uint8_t meaning, Span span) noexcept nogil:
    if meaning == MEANING_CLIENT_ID:
        # Only the header names the caller; bodies (DescribeGroups) name the clients of others.
        if not fold.header_read:
            facts.client_id = span
    elif meaning == MEANING_GROUP:
        set_register(fold, &fold.group, span)
        if facts.group.at == NULL:
            facts.group = span
    elif meaning == MEANING_TRANSACTIONAL_ID:
        if facts.transactional_id.at == NULL:
            facts.transactional_id = span
    elif meaning == MEANING_SOFTWARE_NAME: facts.software_name = span
    elif meaning == MEANING_SOFTWARE_VERSION: facts.software_version = span
    elif meaning == MEANING_SASL_MECHANISM: facts.sasl_mechanism = span
    elif fold.depth <= OWN_DEPTH:
        if meaning == MEANING_MEMBER:
            # The answer to JoinGroup names the leader before the member.
            if fold.depth == 1 or facts.member.at == NULL:
                facts.member = span
        elif meaning == MEANING_GROUP_INSTANCE: facts.group_instance = span
        elif meaning == MEANING_PROTOCOL_TYPE: facts.protocol_type = span
        elif meaning == MEANING_RACK and fold.depth == 1: facts.rack = span


cdef void take_offset(PartitionHit* hit, uint8_t meaning, int64_t value) noexcept nogil:
    if hit == NULL:
        return
    if meaning == MEANING_HIGH_WATERMARK: know(&hit.high_watermark, value)
    elif meaning == MEANING_LAST_STABLE_OFFSET: know(&hit.last_stable_offset, value)
    elif meaning == MEANING_LOG_START_OFFSET: know(&hit.log_start_offset, value)
    elif meaning == MEANING_READ_REPLICA: know(&hit.read_replica, value)
    elif meaning == MEANING_BASE_OFFSET: know(&hit.base_offset, value)
    else: know_first(&hit.offset, value)


cdef inline void take_number(Facts* facts, Fold* fold, const Op* op, Cell* cell) noexcept nogil:
    """Numbers that say something of the whole call: those of the message itself or of a struct right in it."""
    cdef uint8_t meaning = op.meaning
    if fold.depth > 1:
        if meaning == MEANING_ABORTED_OFFSET:
            if cell.value < fold.aborted:
                know_first(&facts.aborted_behind, cell.value)
            fold.aborted = cell.value
        if fold.depth == OWN_DEPTH and meaning == MEANING_REPLICA_ID and op.kind <= KIND_UINT32:
            know_first(&facts.replica_id, cell.value)
        return
    if op.kind > KIND_UINT32:
        if meaning == MEANING_SECRET and op.kind == KIND_BYTES and fold.depth == 1:
            facts.secret = cell_span(fold.message, cell)
        return
    if meaning == MEANING_REPLICA_ID: know_first(&facts.replica_id, cell.value)
    elif meaning == MEANING_GENERATION or meaning == MEANING_MEMBER_EPOCH: know_first(&facts.generation, cell.value)
    elif meaning == MEANING_PRODUCER_ID: know_first(&facts.producer_id, cell.value)
    elif meaning == MEANING_PRODUCER_EPOCH: know_first(&facts.producer_epoch, cell.value)
    elif meaning == MEANING_ISOLATION: know(&facts.isolation, cell.value)
    elif meaning == MEANING_TRANSACTION_RESULT: know(&facts.committed, cell.value)
    elif meaning == MEANING_SESSION_ID: know(&facts.session_id, cell.value)
    elif meaning == MEANING_SESSION_EPOCH: know(&facts.session_epoch, cell.value)
    elif meaning == MEANING_MAX_WAIT: know(&facts.max_wait, cell.value)
    elif meaning == MEANING_KEY_TYPE: know(&facts.key_type, cell.value)
    elif meaning == MEANING_MIN_BYTES: know(&facts.min_bytes, cell.value)
    elif meaning == MEANING_MAX_BYTES: know(&facts.max_bytes, cell.value)
    elif meaning == MEANING_TIMEOUT or meaning == MEANING_DURATION:
        if op.kind == KIND_INT32:
            know_first(&facts.timeout, cell.value)


cdef inline void take_listed(Facts* facts, Fold* fold, uint8_t meaning, Cell* cell) noexcept nogil:
    """An array of topic names or keys: its own cell has the count, the elements' cells follow under the same node."""
    # Order distinguishes them: an element is one only while elements are outstanding.
    if fold.listed == 0:
        fold.listed = cell.value if cell.value > 0 else 0
        fold.one_key = cell.value == 1
        return
    fold.listed -= 1
    if meaning == MEANING_TOPIC: note_topic(facts, cell_span(fold.message, cell))
    elif fold.one_key: facts.coordinator_key = cell_span(fold.message, cell)


cdef void take_error(Facts* facts, Fold* fold, const Op* op, Cell* cell, TopicIds* topic_ids) noexcept nogil:
    cdef Pending* pending
    cdef PartitionHit* hit
    facts.has_error = True
    if fold.depth > 1 and op.kind == KIND_INT16:
        hit = hit_here(facts, fold)
        if hit != NULL:
            know(&hit.error, cell.value)
    if cell.value == 0 or op.kind != KIND_INT16:
        return
    if facts.num_errors == 0:
        facts.first_error = <int16_t>cell.value
    facts.num_errors += 1
    if fold.num_pending == MAX_PENDING:
        return
    pending = &fold.pending[fold.num_pending]
    pending.node = cell.node
    pending.code = <int16_t>cell.value
    pending.depth = fold.named_depth = fold.depth
    pending.message = fold.message_text.span if fold.message_text.depth == fold.depth else make_span(NULL, 0)
    fold.num_pending += 1


cdef inline void take_message(Fold* fold, Span text) noexcept nogil:
    """Of the errors of this struct, before it and behind it; structs inside have texts of their own."""
    cdef int i
    set_register(fold, &fold.message_text, text)
    for i in range(fold.num_pending):
        if fold.pending[i].depth == fold.depth:
            fold.pending[i].message = text


cdef void note_topic_id(Facts* facts, Span topic_id, TopicIds* topic_ids) noexcept nogil:
    cdef Span name = find_topic(topic_ids, topic_id)
    cdef int i
    if name.at == NULL:
        for i in range(16):
            if topic_id.num == 16 and topic_id.at[i]:       # the zero id means none
                topic_id.num |= TOPIC_BY_ID
                note_topic(facts, topic_id)
                return
    note_topic(facts, name)


cdef void note_topic(Facts* facts, Span name) noexcept nogil:
    cdef Span* topics = <Span*>facts.topics.data
    cdef size_t num = facts.topics.len // sizeof(Span), i
    cdef size_t num_bytes = name.num & ~<size_t>TOPIC_BY_ID
    if name.at == NULL or name.num == 0:
        return
    i = num - RECENT_TOPICS if num > RECENT_TOPICS else 0
    while i < num:
        if topics[i].num == name.num and same_bytes(keep(topics[i], num_bytes), keep(name, num_bytes)):
            return
        i += 1
    append_raw(&facts.topics, &name, sizeof(Span))


cdef void count_records(Facts* facts, Fold* fold, Span records) noexcept nogil:
    """Walks the batches of a record set by their lengths; the last one of a fetched set may be cut off and is then
    not counted (protocol guide, record batch; KIP-74)."""
    cdef PartitionHit* hit = hit_here(facts, fold)
    cdef Cursor cursor = cursor_over(records.at, records.num)
    cdef Batch batch
    cdef bint uncounted = False
    cdef int64_t records_before = facts.records, last = -1
    cdef int status
    facts.has_records = True
    facts.record_bytes += <int64_t>records.num
    if hit != NULL:
        know(&hit.record_bytes, <int64_t>records.num)
    while bytes_left(&cursor):
        status = next_batch(&cursor, records.at, &batch)
        if status != BATCH_OK:
            uncounted = uncounted or status == BATCH_UNKNOWN_FORMAT
            break
        if batch.magic < 2 and batch.count < 0:
            uncounted = True
        elif not batch.attributes & CONTROL_BATCH:      # control batches hold no records of a producer
            facts.records += batch.count
        if batch.magic >= 1 and batch.max_timestamp > 0:
            note_made(facts, batch.max_timestamp)
        if batch.magic == 2 and batch.attributes & TRANSACTIONAL:
            note_transaction(facts, batch.attributes, batch.max_timestamp, last < 0)
        last = <int64_t>(<uint64_t>batch.base_offset + <uint64_t>batch.last_offset_delta)
        if hit != NULL:
            hit.batches += 1
            know_first(&hit.base_offset, batch.base_offset)
            know(&hit.last_offset, last)
        if facts.wants_batches and facts.batch_hits.len < facts.most_hits * sizeof(BatchHit):
            note_batch(facts, fold, records, &batch)
    facts.records_uncounted = facts.records_uncounted or uncounted
    facts.more_left = facts.more_left or 0 <= last < fold.readable - 1
    fold.readable = 0
    if hit != NULL and not uncounted:
        know(&hit.records, facts.records - records_before)


cdef inline void note_batch(Facts* facts, Fold* fold, Span records, Batch* batch) noexcept nogil:
    cdef BatchHit hit
    describe_batch(records, batch, &hit)
    hit.topic = fold.topic.span
    hit.topic_id = fold.topic_id.span
    if fold.partition_depth:
        know(&hit.partition, fold.partition)
    append_raw(&facts.batch_hits, &hit, sizeof(BatchHit))
