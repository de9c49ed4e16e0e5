# cython: language_level=3
# The topics and partitions of a fetch session, found by hash. fetch_session_partitions.pyx has the rules.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kwsniff.core.kafka.kafka_connection cimport Session
from kwsniff.core.bytes.buffer cimport contents
from kwsniff.core.bytes.span cimport Span, drop, keep
from kwsniff.core.wire.facts cimport PartitionHit

cdef enum:
    NO_TOPIC = 0xFFFFFFFF

cdef struct Topic:
    uint8_t id[16]
    bint has_id
    uint32_t name_at
    uint32_t name_len
    uint32_t parts              # how many are asked for now

cdef struct Part:
    uint32_t topic
    int32_t partition

cdef bint add_part(Session* session, uint64_t seed, int64_t most, PartitionHit* hit, uint32_t* topic) noexcept nogil
cdef void drop_part(Session* session, uint64_t seed, uint32_t topic, int32_t partition) noexcept nogil
cdef uint32_t find_session_topic(Session* session, uint64_t seed, Span name, const uint8_t* id) noexcept nogil
cdef bint forget_idle(Session* session, uint64_t seed) noexcept nogil
cdef bint index_session(Session* session, uint64_t seed) noexcept nogil


cdef inline uint32_t num_parts(Session* session) noexcept nogil:
    return <uint32_t>(session.parts.len // sizeof(Part))


cdef inline uint32_t num_topics(Session* session) noexcept nogil:
    return <uint32_t>(session.topics.len // sizeof(Topic))


cdef inline Topic* topic_at(Session* session, uint32_t number) noexcept nogil:
    return &(<Topic*>session.topics.data)[number]


cdef inline Part* part_at(Session* session, uint32_t number) noexcept nogil:
    return &(<Part*>session.parts.data)[number]


cdef inline Span topic_name(Session* session, Topic* topic) noexcept nogil:
    return keep(drop(contents(&session.text), topic.name_at), topic.name_len)


cdef inline const uint8_t* id_of(Span topic_id) noexcept nogil:
    return topic_id.at if topic_id.num == 16 else NULL
