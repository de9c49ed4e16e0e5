# cython: language_level=3
# What a request says of each partition, kept until its response comes. request_partitions.pyx has the rules.

from kwsniff.core.kafka.kafka_connection cimport Call, Context
from kwsniff.core.wire.facts cimport Facts

cdef void keep_parts(Context* context, Call* call, Facts* facts) noexcept nogil
