# cython: language_level=3
from kwsniff.core.kafka.kafka_connection cimport Call, Context
from kwsniff.core.wire.facts cimport Facts

cdef void keep_parts(Context* context, Call* call, Facts* facts) noexcept nogil
