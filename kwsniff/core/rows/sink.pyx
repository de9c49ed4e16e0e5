# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The writers of rows, as the rooms of Kafka call them.

Rules
  1. Every pointer is set: who calls does not ask.
"""

from kwsniff.core.kafka.kafka_connection cimport RowSink
from kwsniff.core.rows.partitions cimport write_batches, write_partitions
from kwsniff.core.rows.rows cimport write_anomaly, write_call, write_errors, write_response_only
from kwsniff.core.rows.stall_rows cimport write_stalls
from kwsniff.core.rows.timing cimport write_latency
from kwsniff.core.rows.transport cimport write_connection, write_event


cdef RowSink row_sink() noexcept nogil:
    cdef RowSink sink
    sink.call = write_call
    sink.partitions = write_partitions
    sink.latency = write_latency
    sink.batches = write_batches
    sink.errors = write_errors
    sink.response_only = write_response_only
    sink.connection = write_connection
    sink.anomaly = write_anomaly
    sink.event = write_event
    sink.stalls = write_stalls
    return sink
