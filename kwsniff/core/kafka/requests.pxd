# cython: language_level=3
from kwsniff.core.kafka.kafka_connection cimport Context, KafkaConnection
from kwsniff.core.kafka.frames cimport Frame

cdef bint take_request(Context* context, KafkaConnection* kafka, Frame* frame) noexcept nogil
