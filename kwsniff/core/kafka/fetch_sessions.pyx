# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Which partitions an incremental fetch really asks for (KIP-227).

Rules
  1. A request of epoch 0 names every partition; the session that its answer opens begins with them. One of a later
     epoch names what was added or changed, and what is forgotten; all others go on.
  2. A session whose beginning or some later request was not captured is not known, and then nobody knows how many
     partitions a fetch asks for.
  3. A session beyond `session_partitions` is given up, not cut short.

    epoch 0   [a b c]        -> session 77
    epoch 1   [b] forget [c] -> asks for a, b
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy, memset

from kwsniff.core.octets.buffer cimport append, append_raw, contents, release
from kwsniff.core.kafka.dialog cimport Call, Context, Dialog
from kwsniff.core.wire.facts cimport TOPIC_BY_ID, Facts, Forgotten, PartitionHit
from kwsniff.core.octets.octets cimport Octets, be32, drop, keep, make_octets
from kwsniff.core.wire.topic_ids cimport find_topic

cdef enum:
    MAX_TOPICS = 256            # of a session, named in one row

cdef struct Part:
    uint8_t topic_id[16]
    bint has_topic_id
    uint32_t name_at
    uint32_t name_len
    int32_t partition


cdef int64_t session_bytes(Dialog* dialog) noexcept nogil:
    return <int64_t>(dialog.session.parts.cap + dialog.session.text.cap)


cdef void end_session(Dialog* dialog) noexcept nogil:
    release(&dialog.session.parts)
    release(&dialog.session.text)
    memset(&dialog.session, 0, sizeof(dialog.session))


cdef inline Octets part_name(Dialog* dialog, Part* part) noexcept nogil:
    return keep(drop(contents(&dialog.session.text), part.name_at), part.name_len)


cdef bint is_about(Dialog* dialog, Part* part, Octets topic, Octets topic_id, int32_t partition) noexcept nogil:
    cdef Octets name
    if part.partition != partition:
        return False
    if part.has_topic_id:
        return topic_id.num == 16 and memcmp(part.topic_id, topic_id.at, 16) == 0
    name = part_name(dialog, part)
    return topic.at != NULL and name.num == topic.num and (name.num == 0 or memcmp(name.at, topic.at, name.num) == 0)


cdef Part* find_part(Dialog* dialog, Octets topic, Octets topic_id, int32_t partition) noexcept nogil:
    cdef Part* parts = <Part*>dialog.session.parts.data
    cdef size_t i
    for i in range(dialog.session.parts.len // sizeof(Part)):
        if is_about(dialog, &parts[i], topic, topic_id, partition):
            return &parts[i]
    return NULL


cdef bint add_part(Context* context, Dialog* dialog, PartitionHit* hit) noexcept nogil:
    cdef Part part
    cdef Part* last
    if <int64_t>(dialog.session.parts.len // sizeof(Part)) >= context.limits.session_partitions:
        return False
    memset(&part, 0, sizeof(Part))
    part.partition = hit.partition
    part.has_topic_id = hit.topic_id.num == 16
    if part.has_topic_id:
        memcpy(part.topic_id, hit.topic_id.at, 16)
    if hit.topic.num:
        part.name_at = <uint32_t>dialog.session.text.len
        part.name_len = <uint32_t>hit.topic.num
        if dialog.session.parts.len:        # partitions of a topic stand together and share its name
            last = &(<Part*>dialog.session.parts.data)[dialog.session.parts.len // sizeof(Part) - 1]
            if last.name_len == part.name_len and memcmp(part_name(dialog, last).at, hit.topic.at, hit.topic.num) == 0:
                part.name_at = last.name_at
        if part.name_at == dialog.session.text.len and not append(&dialog.session.text, hit.topic):
            return False
    return append_raw(&dialog.session.parts, &part, sizeof(Part))


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
        facts.partitions = -1               # more than are listed, and nobody knows how many
    else:
        dialog.session.epoch = facts.session_epoch.value
        facts.partitions = <int64_t>(dialog.session.parts.len // sizeof(Part))
        facts.has_partitions = True
        list_topics(context, dialog, facts)
    context.waiting_total += session_bytes(dialog)


cdef inline bint follows(int64_t epoch, int64_t following) noexcept nogil:
    """Whether no request of the session is missing between the two: epochs count up, from the largest to 1
    (FetchMetadata.nextEpoch)."""
    return following == epoch + 1 or (epoch == 0x7FFFFFFF and following == 1)


cdef void begin(Context* context, Dialog* dialog, Facts* facts) noexcept nogil:
    cdef PartitionHit* hits = <PartitionHit*>facts.partition_hits.data
    cdef size_t i, num = facts.partition_hits.len // sizeof(PartitionHit)
    end_session(dialog)
    if facts.session_epoch.value < 0 or context.waiting_total > context.limits.waiting_bytes_total:
        return
    for i in range(num):
        if not add_part(context, dialog, &hits[i]):
            end_session(dialog)
            return
    dialog.session.is_pending = True


cdef bint change(Context* context, Dialog* dialog, Facts* facts) noexcept nogil:
    """Adds what the request names and takes away what it forgets; false when that is too much to follow."""
    cdef PartitionHit* hits = <PartitionHit*>facts.partition_hits.data
    cdef Forgotten* forgotten = <Forgotten*>facts.forgotten.data
    cdef size_t i, j, num = facts.partition_hits.len // sizeof(PartitionHit)
    cdef Part* part
    cdef Part* last
    if <int64_t>num > context.limits.session_partitions:
        return False
    for i in range(num):
        if find_part(dialog, hits[i].topic, hits[i].topic_id, hits[i].partition) == NULL \
                and not add_part(context, dialog, &hits[i]):
            return False
    num = 0
    for i in range(facts.forgotten.len // sizeof(Forgotten)):
        num += forgotten[i].partitions.num // 4
        if <int64_t>num > context.limits.session_partitions:
            return False
        for j in range(forgotten[i].partitions.num // 4):
            part = find_part(dialog, forgotten[i].topic, forgotten[i].topic_id,
                             <int32_t>be32(forgotten[i].partitions, 4 * j))
            if part != NULL:
                dialog.session.parts.len -= sizeof(Part)
                last = &(<Part*>dialog.session.parts.data)[dialog.session.parts.len // sizeof(Part)]
                part[0] = last[0]
    return True


cdef void list_topics(Context* context, Dialog* dialog, Facts* facts) noexcept nogil:
    """The topics of the session in place of those that the request lists."""
    cdef Part* parts = <Part*>dialog.session.parts.data
    cdef Octets* topics
    cdef Octets name
    cdef size_t i, j, num = 0
    facts.topics.len = 0
    for i in range(dialog.session.parts.len // sizeof(Part)):
        name = part_name(dialog, &parts[i])
        if parts[i].has_topic_id:
            name = find_topic(&context.topic_ids, make_octets(parts[i].topic_id, 16))
            if name.at == NULL:
                name = make_octets(parts[i].topic_id, 16 | TOPIC_BY_ID)
        topics = <Octets*>facts.topics.data
        for j in range(num):
            if topics[j].num == name.num and memcmp(topics[j].at, name.at, name.num & ~<size_t>TOPIC_BY_ID) == 0:
                break
        else:
            if num < MAX_TOPICS and name.num and append_raw(&facts.topics, &name, sizeof(Octets)):
                num += 1


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
