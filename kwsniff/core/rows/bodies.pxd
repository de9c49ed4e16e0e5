# cython: language_level=3
# The bytes of message bodies, for layers above the core that decode a few of them. bodies.pyx has the rules.

from libc.stdint cimport int64_t

from kwsniff.core.kafka.apis cimport ApiRange
from kwsniff.core.kafka.kafka_connection cimport Call, Context
from kwsniff.core.kafka.frames cimport Frame

cdef void write_detail(Context* context, const ApiRange* api, Call* call, Frame* response, int64_t row) noexcept nogil
