# cython: language_level=3
# Frames of the side that asks: requests, and bare SASL tokens. requests.pyx has the rules.

from kwsniff.core.kafka.kafka_connection cimport Context, KafkaConnection
from kwsniff.core.kafka.frames cimport Frame

cdef bint take_request(Context* context, KafkaConnection* kafka, Frame* frame) noexcept nogil
