# cython: language_level=3
from libc.stdint cimport int64_t

from kwsniff.core.kafka.dialog cimport Call, Context, Dialog
from kwsniff.core.wire.facts cimport Facts

cdef void write_partitions(Context* context, Dialog* dialog, Call* call, Facts* facts) noexcept nogil
cdef void write_batches(Context* context, Dialog* dialog, Call* call, Facts* facts, int64_t time) noexcept nogil
