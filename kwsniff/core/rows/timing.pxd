# cython: language_level=3
from kwsniff.core.kafka.dialog cimport Call, Context, Dialog
from kwsniff.core.wire.facts cimport Facts
from kwsniff.core.kafka.frames cimport Frame

cdef void write_latency(Context* context, Dialog* dialog, Call* call, Frame* response, Facts* facts) noexcept nogil
