# cython: language_level=3
# Responses that come before their requests. orphan_responses.pyx has the rules.

from libc.stdint cimport int32_t

from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection, OrphanResponse
from kwsniff.core.kafka.frames cimport Frame

cdef bint park(Context* context, KafkaConnection* kafka, Frame* frame, int32_t correlation_id) noexcept nogil
cdef bint unpark_answer(Context* context, KafkaConnection* kafka, Call* call, OrphanResponse* orphans) noexcept nogil
cdef void give_up_orphans(Context* context, KafkaConnection* kafka, int number) noexcept nogil
