# cython: language_level=3
from kwsniff.core.kafka.dialog cimport Call, Context, Dialog
from kwsniff.core.octets.octets cimport Octets

cdef void keep_facts(Context* context, Dialog* dialog, Call* call, Octets message) noexcept nogil
cdef void learn_principal(Dialog* dialog, Octets token) noexcept nogil
