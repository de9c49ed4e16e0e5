# cython: language_level=3
from kwsniff.core.dialog cimport Context
from kwsniff.core.packets cimport Reader
from kwsniff.core.tls_sessions cimport Plaintext
from kwsniff.core.streams cimport StreamSink

cdef void decrypt_segments(Plaintext* plaintext, Reader* reader) noexcept nogil
cdef void decrypt_streams(Plaintext* plaintext, Context* context, StreamSink* sink) noexcept nogil
