# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Fetch sessions: the partitions that an incremental fetch asks for (KIP-227).

Rules
  1. A request of epoch 0 names every partition; the session that its answer opens begins with them. One of a later
     epoch names what was added or changed, and what is forgotten; all others continue.
  2. A session whose beginning or some later request was not captured is not known, and then it is unknown how many
     partitions a fetch asks for.
  3. A session beyond `session_partitions`, or for which there is no memory, is given up, not cut short.
  4. A request costs what it names, whatever the size of the session: topics and partitions are found by hash.

    epoch 0   [a b c]        -> session 77
    epoch 1   [b] forget [c] -> asks for a, b
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from kwsniff.core.bytes.buffer cimport append_raw, release
from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection, Session
from kwsniff.core.kafka.fetch_session_partitions cimport (
    NO_TOPIC, Topic, add_part, drop_part, find_session_topic, forget_idle, id_of, num_parts, num_topics, topic_at,
    topic_name,
)
from kwsniff.core.wire.facts cimport TOPIC_BY_ID, Facts, Forgotten, PartitionHit
from kwsniff.core.bytes.span cimport Span, be32, make_span
from kwsniff.core.wire.topic_ids cimport find_topic

cdef enum:
    MAX_TOPICS = 256            # of a session, named in one row
    FEW_TOPICS = 64             # without partitions, that may always stay


cdef int64_t session_bytes(KafkaConnection* kafka) noexcept nogil:
    cdef Session* session = &kafka.session
    return <int64_t>(session.parts.cap + session.topics.cap + session.text.cap
                     + (session.part_slots.num + session.topic_slots.num) * sizeof(uint32_t))


cdef void end_session(KafkaConnection* kafka) noexcept nogil:
    release(&kafka.session.parts)
    release(&kafka.session.topics)
    release(&kafka.session.text)
    free(kafka.session.part_slots.at)
    free(kafka.session.topic_slots.at)
    memset(&kafka.session, 0, sizeof(kafka.session))


cdef void follow_asked(Context* context, KafkaConnection* kafka, Facts* facts) noexcept nogil:
    """Takes up what a request says of its session, and puts into `facts` what it really asks for."""
    if not facts.session_id.is_known or not facts.session_epoch.is_known:
        return
    context.waiting_total -= session_bytes(kafka)
    if facts.session_epoch.value <= 0:
        begin(context, kafka, facts)
    elif not kafka.session.is_known or kafka.session.id != facts.session_id.value \
            or not follows(kafka.session.epoch, facts.session_epoch.value) or not change(context, kafka, facts):
        end_session(kafka)
        facts.partitions = -1               # more than are listed, and it is unknown how many
    else:
        kafka.session.epoch = facts.session_epoch.value
        facts.partitions = <int64_t>num_parts(&kafka.session)
        facts.has_partitions = True
        list_topics(context, kafka, facts)
    context.waiting_total += session_bytes(kafka)


cdef inline bint follows(int64_t epoch, int64_t following) noexcept nogil:
    """Whether no request of the session is missing between the two: epochs count up, from the largest to 1
    (FetchMetadata.nextEpoch)."""
    return following == epoch + 1 or (epoch == 0x7FFFFFFF and following == 1)


cdef void begin(Context* context, KafkaConnection* kafka, Facts* facts) noexcept nogil:
    end_session(kafka)
    if facts.session_epoch.value < 0 or context.waiting_total > context.limits.in_flight_bytes_total:
        return
    if add_parts(context, kafka, facts):
        kafka.session.is_pending = True
    else:
        end_session(kafka)


cdef bint add_parts(Context* context, KafkaConnection* kafka, Facts* facts) noexcept nogil:
    """Adds what the request names; false when that is too much to follow, or more than was listed."""
    cdef PartitionHit* hits = <PartitionHit*>facts.partition_hits.data
    cdef size_t i, num = facts.partition_hits.len // sizeof(PartitionHit)
    cdef uint32_t topic = NO_TOPIC
    if facts.partitions > <int64_t>num:
        return False
    for i in range(num):
        # Partitions of one topic are neighbours and point at the same name or id.
        if i and (hits[i].topic.at != hits[i - 1].topic.at or hits[i].topic_id.at != hits[i - 1].topic_id.at):
            topic = NO_TOPIC
        if not add_part(&kafka.session, context.topic_ids.seed, context.limits.session_partitions, &hits[i], &topic):
            return False
    return True


cdef bint change(Context* context, KafkaConnection* kafka, Facts* facts) noexcept nogil:
    """Adds what the request names and takes away what it forgets; false when that is too much to follow."""
    cdef Session* session = &kafka.session
    cdef Forgotten* forgotten = <Forgotten*>facts.forgotten.data
    cdef size_t i, j
    cdef uint32_t topic
    if (context.waiting_total > context.limits.in_flight_bytes_total or not add_parts(context, kafka, facts)
            or facts.forgotten.len >= facts.most_hits * sizeof(Forgotten)):
        return False
    for i in range(facts.forgotten.len // sizeof(Forgotten)):
        topic = find_session_topic(session, context.topic_ids.seed, forgotten[i].topic, id_of(forgotten[i].topic_id))
        if topic == NO_TOPIC:
            continue
        for j in range(forgotten[i].partitions.num // 4):
            drop_part(session, context.topic_ids.seed, topic, <int32_t>be32(forgotten[i].partitions, 4 * j))
    if session.idle_topics > FEW_TOPICS and 2 * session.idle_topics > num_topics(session):
        return forget_idle(session, context.topic_ids.seed)
    return True


cdef void list_topics(Context* context, KafkaConnection* kafka, Facts* facts) noexcept nogil:
    """The topics of the session in place of those that the request lists."""
    cdef Session* session = &kafka.session
    cdef Topic* topic
    cdef Span name
    cdef uint32_t i, num = 0
    facts.topics.len = 0
    for i in range(num_topics(session)):
        topic = topic_at(session, i)
        if topic.parts == 0:
            continue
        name = topic_name(session, topic)
        if topic.has_id:
            name = find_topic(&context.topic_ids, make_span(topic.id, 16))
            if name.at == NULL:
                name = make_span(topic.id, 16 | TOPIC_BY_ID)
        if name.num and append_raw(&facts.topics, &name, sizeof(Span)):
            num += 1
            if num == MAX_TOPICS:
                return


cdef void follow_answered(KafkaConnection* kafka, Call* call, Facts* facts) noexcept nogil:
    """The answer to a request of epoch 0 names the session, or 0 when the broker keeps none."""
    if not kafka.session.is_pending or not call.session_epoch.is_known or call.session_epoch.value != 0:
        return
    kafka.session.is_pending = False
    if facts.session_id.is_known and facts.session_id.value != 0 and not facts.broken:
        kafka.session.id = facts.session_id.value
        kafka.session.is_known = True
    else:
        end_session(kafka)
