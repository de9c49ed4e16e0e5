# cython: language_level=3
from libc.stdint cimport int64_t

from kwsniff.core.kafka.dialog cimport Call, Context, Dialog
from kwsniff.core.wire.facts cimport Facts

cdef void follow_asked(Context* context, Dialog* dialog, Facts* facts) noexcept nogil
cdef void follow_answered(Dialog* dialog, Call* call, Facts* facts) noexcept nogil
cdef int64_t session_bytes(Dialog* dialog) noexcept nogil
cdef void end_session(Dialog* dialog) noexcept nogil
