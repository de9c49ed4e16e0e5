# cython: language_level=3
from kwsniff.core.kafka.dialog cimport Context, Dialog
from kwsniff.core.kafka.frames cimport Frame

cdef bint take_request(Context* context, Dialog* dialog, Frame* frame) noexcept nogil
