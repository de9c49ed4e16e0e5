# cython: language_level=3
# Latency of a call by part (network, queue wait, broker, ...): never negative, adding up to the total.
# timing.pyx has the rules.

from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection
from kwsniff.core.wire.facts cimport Facts
from kwsniff.core.kafka.frames cimport Frame

cdef void write_latency(Context* context, KafkaConnection* kafka, Call* call, Frame* response, Facts* facts) noexcept nogil
