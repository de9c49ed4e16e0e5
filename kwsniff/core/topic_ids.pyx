# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Topic ids to topic names, learned from every message that shows both (KIP-516).

Rules
  1. The zero id stands for "none" and is never learned or found.
  2. The newest name of an id wins; an id never changes its topic in Kafka, so a change means another cluster.
  3. The number of ids is bounded; beyond it nothing new is learned.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from kwsniff.core.buffer cimport Buffer, append, append_raw, release
from kwsniff.core.octets cimport Octets, make_octets

cdef struct Entry:
    uint64_t id[2]
    uint32_t name_at
    uint32_t name_len


cdef void start_topic_ids(TopicIds* ids, uint32_t limit) noexcept nogil:
    memset(ids, 0, sizeof(TopicIds))
    ids.limit = limit


cdef void free_topic_ids(TopicIds* ids) noexcept nogil:
    release(&ids.names)
    release(&ids.entries)
    free(ids.slots)
    memset(ids, 0, sizeof(TopicIds))


cdef inline uint32_t slot_of(TopicIds* ids, uint64_t* id) noexcept nogil:
    # Ids are random (version 4 uuids) but a hostile capture chooses them: mix both halves.
    cdef uint64_t hash = (id[0] ^ (id[1] * <uint64_t>0x9E3779B97F4A7C15)) * <uint64_t>0xD6E8FEB86659FD93
    return <uint32_t>(hash >> 32) & (ids.num_slots - 1)


cdef bint grow(TopicIds* ids) noexcept nogil:
    cdef uint32_t num_slots = ids.num_slots * 2 if ids.num_slots else 64
    cdef uint32_t* slots = <uint32_t*>calloc(num_slots, sizeof(uint32_t))
    cdef Entry* entries = <Entry*>ids.entries.data
    cdef uint32_t i, slot
    if slots == NULL:
        return False
    free(ids.slots)
    ids.slots = slots
    ids.num_slots = num_slots
    for i in range(ids.num):
        slot = slot_of(ids, entries[i].id)
        while slots[slot]:
            slot = (slot + 1) & (num_slots - 1)
        slots[slot] = i + 1
    return True


cdef void learn_topic(TopicIds* ids, Octets topic_id, Octets name) noexcept nogil:
    cdef Entry entry
    cdef Entry* known
    cdef uint32_t slot
    if topic_id.num != 16 or name.num == 0 or name.num > 249:    # Topic.MAX_NAME_LENGTH
        return
    memcpy(entry.id, topic_id.at, 16)
    if entry.id[0] == 0 and entry.id[1] == 0:
        return
    if ids.num * 2 >= ids.num_slots and not grow(ids):
        return
    slot = slot_of(ids, entry.id)
    while ids.slots[slot]:
        known = &(<Entry*>ids.entries.data)[ids.slots[slot] - 1]
        if known.id[0] == entry.id[0] and known.id[1] == entry.id[1]:
            if known.name_len == name.num and memcmp(ids.names.data + known.name_at, name.at, name.num) == 0:
                return
            if known.name_len >= name.num:
                memcpy(ids.names.data + known.name_at, name.at, name.num)
                known.name_len = <uint32_t>name.num
            return
        slot = (slot + 1) & (ids.num_slots - 1)
    if ids.num >= ids.limit:
        return
    entry.name_at = <uint32_t>ids.names.len
    entry.name_len = <uint32_t>name.num
    if not append(&ids.names, name):
        return
    if not append_raw(&ids.entries, &entry, sizeof(Entry)):
        return
    ids.num += 1
    ids.slots[slot] = ids.num


cdef Octets find_topic(TopicIds* ids, Octets topic_id) noexcept nogil:
    """The name of the topic, or a span without an address."""
    cdef uint64_t id[2]
    cdef Entry* known
    cdef uint32_t slot
    if topic_id.num != 16 or ids.num == 0:
        return make_octets(NULL, 0)
    memcpy(id, topic_id.at, 16)
    slot = slot_of(ids, id)
    while ids.slots[slot]:
        known = &(<Entry*>ids.entries.data)[ids.slots[slot] - 1]
        if known.id[0] == id[0] and known.id[1] == id[1]:
            return make_octets(ids.names.data + known.name_at, known.name_len)
        slot = (slot + 1) & (ids.num_slots - 1)
    return make_octets(NULL, 0)
