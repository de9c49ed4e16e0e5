# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""What a request says, copied out of its bytes: they go before its response comes.

Rules
  1. What one call keeps is bounded; when much waits already, only the names of those who talk are kept.
  2. What holds for the connection (client id, software, SASL mechanism, principal) is learned by the connection.
  3. Of secrets only the user name is looked at, never the password.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcmp, memset

from kwsniff.core.declared cimport (
    ANOMALY_CALL_FACTS_LIMIT, CALLER_BROKER, CALLER_CLIENT, CALLER_REPLICA, CALLER_UNKNOWN,
)
from kwsniff.core.bytes.buffer cimport Buffer, append, contents
from kwsniff.core.kafka.apis cimport DETAIL_REQUEST, ApiRange, api_at, in_span
from kwsniff.core.kafka.kafka_connection cimport (
    CONNECTION_UNDECIDED, KEPT_CLIENT_ID, KEPT_GROUP_ID, KEPT_GROUP_INSTANCE_ID, KEPT_MEMBER_ID, KEPT_MESSAGE, KEPT_PROTOCOL_TYPE,
    KEPT_RACK, KEPT_TRANSACTIONAL_ID, SPARE_TEXT, Call, Context, KafkaConnection,
)
from kwsniff.core.kafka.request_texts cimport keep_text, keep_topic
from kwsniff.core.kafka.memory_budget cimport learned_bytes
from kwsniff.core.wire.facts cimport Facts
from kwsniff.core.bytes.span cimport Span, be16, drop, keep, make_span
from kwsniff.core.kafka.request_partitions cimport keep_parts
from kwsniff.core.kafka.row_sink cimport write_anomaly


cdef void name_party(Facts* facts) noexcept nogil:
    """Whose coordinator is asked for: a group (key type 0, the only one before version 1) or a transactional id (1)."""
    cdef int64_t key_type = facts.key_type.value if facts.key_type.is_known else 0
    if facts.broken and not facts.key_type.is_known:
        return
    if key_type == 0 and facts.group.at == NULL: facts.group = facts.coordinator_key
    elif key_type == 1 and facts.transactional_id.at == NULL: facts.transactional_id = facts.coordinator_key


cdef void keep_facts(Context* context, KafkaConnection* kafka, Call* call, Span message) noexcept nogil:
    """Copies what the request says out of its bytes, which go; `message` is what follows its correlation id."""
    cdef Facts* facts = &context.facts
    cdef Span* topics = <Span*>facts.topics.data
    cdef size_t i, num = facts.topics.len // sizeof(Span)
    context.waiting_total -= <int64_t>(call.text.cap + call.parts.cap)
    context.learned_total -= learned_bytes(kafka)
    # Without room only the names of those who talk are kept.
    call.most_facts = context.limits.request_context_bytes
    if context.waiting_total > context.limits.in_flight_bytes_total and call.most_facts > SPARE_TEXT:
        call.most_facts = SPARE_TEXT
    keep_text(call, KEPT_CLIENT_ID, facts.client_id)
    if facts.coordinator_key.at != NULL:
        name_party(facts)
    keep_text(call, KEPT_GROUP_ID, facts.group)
    keep_text(call, KEPT_TRANSACTIONAL_ID, facts.transactional_id)
    for i in range(num):
        if keep_topic(call, topics[i]):
            continue
        write_anomaly(context, kafka.connection, call.id, &call.first, 0, -1, ANOMALY_CALL_FACTS_LIMIT, <int64_t>num)
        break
    keep_party(context, kafka, call, facts)
    keep_parts(context, call, facts)
    keep_detail(context, call, message)
    context.waiting_total += <int64_t>(call.text.cap + call.parts.cap)
    call.has_acks = facts.has_acks
    call.acks = facts.acks
    call.has_partitions = facts.has_partitions
    call.partitions = facts.partitions
    call.has_records = facts.has_records
    call.records_uncounted = facts.records_uncounted
    call.records = facts.records
    call.record_bytes = facts.record_bytes
    if kafka.client_id.len == 0:
        learn_text(kafka, &kafka.client_id, facts.client_id)
        kafka.chosen = CONNECTION_UNDECIDED
    learn_text(kafka, &kafka.software_name, facts.software_name)
    learn_text(kafka, &kafka.software_version, facts.software_version)
    learn_text(kafka, &kafka.sasl_mechanism, facts.sasl_mechanism)
    context.learned_total += learned_bytes(kafka)


cdef void keep_detail(Context* context, Call* call, Span message) noexcept nogil:
    """The bytes themselves, or as many of the first of them as there is room for, where rows want them."""
    cdef int64_t room = call.most_facts - <int64_t>call.text.len
    cdef ApiRange* api = api_at(&context.apis, call.slot)
    if api == NULL or not api.details & DETAIL_REQUEST:
        return
    if <int64_t>message.num > room:
        message = keep(message, <size_t>room if room > 0 else 0)
    keep_text(call, KEPT_MESSAGE, message)


cdef void keep_party(Context* context, KafkaConnection* kafka, Call* call, Facts* facts) noexcept nogil:
    """Who asks, in which role, as whom."""
    cdef ApiRange* api = api_at(&context.apis, call.slot)
    keep_text(call, KEPT_MEMBER_ID, facts.member)
    keep_text(call, KEPT_GROUP_INSTANCE_ID, facts.group_instance)
    keep_text(call, KEPT_PROTOCOL_TYPE, facts.protocol_type)
    if facts.rack.num:         # empty: none is set
        keep_text(call, KEPT_RACK, facts.rack)
    call.generation = facts.generation
    call.producer_id = facts.producer_id
    call.producer_epoch = facts.producer_epoch
    call.isolation = facts.isolation
    call.committed = facts.committed
    call.session_id = facts.session_id
    call.session_epoch = facts.session_epoch
    call.max_wait = facts.max_wait
    call.min_bytes = facts.min_bytes
    call.max_bytes = facts.max_bytes
    call.timeout = facts.timeout
    if facts.replica_id.is_known and facts.replica_id.value >= 0:
        call.caller = CALLER_REPLICA
    elif api != NULL:
        call.caller = CALLER_BROKER if api.internal else kafka.caller
        if call.caller == CALLER_UNKNOWN and not in_span(&api.shared, call.version):
            call.caller = CALLER_CLIENT
    if call.caller > kafka.caller:     # who says nothing of itself takes nothing back
        kafka.caller = call.caller
    if facts.secret.at != NULL:
        learn_principal(kafka, facts.secret)


cdef inline void learn_text(KafkaConnection* kafka, Buffer* known, Span text) noexcept nogil:
    if text.at != NULL and text.num:
        known.len = 0
        append(known, text)
        memset(kafka.texts, 0, sizeof(kafka.texts))       # rows from here on say something else


cdef void learn_principal(KafkaConnection* kafka, Span token) noexcept nogil:
    """The user name that a client's first token shows: PLAIN has it between two NULs (RFC 4616), SCRAM behind n= of
    its second comma-separated part or later (RFC 5802). The password is never looked at."""
    cdef Span mechanism = contents(&kafka.sasl_mechanism)
    cdef size_t start = 0, end
    if mechanism.num == 5 and memcmp(mechanism.at, b"PLAIN", 5) == 0:
        while start < token.num and token.at[start]:
            start += 1
        end = start + 1
        while end < token.num and token.at[end]:
            end += 1
        if start < token.num and end < token.num:
            learn_text(kafka, &kafka.principal, keep(drop(token, start + 1), end - start - 1))
    elif mechanism.num > 6 and memcmp(mechanism.at, b"SCRAM-", 6) == 0 and be16(token, 0) >> 8 in (0x6E, 0x79, 0x70):
        while start + 3 < token.num and not (token.at[start] == 0x2C and be16(token, start + 1) == 0x6E3D):
            start += 1
        end = start + 3
        while end < token.num and token.at[end] != 0x2C:
            end += 1
        if start + 3 < token.num:
            learn_saslname(kafka, keep(drop(token, start + 3), end - start - 3))


cdef void learn_saslname(KafkaConnection* kafka, Span name) noexcept nogil:
    """A comma is written =2C, an equals sign =3D (RFC 5802 5.1). Any other escape is none, and stays as it is."""
    cdef Span rest = name
    cdef uint32_t code
    if name.num == 0:
        return
    kafka.principal.len = 0
    memset(kafka.texts, 0, sizeof(kafka.texts))       # as in learn_text
    while rest.num:
        code = be16(rest, 1) if rest.at[0] == 0x3D and rest.num >= 3 else 0
        if code == 0x3243:
            append(&kafka.principal, make_span(b",", 1))
        elif code == 0x3344:
            append(&kafka.principal, make_span(b"=", 1))
        else:
            append(&kafka.principal, keep(rest, 1))
        rest = drop(rest, 3 if code in (0x3243, 0x3344) else 1)
