# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Which partitions an incremental fetch really asks for (KIP-227).

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

from kwsniff.core.octets.buffer cimport append_raw, release
from kwsniff.core.kafka.dialog cimport Call, Context, Dialog, Session
from kwsniff.core.kafka.session_parts cimport (
    NO_TOPIC, Topic, add_part, drop_part, find_session_topic, forget_idle, id_of, num_parts, num_topics, topic_at,
    topic_name,
)
from kwsniff.core.wire.facts cimport TOPIC_BY_ID, Facts, Forgotten, PartitionHit
from kwsniff.core.octets.octets cimport Octets, be32, make_octets
from kwsniff.core.wire.topic_ids cimport find_topic

cdef enum:
    MAX_TOPICS = 256            # of a session, named in one row
    FEW_TOPICS = 64             # without partitions, that may always stay


cdef int64_t session_bytes(Dialog* dialog) noexcept nogil:
    cdef Session* session = &dialog.session
    return <int64_t>(session.parts.cap + session.topics.cap + session.text.cap
                     + (session.part_slots.num + session.topic_slots.num) * sizeof(uint32_t))


cdef void end_session(Dialog* dialog) noexcept nogil:
    release(&dialog.session.parts)
    release(&dialog.session.topics)
    release(&dialog.session.text)
    free(dialog.session.part_slots.at)
    free(dialog.session.topic_slots.at)
    memset(&dialog.session, 0, sizeof(dialog.session))


cdef void follow_asked(Context* context, Dialog* dialog, Facts* facts) noexcept nogil:
    """Takes up what a request says of its session, and puts into `facts` what it really asks for."""
    if not facts.session_id.is_known or not facts.session_epoch.is_known:
        return
    context.waiting_total -= session_bytes(dialog)
    if facts.session_epoch.value <= 0:
        begin(context, dialog, facts)
    elif not dialog.session.is_known or dialog.session.id != facts.session_id.value \
            or not follows(dialog.session.epoch, facts.session_epoch.value) or not change(context, dialog, facts):
        end_session(dialog)
        facts.partitions = -1               # more than are listed, and it is unknown how many
    else:
        dialog.session.epoch = facts.session_epoch.value
        facts.partitions = <int64_t>num_parts(&dialog.session)
        facts.has_partitions = True
        list_topics(context, dialog, facts)
    context.waiting_total += session_bytes(dialog)


cdef inline bint follows(int64_t epoch, int64_t following) noexcept nogil:
    """Whether no request of the session is missing between the two: epochs count up, from the largest to 1
    (FetchMetadata.nextEpoch)."""
    return following == epoch + 1 or (epoch == 0x7FFFFFFF and following == 1)


cdef void begin(Context* context, Dialog* dialog, Facts* facts) noexcept nogil:
    end_session(dialog)
    if facts.session_epoch.value < 0 or context.waiting_total > context.limits.waiting_bytes_total:
        return
    if add_parts(context, dialog, facts):
        dialog.session.is_pending = True
    else:
        end_session(dialog)


cdef bint add_parts(Context* context, Dialog* dialog, Facts* facts) noexcept nogil:
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
        if not add_part(&dialog.session, context.topic_ids.seed, context.limits.session_partitions, &hits[i], &topic):
            return False
    return True


cdef bint change(Context* context, Dialog* dialog, Facts* facts) noexcept nogil:
    """Adds what the request names and takes away what it forgets; false when that is too much to follow."""
    cdef Session* session = &dialog.session
    cdef Forgotten* forgotten = <Forgotten*>facts.forgotten.data
    cdef size_t i, j
    cdef uint32_t topic
    if (context.waiting_total > context.limits.waiting_bytes_total or not add_parts(context, dialog, facts)
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


cdef void list_topics(Context* context, Dialog* dialog, Facts* facts) noexcept nogil:
    """The topics of the session in place of those that the request lists."""
    cdef Session* session = &dialog.session
    cdef Topic* topic
    cdef Octets name
    cdef uint32_t i, num = 0
    facts.topics.len = 0
    for i in range(num_topics(session)):
        topic = topic_at(session, i)
        if topic.parts == 0:
            continue
        name = topic_name(session, topic)
        if topic.has_id:
            name = find_topic(&context.topic_ids, make_octets(topic.id, 16))
            if name.at == NULL:
                name = make_octets(topic.id, 16 | TOPIC_BY_ID)
        if name.num and append_raw(&facts.topics, &name, sizeof(Octets)):
            num += 1
            if num == MAX_TOPICS:
                return


cdef void follow_answered(Dialog* dialog, Call* call, Facts* facts) noexcept nogil:
    """The answer to a request of epoch 0 names the session, or 0 when the broker keeps none."""
    if not dialog.session.is_pending or not call.session_epoch.is_known or call.session_epoch.value != 0:
        return
    dialog.session.is_pending = False
    if facts.session_id.is_known and facts.session_id.value != 0 and not facts.broken:
        dialog.session.id = facts.session_id.value
        dialog.session.is_known = True
    else:
        end_session(dialog)
