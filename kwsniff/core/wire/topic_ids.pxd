# cython: language_level=3
# Topic ids to topic names, learned from every message that shows both (KIP-516). topic_ids.pyx has the rules.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.bytes.span cimport Span

cdef struct TopicEntry:
    uint64_t id[2]
    uint8_t* name           # in some NameBlock
    uint32_t name_len       # 0: the name is not known yet
    uint32_t name_cap
    int64_t learned_at      # packet that named it
    bint awaited            # some row shows the id because the name was not known then

cdef struct NameBlock:
    NameBlock* older
    size_t used
    uint8_t bytes[16384]

cdef struct TopicIds:
    NameBlock* names        # the newest block
    Buffer entries          # TopicEntry
    uint32_t* slots         # entry number + 1, or 0
    uint32_t num_slots
    size_t bytes            # of names and slots
    uint32_t num
    uint32_t limit
    uint64_t seed           # see hash.pxd
    const int64_t* packet   # the current one
    uint32_t named          # how many have one
    bint renamed            # an id has had two names

cdef void start_topic_ids(TopicIds* ids, uint32_t limit, uint64_t seed) noexcept nogil
cdef void free_topic_ids(TopicIds* ids) noexcept nogil
cdef void learn_topic(TopicIds* ids, Span topic_id, Span name) noexcept nogil
cdef void await_topic(TopicIds* ids, Span topic_id) noexcept nogil
cdef Span find_topic(TopicIds* ids, Span topic_id) noexcept nogil
