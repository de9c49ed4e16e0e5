# cython: language_level=3
# TLS connections that ended while their records wait for secrets, which processes write a little later.
# late_secrets.pyx has the rules.

from libc.stdint cimport int64_t

from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.kafka.kafka_connection cimport Context, KafkaConnection
from kwsniff.core.kafka.memory_budget cimport bytes_in_use
from kwsniff.core.tcp.connection cimport Connection

cdef bint keep_sealed(Context* context, Connection* connection, KafkaConnection* kafka) noexcept nogil
cdef Connection* next_opened(Context* context, Connection* connection) noexcept nogil
cdef void free_sealed(Context* context, Connection* connection) noexcept nogil


cdef inline bint is_too_much(Context* context, int64_t time) noexcept nogil:
    """Whether the connection that ended first waits for too long at this time (nanoseconds), or takes too much memory."""
    cdef Connection* oldest = context.sealed.oldest
    return oldest != NULL and (
        time != NO_TIME and oldest.last_time != NO_TIME and time - oldest.last_time > context.limits.ended_seconds * <int64_t>1000000000
        or context.kept_total > context.limits.frame_kept_bytes_total // 2
        or bytes_in_use(context) > context.most_bytes)
