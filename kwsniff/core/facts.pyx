# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""One fold over a message's tape: the facts that rows of the tables are made of.

Rules
  1. Fields are known by the meaning that their layout gives them, never by API or name.
  2. A value belongs to its struct and to what is nested in it: it is forgotten at that struct's end. An error
     therefore finds its topic, partition and message whether they stand before or behind it in the struct.
  3. A message that breaks off gives the facts up to the break.
  4. Whatever the number of cells, one pass; the topics and errors that are kept are bounded by the message's bytes.

    responses [ name  partitions [ index  error_code  ... END ] END ]
                |                  |      |                |     `- name forgotten
                |                  |      `- remembered    `- error row: topic=name, partition=index
                `- topic (depth 1) `- partition (depth 2)
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memset

from kwsniff.core.buffer cimport Buffer, append_raw, release
from kwsniff.core.meaning cimport *
from kwsniff.core.octets cimport Octets, be16, be32, drop, keep, make_octets, u8
from kwsniff.core.tape cimport *
from kwsniff.core.topic_ids cimport TopicIds, find_topic, learn_topic

cdef enum:
    MAX_DEPTH = 40              # the engine's own bound is lower
    MAX_PENDING = 64            # error fields of open structs; one per struct in every known layout
    RECENT_TOPICS = 8           # a topic is looked for among so many before it counts as another

cdef struct Register:
    Octets span
    int depth

cdef struct Pending:
    uint32_t node
    int16_t code
    int depth

cdef struct Fold:
    Octets message
    int depth
    int64_t left[40]            # elements still to come of the array at that depth
    Register topic
    Register topic_id
    Register group
    Register message_text
    int64_t partition
    int partition_depth
    Pending pending[64]
    int num_pending
    bint header_read            # the first struct of a message is its header
    int64_t listed              # names still to come of an array of topic names
    int forgotten_depth         # inside the topics that a fetch session drops: they are no part of the call


cdef void free_facts(Facts* facts) noexcept nogil:
    release(&facts.topics)
    release(&facts.errors)


cdef void reset_facts(Facts* facts) noexcept nogil:
    cdef Buffer topics = facts.topics
    cdef Buffer errors = facts.errors
    memset(facts, 0, sizeof(Facts))
    facts.topics = topics
    facts.errors = errors
    facts.topics.len = 0
    facts.errors.len = 0


cdef inline Octets cell_span(Octets message, Cell* cell) noexcept nogil:
    """The bytes a string, bytes or uuid cell points at; without an address when null."""
    if cell.value < 0:
        return make_octets(NULL, 0)
    return keep(drop(message, cell.offset), <size_t>cell.value)


cdef void gather_facts(Facts* facts, const Op* ops, Tape* tape, Octets message, TopicIds* topic_ids) noexcept nogil:
    cdef Fold fold
    cdef Cell* cell
    cdef const Op* op
    cdef size_t i
    reset_facts(facts)
    memset(&fold, 0, sizeof(Fold))
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
                    fold.forgotten_depth = fold.depth
        elif op.meaning and not fold.forgotten_depth:
            take_field(facts, &fold, op, cell, topic_ids)
    while fold.depth > 0:
        fold.left[fold.depth] = 1
        end_struct(facts, &fold, topic_ids)
    settle_errors(facts, &fold, topic_ids)


cdef void end_struct(Facts* facts, Fold* fold, TopicIds* topic_ids) noexcept nogil:
    cdef int depth = fold.depth
    if fold.num_pending and fold.pending[fold.num_pending - 1].depth >= depth:
        settle_errors(facts, fold, topic_ids)
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
    if depth > 0:
        fold.left[depth] -= 1
        if fold.left[depth] <= 0:
            fold.depth -= 1
            if fold.forgotten_depth == depth:
                fold.forgotten_depth = 0


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
        memset(&hit, 0, sizeof(ErrorHit))
        hit.node = pending.node
        hit.code = pending.code
        hit.partition = fold.partition
        hit.topic = fold.topic.span
        hit.topic_id = fold.topic_id.span
        if hit.topic.at == NULL and hit.topic_id.at != NULL:
            hit.topic = find_topic(topic_ids, hit.topic_id)
        hit.group = fold.group.span
        if fold.message_text.depth == pending.depth:
            hit.message = fold.message_text.span
        append_raw(&facts.errors, &hit, sizeof(ErrorHit))
    fold.num_pending = kept


cdef inline void set_register(Register* register, Octets span, int depth) noexcept nogil:
    register.span = span
    register.depth = depth


cdef void take_field(Facts* facts, Fold* fold, const Op* op, Cell* cell, TopicIds* topic_ids) noexcept nogil:
    cdef uint8_t meaning = op.meaning
    cdef Octets span
    if meaning == MEANING_PARTITION:
        facts.has_partitions = True
        if op.kind == KIND_ARRAY_SCALAR:
            facts.partitions += cell.value if cell.value > 0 else 0
        elif op.kind == KIND_INT32:
            facts.partitions += 1
            fold.partition = cell.value
            fold.partition_depth = fold.depth
    elif meaning == MEANING_ERROR:
        take_error(facts, fold, op, cell, topic_ids)
    elif meaning == MEANING_TOPIC:
        if op.kind == KIND_STRING:
            set_register(&fold.topic, cell_span(fold.message, cell), fold.depth)
        elif op.kind == KIND_ARRAY_STRING:
            take_listed_topic(facts, fold, cell)
    elif meaning == MEANING_TOPIC_ID:
        if op.kind == KIND_UUID:
            set_register(&fold.topic_id, cell_span(fold.message, cell), fold.depth)
    elif meaning == MEANING_RECORDS:
        if cell.value >= 0:
            count_records(facts, cell_span(fold.message, cell))
    elif meaning == MEANING_ERROR_MESSAGE:
        set_register(&fold.message_text, cell_span(fold.message, cell), fold.depth)
    elif meaning == MEANING_THROTTLE:
        facts.has_throttle = True
        facts.throttle = cell.value
    elif meaning == MEANING_ACKS:
        facts.has_acks = True
        facts.acks = <int16_t>cell.value
    elif op.kind == KIND_STRING:
        span = cell_span(fold.message, cell)
        if meaning == MEANING_CLIENT_ID:
            # Only the header names the caller; bodies (DescribeGroups) name the clients of others.
            if not fold.header_read:
                facts.client_id = span
        elif meaning == MEANING_GROUP:
            set_register(&fold.group, span, fold.depth)
            if facts.group.at == NULL:
                facts.group = span
        elif meaning == MEANING_TRANSACTIONAL_ID:
            if facts.transactional_id.at == NULL:
                facts.transactional_id = span
        elif meaning == MEANING_SOFTWARE_NAME: facts.software_name = span
        elif meaning == MEANING_SOFTWARE_VERSION: facts.software_version = span
        elif meaning == MEANING_SASL_MECHANISM: facts.sasl_mechanism = span


cdef inline void take_listed_topic(Facts* facts, Fold* fold, Cell* cell) noexcept nogil:
    """An array of topic names: its own cell has the count, the elements' cells follow under the same node."""
    # They are told apart by order: an element is one only while elements are outstanding.
    if fold.listed == 0:
        fold.listed = cell.value if cell.value > 0 else 0
        return
    fold.listed -= 1
    note_topic(facts, cell_span(fold.message, cell))


cdef void take_error(Facts* facts, Fold* fold, const Op* op, Cell* cell, TopicIds* topic_ids) noexcept nogil:
    cdef Pending* pending
    facts.has_error = True
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
    pending.depth = fold.depth
    fold.num_pending += 1


cdef void note_topic_id(Facts* facts, Octets topic_id, TopicIds* topic_ids) noexcept nogil:
    cdef Octets name = find_topic(topic_ids, topic_id)
    cdef int i
    if name.at == NULL:
        for i in range(16):
            if topic_id.num == 16 and topic_id.at[i]:       # the zero id stands for none
                topic_id.num |= TOPIC_BY_ID
                note_topic(facts, topic_id)
                return
    note_topic(facts, name)


cdef void note_topic(Facts* facts, Octets name) noexcept nogil:
    cdef Octets* topics = <Octets*>facts.topics.data
    cdef size_t num = facts.topics.len // sizeof(Octets), i
    if name.at == NULL or name.num == 0:
        return
    i = num - RECENT_TOPICS if num > RECENT_TOPICS else 0
    while i < num:
        if topics[i].num == name.num and memcmp(topics[i].at, name.at, name.num & ~<size_t>TOPIC_BY_ID) == 0:
            return
        i += 1
    append_raw(&facts.topics, &name, sizeof(Octets))


cdef void count_records(Facts* facts, Octets records) noexcept nogil:
    """Walks the batches of a record set by their lengths; the last one of a fetched set may be cut off and is then
    not counted (protocol guide, record batch; KIP-74)."""
    cdef uint32_t size, magic
    facts.has_records = True
    facts.record_bytes += <int64_t>records.num
    while records.num >= 17:
        size = be32(records, 8)
        magic = u8(records, 16)
        if size > 0x7FFFFFFF or size < 14 or size > records.num - 12:
            break
        if magic == 2:
            if size < 49:
                break
            if not be16(records, 21) & 0x20:        # control batches hold no records of a producer
                facts.records += <int32_t>be32(records, 57)
        elif u8(records, 17) & 7:
            facts.records_uncounted = True
        else:
            facts.records += 1
        records = drop(records, 12 + <size_t>size)
