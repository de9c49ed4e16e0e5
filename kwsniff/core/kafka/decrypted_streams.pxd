# cython: language_level=3
# Plain streams inside TLS, on their way back into the connection whose records they were in.
# decrypted_streams.pyx has the rules.

from libc.stdint cimport int64_t

from kwsniff.core.kafka.kafka_connection cimport Context, KafkaConnection
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.stream_table cimport Streams
from kwsniff.core.tls.tls_state cimport TlsSink

cdef TlsSink plain_sink(Context* context) noexcept nogil
cdef void gap_cipher(Context* context, KafkaConnection* kafka, int direction, Arrival* arrival, int64_t offset, int64_t num,
                     int cause) noexcept nogil
cdef void retry_cipher(Context* context, Streams* streams) noexcept nogil
