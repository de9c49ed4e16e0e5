# cython: language_level=3
from libc.stdint cimport int32_t

from kwsniff.core.kafka.dialog cimport Call, Context, Dialog
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.octets.octets cimport Octets

cdef bint take_response(Context* context, Dialog* dialog, Frame* frame) noexcept nogil
cdef bint answer_waiting(Context* context, Dialog* dialog, Frame* frame, int32_t correlation_id) noexcept nogil
cdef void answer_from_parked(Context* context, Dialog* dialog, Call* call) noexcept nogil
cdef bint decodes(Context* context, Call* call, Octets frame, bint partly) noexcept nogil
