# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The topics and partitions of a fetch session, found by hash.

Rules
  1. Adding or dropping a partition costs the same whatever the size of the session.
  2. Topics that have lost all partitions stay until they are more than the others.

    topics   | Topic | Topic | ...        text   names
    parts    | Part  | Part  | ...        the last one takes the place of one that goes
    slots    numbers + 1, or 0; a chain ends with 0
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from kwsniff.core.bytes.buffer cimport append, append_raw, release
from kwsniff.core.bytes.hash cimport hash_span, mix
from kwsniff.core.kafka.kafka_connection cimport Session, Slots
from kwsniff.core.wire.facts cimport PartitionHit
from kwsniff.core.bytes.span cimport Span, make_span


# -- what is found by hash --------------------------------------------------------------------------------------

cdef inline uint64_t hash_topic(uint64_t seed, Span name, const uint8_t* id) noexcept nogil:
    """A topic with an id is its id, whatever its name."""
    return hash_span(make_span(id, 16) if id != NULL else name, seed)


cdef inline uint64_t hash_part(uint64_t seed, uint32_t topic, int32_t partition) noexcept nogil:
    return mix(seed, <uint64_t>topic << 32 | <uint32_t>partition)


cdef bint grow_slots(Slots* slots, uint32_t num) noexcept nogil:
    """Empty slots for `num` entries and more; false when memory is refused. They have to be filled again."""
    cdef uint32_t cap = 64
    cdef uint32_t* at
    while cap // 2 < num:
        cap *= 2
    at = <uint32_t*>calloc(cap, sizeof(uint32_t))
    if at == NULL:
        return False
    free(slots.at)
    slots.at = at
    slots.num = cap
    return True


cdef inline void put_slot(Slots* slots, uint64_t hash, uint32_t number) noexcept nogil:
    cdef uint32_t place = <uint32_t>hash & (slots.num - 1)
    while slots.at[place]:
        place = (place + 1) & (slots.num - 1)
    slots.at[place] = number + 1


cdef bint room_for_topic(Session* session, uint64_t seed) noexcept nogil:
    cdef uint32_t i, num = num_topics(session)
    cdef Topic* topic
    if 2 * (num + 1) <= session.topic_slots.num:
        return True
    if not grow_slots(&session.topic_slots, num + 1):
        return False
    for i in range(num):
        topic = topic_at(session, i)
        put_slot(&session.topic_slots, hash_topic(seed, topic_name(session, topic), topic.id if topic.has_id else NULL), i)
    return True


cdef bint room_for_part(Session* session, uint64_t seed) noexcept nogil:
    cdef uint32_t i, num = num_parts(session)
    if 2 * (num + 1) <= session.part_slots.num:
        return True
    if not grow_slots(&session.part_slots, num + 1):
        return False
    for i in range(num):
        put_slot(&session.part_slots, hash_part(seed, part_at(session, i).topic, part_at(session, i).partition), i)
    return True


cdef uint32_t find_session_topic(Session* session, uint64_t seed, Span name, const uint8_t* id) noexcept nogil:
    cdef uint32_t place
    cdef Topic* topic
    if session.topic_slots.num == 0:
        return NO_TOPIC
    place = <uint32_t>hash_topic(seed, name, id) & (session.topic_slots.num - 1)
    while session.topic_slots.at[place]:
        topic = topic_at(session, session.topic_slots.at[place] - 1)
        if id != NULL:
            if topic.has_id and memcmp(topic.id, id, 16) == 0:
                return session.topic_slots.at[place] - 1
        elif not topic.has_id and topic.name_len == name.num and (
                name.num == 0 or memcmp(topic_name(session, topic).at, name.at, name.num) == 0):
            return session.topic_slots.at[place] - 1
        place = (place + 1) & (session.topic_slots.num - 1)
    return NO_TOPIC


cdef uint32_t slot_of_part(Session* session, uint64_t seed, uint32_t topic, int32_t partition) noexcept nogil:
    """The slot that has it, or the empty one at the end of its chain; there are slots."""
    cdef uint32_t place = <uint32_t>hash_part(seed, topic, partition) & (session.part_slots.num - 1)
    cdef Part* part
    while session.part_slots.at[place]:
        part = part_at(session, session.part_slots.at[place] - 1)
        if part.topic == topic and part.partition == partition:
            break
        place = (place + 1) & (session.part_slots.num - 1)
    return place


cdef void empty_slot(Session* session, uint64_t seed, uint32_t place) noexcept nogil:
    """Empties a slot and moves those behind it up that were put there because of it."""
    cdef Slots* slots = &session.part_slots
    cdef uint32_t following = place, wanted, mask = slots.num - 1
    cdef Part* part
    while True:
        following = (following + 1) & mask
        if slots.at[following] == 0:
            break
        part = part_at(session, slots.at[following] - 1)
        wanted = <uint32_t>hash_part(seed, part.topic, part.partition) & mask
        if (following - wanted) & mask >= (following - place) & mask:
            slots.at[place] = slots.at[following]
            place = following
    slots.at[place] = 0


# -- what the session asks for ----------------------------------------------------------------------------------

cdef bint add_part(Session* session, uint64_t seed, int64_t most, PartitionHit* hit, uint32_t* topic) noexcept nogil:
    """`topic`: the number of the hit's topic, or NO_TOPIC; it is known afterwards. False: there are `most` already, or
    memory is refused."""
    cdef Part part
    cdef uint32_t place
    if topic[0] == NO_TOPIC:
        topic[0] = find_session_topic(session, seed, hit.topic, id_of(hit.topic_id))
    if topic[0] == NO_TOPIC:
        topic[0] = num_topics(session)
        if not add_topic(session, seed, hit):
            return False
    if not room_for_part(session, seed):
        return False
    place = slot_of_part(session, seed, topic[0], hit.partition)
    if session.part_slots.at[place]:
        return True
    if <int64_t>num_parts(session) >= most:
        return False
    part.topic = topic[0]
    part.partition = hit.partition
    if not append_raw(&session.parts, &part, sizeof(Part)):
        return False
    session.part_slots.at[place] = num_parts(session)
    if topic_at(session, topic[0]).parts == 0:
        session.idle_topics -= 1
    topic_at(session, topic[0]).parts += 1
    return True


cdef bint add_topic(Session* session, uint64_t seed, PartitionHit* hit) noexcept nogil:
    cdef Topic topic
    cdef uint32_t number = num_topics(session)
    memset(&topic, 0, sizeof(Topic))
    if not room_for_topic(session, seed):
        return False
    topic.has_id = hit.topic_id.num == 16
    if topic.has_id:
        memcpy(topic.id, hit.topic_id.at, 16)
    topic.name_at = <uint32_t>session.text.len
    topic.name_len = <uint32_t>hit.topic.num
    if not append(&session.text, hit.topic) or not append_raw(&session.topics, &topic, sizeof(Topic)):
        return False
    put_slot(&session.topic_slots, hash_topic(seed, hit.topic, id_of(hit.topic_id)), number)
    session.idle_topics += 1
    return True


cdef void drop_part(Session* session, uint64_t seed, uint32_t topic, int32_t partition) noexcept nogil:
    cdef uint32_t number, last = num_parts(session) - 1, place
    if session.part_slots.num == 0:
        return
    place = slot_of_part(session, seed, topic, partition)
    if session.part_slots.at[place] == 0:
        return
    number = session.part_slots.at[place] - 1
    empty_slot(session, seed, place)
    if number != last:
        place = slot_of_part(session, seed, part_at(session, last).topic, part_at(session, last).partition)
        session.part_slots.at[place] = number + 1
        part_at(session, number)[0] = part_at(session, last)[0]
    session.parts.len -= sizeof(Part)
    topic_at(session, topic).parts -= 1
    if topic_at(session, topic).parts == 0:
        session.idle_topics += 1


cdef bint forget_idle(Session* session, uint64_t seed) noexcept nogil:
    """Leaves out the topics that have no partitions any more; false when memory is refused."""
    cdef Session kept
    cdef uint32_t i, num = num_topics(session)
    cdef Topic* topic
    cdef Topic moved
    memset(&kept, 0, sizeof(Session))
    for i in range(num):
        topic = topic_at(session, i)
        if topic.parts == 0:
            continue
        moved = topic[0]
        moved.name_at = <uint32_t>kept.text.len
        if not append(&kept.text, topic_name(session, topic)) or not append_raw(&kept.topics, &moved, sizeof(Topic)):
            release(&kept.text)
            release(&kept.topics)
            return False
        topic.name_at = num_topics(&kept) - 1       # where its partitions find it
    for i in range(num_parts(session)):
        part_at(session, i).topic = topic_at(session, part_at(session, i).topic).name_at
    release(&session.text)
    release(&session.topics)
    session.text = kept.text
    session.topics = kept.topics
    session.topic_slots.num = 0
    session.part_slots.num = 0
    session.idle_topics = 0
    return index_session(session, seed)


cdef bint index_session(Session* session, uint64_t seed) noexcept nogil:
    """Fills the slots; false when memory is refused."""
    free(session.topic_slots.at)
    free(session.part_slots.at)
    memset(&session.topic_slots, 0, sizeof(Slots))
    memset(&session.part_slots, 0, sizeof(Slots))
    return room_for_topic(session, seed) and room_for_part(session, seed)
