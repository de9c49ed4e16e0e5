# cython: language_level=3
from kwsniff.core.kafka.dialog cimport RowSink

cdef RowSink row_sink() noexcept nogil
