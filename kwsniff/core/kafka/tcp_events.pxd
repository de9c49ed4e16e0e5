# cython: language_level=3
# TCP events (retransmissions, closed windows, resets), and the call that each delayed. tcp_events.pyx has the
# rules.

from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.events cimport TcpEvent

cdef void take_event(void* opaque, Connection* connection, TcpEvent* event) noexcept nogil
cdef void settle_events(Context* context, KafkaConnection* kafka, Call* call, Frame* response) noexcept nogil
cdef void end_events(Context* context, Connection* connection, KafkaConnection* kafka) noexcept nogil
