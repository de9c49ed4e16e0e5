# cython: language_level=3
# What is known of connections and of what happened to them, written as rows. transport.pyx has the rules.

from libc.stdint cimport int64_t

from kwsniff.core.kafka.kafka_connection cimport Context, KafkaConnection
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.events cimport TcpEvent

cdef void write_connection(Context* context, Connection* connection, KafkaConnection* kafka) noexcept nogil
cdef void write_event(Context* context, Connection* connection, KafkaConnection* kafka, TcpEvent* event,
                      int64_t call_id) noexcept nogil
