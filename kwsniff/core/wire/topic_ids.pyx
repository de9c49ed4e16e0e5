# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Topic ids to topic names, learned from every message that shows both (KIP-516).

Rules
  1. The zero id means "none" and is never learned or found.
  2. The newest name of an id wins; an id never changes its topic in Kafka, so a change means another cluster.
  3. The number of ids is bounded; beyond it nothing new is learned.
  4. An id that a row had to show without a name is marked: should the name come later, that row can be corrected.
  5. Kafka gives its metadata log a fixed id, whose name needs no learning (org.apache.kafka.common.Uuid).
  6. A name never moves: the facts of the current message point at it while more ids are learned.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from kwsniff.core.bytes.buffer cimport append_raw, release
from kwsniff.core.bytes.hash cimport mix
from kwsniff.core.bytes.span cimport Span, make_span

cdef extern from *:
    """
    static const uint8_t METADATA_LOG_ID[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    static const uint8_t METADATA_LOG[] = "__cluster_metadata";
    """
    const uint8_t[16] METADATA_LOG_ID
    const uint8_t[19] METADATA_LOG


cdef void start_topic_ids(TopicIds* ids, uint32_t limit, uint64_t seed) noexcept nogil:
    memset(ids, 0, sizeof(TopicIds))
    ids.limit = limit
    ids.seed = seed


cdef void free_topic_ids(TopicIds* ids) noexcept nogil:
    cdef NameBlock* block = ids.names
    cdef NameBlock* older
    while block != NULL:
        older = block.older
        free(block)
        block = older
    release(&ids.entries)
    free(ids.slots)
    memset(ids, 0, sizeof(TopicIds))


cdef inline uint32_t slot_of(TopicIds* ids, uint64_t* id) noexcept nogil:
    return <uint32_t>mix(mix(ids.seed, id[0]), id[1]) & (ids.num_slots - 1)


cdef bint grow(TopicIds* ids) noexcept nogil:
    cdef uint32_t num_slots = ids.num_slots * 2 if ids.num_slots else 64
    cdef uint32_t* slots = <uint32_t*>calloc(num_slots, sizeof(uint32_t))
    cdef TopicEntry* entries = <TopicEntry*>ids.entries.data
    cdef uint32_t i, slot
    if slots == NULL:
        return False
    free(ids.slots)
    ids.slots = slots
    ids.num_slots = num_slots
    ids.bytes += (num_slots // 2) * (sizeof(uint32_t) + sizeof(TopicEntry))
    for i in range(ids.num):
        slot = slot_of(ids, entries[i].id)
        while slots[slot]:
            slot = (slot + 1) & (num_slots - 1)
        slots[slot] = i + 1
    return True


cdef TopicEntry* find_entry(TopicIds* ids, uint64_t* id) noexcept nogil:
    cdef TopicEntry* entry
    cdef uint32_t slot
    if ids.num == 0:
        return NULL
    slot = slot_of(ids, id)
    while ids.slots[slot]:
        entry = &(<TopicEntry*>ids.entries.data)[ids.slots[slot] - 1]
        if entry.id[0] == id[0] and entry.id[1] == id[1]:
            return entry
        slot = (slot + 1) & (ids.num_slots - 1)
    return NULL


cdef TopicEntry* add_entry(TopicIds* ids, uint64_t* id) noexcept nogil:
    cdef TopicEntry entry
    cdef uint32_t slot
    if ids.num >= ids.limit or (ids.num * 2 >= ids.num_slots and not grow(ids)):
        return NULL
    memset(&entry, 0, sizeof(TopicEntry))
    entry.id[0] = id[0]
    entry.id[1] = id[1]
    if not append_raw(&ids.entries, &entry, sizeof(TopicEntry)):
        return NULL
    slot = slot_of(ids, id)
    while ids.slots[slot]:
        slot = (slot + 1) & (ids.num_slots - 1)
    ids.num += 1
    ids.slots[slot] = ids.num
    return &(<TopicEntry*>ids.entries.data)[ids.num - 1]


cdef bint read_id(Span topic_id, uint64_t* id) noexcept nogil:
    if topic_id.num != 16:
        return False
    memcpy(id, topic_id.at, 16)
    return id[0] != 0 or id[1] != 0


cdef bint keep_name(TopicIds* ids, TopicEntry* entry, Span name) noexcept nogil:
    """A place of its own for the entry's name; powers of two, so that changing names cannot grow it for ever."""
    cdef NameBlock* block = ids.names
    cdef uint32_t cap = 16
    while cap < name.num:
        cap *= 2
    if block == NULL or sizeof(block.bytes) - block.used < cap:
        block = <NameBlock*>malloc(sizeof(NameBlock))
        if block == NULL:
            return False
        ids.bytes += sizeof(NameBlock)
        block.older = ids.names
        block.used = 0
        ids.names = block
    entry.name = &block.bytes[block.used]
    entry.name_cap = cap
    block.used += cap
    return True


cdef void learn_topic(TopicIds* ids, Span topic_id, Span name) noexcept nogil:
    cdef uint64_t[2] id
    cdef TopicEntry* entry
    if name.num == 0 or name.num > 249 or not read_id(topic_id, id):    # Topic.MAX_NAME_LENGTH
        return
    entry = find_entry(ids, id)
    if entry == NULL:
        entry = add_entry(ids, id)
    if entry == NULL:
        return
    if entry.name_len == name.num and memcmp(entry.name, name.at, name.num) == 0:
        return
    if entry.name_cap < name.num and not keep_name(ids, entry, name):
        return
    if entry.name_len:
        ids.renamed = True
    else:
        ids.named += 1
        entry.learned_at = ids.packet[0] if ids.packet != NULL else 0
    memcpy(entry.name, name.at, name.num)
    entry.name_len = <uint32_t>name.num


cdef void await_topic(TopicIds* ids, Span topic_id) noexcept nogil:
    """Remembers that a row had to show this id."""
    cdef uint64_t[2] id
    cdef TopicEntry* entry
    if not read_id(topic_id, id):
        return
    entry = find_entry(ids, id)
    if entry == NULL:
        entry = add_entry(ids, id)
    if entry != NULL:
        entry.awaited = True


cdef Span find_topic(TopicIds* ids, Span topic_id) noexcept nogil:
    """The name of the topic, or a span without an address."""
    cdef uint64_t[2] id
    cdef TopicEntry* entry = NULL
    if read_id(topic_id, id):
        entry = find_entry(ids, id)
    if entry != NULL and entry.name_len:
        return make_span(entry.name, entry.name_len)
    if topic_id.num == 16 and memcmp(topic_id.at, METADATA_LOG_ID, 16) == 0:
        return make_span(METADATA_LOG, sizeof(METADATA_LOG) - 1)
    return make_span(NULL, 0)
