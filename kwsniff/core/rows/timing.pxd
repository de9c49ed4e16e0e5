# cython: language_level=3
from libc.stdint cimport int64_t

from kwsniff.core.kafka.dialog cimport Call, Context, Dialog
from kwsniff.core.wire.facts cimport Facts
from kwsniff.core.kafka.frames cimport Frame

cdef void write_latency(Context* context, Dialog* dialog, Call* call, Frame* response, Facts* facts) noexcept nogil
cdef void note_answer(Dialog* dialog, Frame* response, Facts* facts) noexcept nogil
cdef int tell_vantage(int64_t client, int64_t broker) noexcept nogil
