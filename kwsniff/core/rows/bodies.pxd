# cython: language_level=3
from libc.stdint cimport int64_t

from kwsniff.core.kafka.apis cimport ApiRange
from kwsniff.core.kafka.kafka_connection cimport Call, Context
from kwsniff.core.kafka.frames cimport Frame

cdef void write_detail(Context* context, const ApiRange* api, Call* call, Frame* response, int64_t row) noexcept nogil
