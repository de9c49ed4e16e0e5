# cython: language_level=3
# Fetch sessions: the partitions that an incremental fetch asks for (KIP-227). fetch_sessions.pyx has the
# rules.

from libc.stdint cimport int64_t

from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection
from kwsniff.core.wire.facts cimport Facts

cdef void follow_asked(Context* context, KafkaConnection* kafka, Facts* facts) noexcept nogil
cdef void follow_answered(KafkaConnection* kafka, Call* call, Facts* facts) noexcept nogil
cdef int64_t session_bytes(KafkaConnection* kafka) noexcept nogil
cdef void end_session(KafkaConnection* kafka) noexcept nogil
