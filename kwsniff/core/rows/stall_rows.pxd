# cython: language_level=3
# Stalls of a call, written as rows. stall_rows.pyx has the rules.

from libc.stdint cimport int64_t

from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection

cdef int take_stalls(Context* context, KafkaConnection* kafka, Call* call, int64_t asked, int64_t arrived, int64_t left,
                     int64_t answered) noexcept nogil
cdef void write_stalls(Context* context, KafkaConnection* kafka, Call* call, int64_t asked, int64_t arrived, int64_t left,
                       int64_t answered) noexcept nogil
