# cython: language_level=3
from libc.stdint cimport int64_t

from kwsniff.core.kafka.dialog cimport Context, Dialog
from kwsniff.core.tcp.connections cimport Arrival, Streams
from kwsniff.core.tls.sealed cimport TlsSink

cdef TlsSink plain_sink(Context* context) noexcept nogil
cdef void gap_cipher(Context* context, Dialog* dialog, int direction, Arrival* arrival, int64_t offset, int64_t num,
                     int cause) noexcept nogil
cdef void retry_cipher(Context* context, Streams* streams) noexcept nogil
