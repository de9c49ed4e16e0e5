# cython: language_level=3
# Bytes of TLS connections to the plain streams inside them, record by record. decryption.pyx has the rules.

from libc.stdint cimport int64_t

from kwsniff.core.bytes.span cimport Span
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tls.hello cimport Hello
from kwsniff.core.tls.tls_state cimport Opening, Tls

cdef Tls* make_tls(Hello* hello) noexcept nogil
cdef void free_tls(Tls* tls) noexcept nogil
cdef void take_cipher(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival, int64_t offset,
                      Span data) noexcept nogil
cdef void retry_sealed(Opening* opening, Tls* tls, Connection* connection) noexcept nogil
cdef void take_cipher_gap(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival,
                          int64_t offset, int64_t num, int cause) noexcept nogil
cdef void end_cipher(Opening* opening, Tls* tls, Connection* connection) noexcept nogil
