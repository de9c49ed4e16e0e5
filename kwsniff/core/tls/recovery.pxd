# cython: language_level=3
from libc.stdint cimport int64_t, uint32_t

from kwsniff.core.octets.octets cimport Octets, be16, u8
from kwsniff.core.tcp.connections cimport Arrival, Connection
from kwsniff.core.tls.hello cimport Hello
from kwsniff.core.tls.sealed cimport LONGEST_RECORD, RECORD_CHANGE, RECORD_DATA, RECORD_HEADER, Opening, Tls, TlsSide

cdef void lose_record(TlsSide* side, int64_t missing, int cause) noexcept nogil
cdef bint seek_record(Opening* opening, Tls* tls, Connection* connection, int direction) noexcept nogil
cdef void give_up(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival) noexcept nogil
cdef bint guess_session(Opening* opening, Tls* tls, int direction, Octets records, size_t* passed) noexcept nogil
cdef bint find_key(Opening* opening, Tls* tls, int direction) noexcept nogil
cdef void change_key(TlsSide* side, int epoch) noexcept nogil
cdef void* key_of(Opening* opening, Tls* tls, int direction, int epoch) noexcept nogil
cdef bint is_1_3(Tls* tls) noexcept nogil
cdef Hello* hello_of(Tls* tls, TlsSide* side) noexcept nogil

cdef inline bint begins_record(Octets data) noexcept nogil:
    """Whether five bytes of a record's header stand here."""
    return (RECORD_CHANGE <= u8(data, 0) <= RECORD_DATA and u8(data, 1) == 3 and u8(data, 2) <= 4
            and 0 < be16(data, 3) <= LONGEST_RECORD - RECORD_HEADER)
