# cython: language_level=3
# Keys for the next record, and the next record itself where some were lost: its beginning, and the number it
# has. record_resync.pyx has the rules.

from libc.stdint cimport int64_t, uint32_t

from kwsniff.core.bytes.span cimport Span
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tls.hello cimport Hello
from kwsniff.core.tls.tls_state cimport Opening, Tls, TlsSide

cdef void lose_record(TlsSide* side, int64_t missing, int cause) noexcept nogil
cdef bint seek_record(Opening* opening, Tls* tls, Connection* connection, int direction) noexcept nogil
cdef void give_up(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival) noexcept nogil
cdef bint guess_session(Opening* opening, Tls* tls, int direction, Span records, size_t* passed) noexcept nogil
cdef bint find_key(Opening* opening, Tls* tls, int direction) noexcept nogil
cdef void change_key(TlsSide* side, int epoch) noexcept nogil
cdef void* key_of(Opening* opening, Tls* tls, int direction, int epoch) noexcept nogil
cdef bint is_1_3(Tls* tls) noexcept nogil
cdef Hello* hello_of(Tls* tls, TlsSide* side) noexcept nogil
