# cython: language_level=3
# Matches responses to requests by correlation id and order. responses.pyx has the rules.

from libc.stdint cimport int32_t

from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.bytes.span cimport Span

cdef bint take_response(Context* context, KafkaConnection* kafka, Frame* frame) noexcept nogil
cdef bint answer_waiting(Context* context, KafkaConnection* kafka, Frame* frame, int32_t correlation_id) noexcept nogil
cdef void answer_from_orphans(Context* context, KafkaConnection* kafka, Call* call) noexcept nogil
cdef bint decodes(Context* context, Call* call, Span frame, bint partly) noexcept nogil
