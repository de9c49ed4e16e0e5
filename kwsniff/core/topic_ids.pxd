# cython: language_level=3
from libc.stdint cimport uint32_t, uint64_t

from kwsniff.core.buffer cimport Buffer
from kwsniff.core.octets cimport Octets

cdef struct TopicIds:
    Buffer names            # every name, one behind the other
    Buffer entries          # Entry
    uint32_t* slots         # entry number + 1, or 0
    uint32_t num_slots
    uint32_t num
    uint32_t limit

cdef void start_topic_ids(TopicIds* ids, uint32_t limit) noexcept nogil
cdef void free_topic_ids(TopicIds* ids) noexcept nogil
cdef void learn_topic(TopicIds* ids, Octets topic_id, Octets name) noexcept nogil
cdef Octets find_topic(TopicIds* ids, Octets topic_id) noexcept nogil
