# cython: language_level=3
# What is known of TLS connections, in a saved state: how far they are, and never their secrets.
# tls_checkpoint.pyx has the rules.

from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.bytes.checkpoint cimport Source
from kwsniff.core.tls.hello cimport Hello
from kwsniff.core.tls.tls_state cimport Tls

cdef bint save_hello(Buffer* out, Hello* hello) noexcept nogil
cdef Hello* load_hello(Source* source) noexcept nogil
cdef bint save_tls(Buffer* out, Tls* tls) noexcept nogil
cdef Tls* load_tls(Source* source, Hello* hello) noexcept nogil
