# cython: language_level=3
# How a connection begins: who asks, whether it is Kafka, where its first frame is. protocol_detection.pyx has
# the rules.

from libc.stdint cimport int64_t

from kwsniff.core.kafka.kafka_connection cimport Context, KafkaConnection
from kwsniff.core.kafka.frames cimport FRAMING_LOST, feed_framing
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tls.hello cimport HELLO_COMES
from kwsniff.core.tls.record_layer cimport count_records

cdef KafkaConnection* open_kafka(Context* context, Connection* connection) noexcept nogil
cdef void take_first_bytes(Context* context, KafkaConnection* kafka, int direction, Arrival* arrival, int64_t offset,
                           Span data) noexcept nogil
cdef void settle_start(Context* context, KafkaConnection* kafka, int direction) noexcept nogil
cdef void settle_rest(Context* context, KafkaConnection* kafka) noexcept nogil
cdef void look_midway(Context* context, KafkaConnection* kafka, int direction, Arrival* arrival, int64_t offset,
                      Span data) noexcept nogil
cdef void follow_hello(Context* context, KafkaConnection* kafka, int direction, Span data) noexcept nogil
cdef void feed_cipher(Context* context, KafkaConnection* kafka, int direction, Arrival* arrival, int64_t offset,
                      Span data) noexcept nogil
cdef void cut_hello(Context* context, KafkaConnection* kafka, int direction) noexcept nogil
cdef int carried_in(KafkaConnection* kafka) noexcept nogil
cdef void turn_away(Context* context, KafkaConnection* kafka, int protocol) noexcept nogil

cdef inline void feed(Context* context, KafkaConnection* kafka, int direction, Arrival* arrival, int64_t offset,
                      Span data) noexcept nogil:
    if kafka.hello != NULL and not (kafka.tls != NULL and kafka.tls.inside):
        count_records(&kafka.hello.side[direction].records, &kafka.hello.side[1 - direction].records.steps, data)
        if kafka.hello.side[direction].state == HELLO_COMES:
            follow_hello(context, kafka, direction, data)
    if kafka.tls != NULL and not kafka.tls.inside:
        feed_cipher(context, kafka, direction, arrival, offset, data)
        return
    if kafka.client < 0 and kafka.framing[direction].state == FRAMING_LOST:
        look_midway(context, kafka, direction, arrival, offset, data)
        return
    feed_framing(&kafka.framing[direction], &context.frame_sink, &context.limits, &context.kept_total, arrival,
                 offset, data)
