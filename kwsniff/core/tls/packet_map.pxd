# cython: language_level=3
# Which packet brought which byte of the plaintext, and how far the plain stream had come at a position of the
# encrypted one. packet_map.pyx has the rules.

from libc.stdint cimport int64_t, uint32_t

from kwsniff.core.bytes.span cimport Span
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tls.tls_state cimport Carrier, Opening, Tls, TlsSide

cdef bint keep_bytes(TlsSide* side, Arrival* arrival, Span data) noexcept nogil
cdef void forget_bytes(TlsSide* side, size_t num) noexcept nogil
cdef Carrier first_carrier(TlsSide* side) noexcept nogil
cdef Arrival arrival_at(TlsSide* side, uint32_t at) noexcept nogil
cdef void note_turn(TlsSide* side) noexcept nogil
cdef void hand_on(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival,
                  Span data) noexcept nogil
cdef void hand_gap(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival, int64_t num,
                   int cause) noexcept nogil
cdef void hand_on_opened(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival,
                         uint32_t at) noexcept nogil
