# cython: language_level=3
# What a call moved or asked, partition by partition and batch by batch. partitions.pyx has the rules.

from libc.stdint cimport int64_t

from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection
from kwsniff.core.wire.facts cimport Facts

cdef void write_partitions(Context* context, KafkaConnection* kafka, Call* call, Facts* facts) noexcept nogil
cdef void write_batches(Context* context, KafkaConnection* kafka, Call* call, Facts* facts, int64_t time) noexcept nogil
