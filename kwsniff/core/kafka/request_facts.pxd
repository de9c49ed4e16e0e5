# cython: language_level=3
# What a request says, copied out of its bytes: they go before its response comes. request_facts.pyx has the
# rules.

from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection
from kwsniff.core.bytes.span cimport Span

cdef void keep_facts(Context* context, KafkaConnection* kafka, Call* call, Span message) noexcept nogil
cdef void learn_principal(KafkaConnection* kafka, Span token) noexcept nogil
