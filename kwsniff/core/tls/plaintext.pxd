# cython: language_level=3
from kwsniff.core.kafka.dialog cimport Context
from kwsniff.core.capture.packets cimport Reader
from kwsniff.core.tls.sessions cimport Plaintext
from kwsniff.core.tcp.streams cimport StreamSink

cdef void decrypt_segments(Plaintext* plaintext, Reader* reader) noexcept nogil
cdef void decrypt_streams(Plaintext* plaintext, Context* context, StreamSink* sink) noexcept nogil
