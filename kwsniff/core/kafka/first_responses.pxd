# cython: language_level=3
# The first bytes of the side that answers, while they do not show yet what they are. first_responses.pyx has
# the rules.

from libc.stdint cimport int64_t, uint8_t

from kwsniff.core.kafka.kafka_connection cimport Context, KafkaConnection
from kwsniff.core.kafka.frames cimport Framing
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.tcp.arrivals cimport Arrival

cdef enum:
    ANSWER_BYTES = 32           # enough to tell what answers

cdef bint wait_for_greeting(Context* context, Framing* framing, Arrival* arrival, int64_t offset,
                            Span data) noexcept nogil
cdef int judge_answers(Context* context, KafkaConnection* kafka, Span data) noexcept nogil
cdef Span join_kept(Framing* framing, Span data, uint8_t* room) noexcept nogil
