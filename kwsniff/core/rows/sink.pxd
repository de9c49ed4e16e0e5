# cython: language_level=3
# The writers of rows, as the rooms of Kafka call them. sink.pyx has the rules.

from kwsniff.core.kafka.kafka_connection cimport RowSink

cdef RowSink row_sink() noexcept nogil
