# cython: language_level=3
# What a TLS handshake shows without keys: the broker's name, the version and the cipher suite agreed on.
# hello.pyx has the rules.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.tls.record_layer cimport Records

cdef enum HelloState:
    HELLO_COMES = 0
    HELLO_OVER = 1              # read, or there is none

# What one side says before anything is encrypted.
cdef struct HelloSide:
    int state
    uint8_t head[5]             # of the current record
    uint32_t head_num
    uint32_t left               # bytes of that record that have not come
    Buffer message              # its first handshake message, from the type on
    Records records             # all that went by

cdef struct Hello:
    HelloSide side[2]           # by endpoint
    int client                  # endpoint that sent the ClientHello, or -1
    bint greeted                # a ClientHello was seen
    int alert                   # description of the first alert in its place, or -1,
    int alert_by                # and the endpoint that sent it
    bint version_known
    bint cipher_known
    uint16_t version
    uint16_t cipher
    Buffer server_name
    int num_read                # hellos of either side
    bint client_random_known
    bint server_random_known
    uint8_t client_random[32]
    uint8_t server_random[32]
    uint8_t session_id[32]      # that the broker chose,
    uint32_t session_id_num     # and its length
    bint encrypt_then_mac       # RFC 7366
    uint64_t asked_id           # marks of what a session of 1.2 is resumed by: the id that the client asks for,
    uint64_t ticket_shown       # the ticket that it shows,
    uint64_t ticket_given       # and the one that it is given; 0: none
    bint resumed                # the broker took what the client asked for

cdef Hello* make_hello() noexcept nogil
cdef void take_hello(Hello* hello, int direction, Span data) noexcept nogil
cdef void take_clear_messages(Hello* hello, Span record) noexcept nogil
cdef void take_opened_alert(Hello* hello, int direction, Span data) noexcept nogil
cdef void end_hello(Hello* hello, int direction) noexcept nogil
cdef void free_hello(Hello* hello) noexcept nogil
cdef bint may_be_alert(Span data) noexcept nogil
cdef int read_alert(Span data) noexcept nogil
cdef Span version_text(Hello* hello, uint8_t* room) noexcept nogil
cdef Span cipher_text(Hello* hello, uint8_t* room) noexcept nogil

cdef inline int64_t hello_bytes(Hello* hello) noexcept nogil:
    """Memory that a hello holds."""
    return <int64_t>(sizeof(Hello) + hello.side[0].message.cap + hello.side[1].message.cap + hello.server_name.cap)
