# cython: language_level=3
from kwsniff.core.kafka.kafka_connection cimport RowSink

cdef RowSink row_sink() noexcept nogil
