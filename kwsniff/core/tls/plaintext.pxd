# cython: language_level=3
from kwsniff.core.capture.packets cimport Reader
from kwsniff.core.tls.sessions cimport Begin, Plaintext
from kwsniff.core.tcp.connections cimport StreamSink

cdef void decrypt_segments(Plaintext* plaintext, Reader* reader) noexcept nogil
cdef void decrypt_streams(Plaintext* plaintext, StreamSink* sink, Begin begin) noexcept nogil
