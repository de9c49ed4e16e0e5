# cython: language_level=3
from libc.stdint cimport int32_t

from kwsniff.core.kafka.dialog cimport Call, Context, Dialog, Parked
from kwsniff.core.kafka.frames cimport Frame

cdef bint park(Context* context, Dialog* dialog, Frame* frame, int32_t correlation_id) noexcept nogil
cdef bint unpark_answer(Context* context, Dialog* dialog, Call* call, Parked* parked) noexcept nogil
cdef void give_up_parked(Context* context, Dialog* dialog, int number) noexcept nogil
