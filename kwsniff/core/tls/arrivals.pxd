# cython: language_level=3
from libc.stdint cimport uint32_t

from kwsniff.core.octets.octets cimport Octets
from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.tls.sessions cimport Piece, Plaintext, Record, Side, TlsSession

cdef Record record_at(Piece* piece, size_t number) noexcept nogil
cdef void pass_on(Plaintext* plaintext, Segment* segment) noexcept nogil
cdef void pass_share(Plaintext* plaintext, Side* own, Segment* segment, Octets data, uint32_t lost) noexcept nogil
cdef void anchor(Side* own, Segment* segment) noexcept nogil
cdef bint is_placed(Side* own, Segment* segment, Piece* piece) noexcept nogil
cdef void note_carrier(Plaintext* plaintext, Side* own, Segment* segment, uint32_t end) noexcept nogil
cdef void forget_carriers(Side* own) noexcept nogil
cdef void spread(Plaintext* plaintext, TlsSession* session, Side* own, Segment* segment, Piece* piece) noexcept nogil
