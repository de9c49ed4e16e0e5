# cython: language_level=3
from libc.stdint cimport int64_t, uint8_t

from kwsniff.core.kafka.dialog cimport Context, Dialog
from kwsniff.core.kafka.frames cimport Framing
from kwsniff.core.octets.octets cimport Octets
from kwsniff.core.tcp.connections cimport Arrival

cdef enum:
    ANSWER_BYTES = 32           # enough to tell what answers

cdef bint wait_for_greeting(Context* context, Framing* framing, Arrival* arrival, int64_t offset,
                            Octets data) noexcept nogil
cdef int judge_answers(Context* context, Dialog* dialog, Octets data) noexcept nogil
cdef Octets join_kept(Framing* framing, Octets data, uint8_t* room) noexcept nogil
