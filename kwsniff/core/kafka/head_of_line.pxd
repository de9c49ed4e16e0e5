# cython: language_level=3
# What the broker did for the calls before, as far as those in line behind them may have waited for it.
#
# Rule: `front` is ordered, the longest first, which is also the earliest: none later took as long.

from libc.stdint cimport int64_t

from kwsniff.core.kafka.kafka_connection cimport MAX_FRONT, KafkaConnection, Served


cdef inline void note_served(KafkaConnection* kafka, int64_t id, int64_t begun, int64_t ended, int wait) noexcept nogil:
    """Calls behind this one may have waited for it. Whatever was served before it and no longer is outdone: to
    those that come later it leaves no more to wait for."""
    cdef Served* served
    while kafka.num_front and (
            kafka.front[kafka.num_front - 1].ended - kafka.front[kafka.num_front - 1].begun <= ended - begun):
        kafka.num_front -= 1
    if kafka.num_front == MAX_FRONT:
        kafka.num_front -= 1
    served = &kafka.front[kafka.num_front]
    kafka.num_front += 1
    kafka.served_id = id
    served.id = id
    served.begun = begun
    served.ended = ended
    served.wait = wait
