# cython: language_level=3
# Keys and what they open: the one place of the compiled rooms that calls a library of cryptography. keys.pyx
# has the rules.

from libc.stdint cimport int64_t, uint64_t

from kwsniff.core.bytes.span cimport Span
from kwsniff.core.tls.hello cimport Hello
from kwsniff.core.tls.tls_state cimport Opening

cdef class Keyring:
    cdef object find
    cdef object guess
    cdef int64_t guesses                # that are left
    cdef readonly object failure
    cdef readonly int64_t opened        # keys that opened something

cdef void* take_key(Opening* opening, Hello* hello, int side, int epoch) noexcept nogil
cdef void* guess_key(Opening* opening, Hello* hello, int direction, Span record, int* epoch,
                     uint64_t* number) noexcept nogil
cdef void drop_key(void* key) noexcept nogil
cdef int64_t key_overhead(void* key) noexcept nogil
cdef void note_proven(Opening* opening) noexcept nogil
cdef size_t open_run(Opening* opening, void* key, uint64_t number, Span records, int64_t most) noexcept nogil
cdef bint find_number(Opening* opening, void* key, Span record, uint64_t least, uint64_t num, int64_t* tries,
                      uint64_t* number) noexcept nogil
