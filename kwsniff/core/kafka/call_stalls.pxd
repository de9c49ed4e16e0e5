# cython: language_level=3
# Stalls that wait until the call that they held up is known. call_stalls.pyx has the rules.

from libc.stdint cimport int64_t

from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stall_marks cimport Stall

cdef bint is_inside(Connection* connection, int direction) noexcept nogil
cdef void take_stall(void* opaque, Connection* connection, Stall* stall) noexcept nogil
cdef void settle_unanswered(Context* context, KafkaConnection* kafka, Call* call) noexcept nogil
cdef void end_stalls(Context* context, KafkaConnection* kafka) noexcept nogil


cdef inline int64_t stalls_bytes(KafkaConnection* kafka) noexcept nogil:
    return <int64_t>kafka.stalls.cap
