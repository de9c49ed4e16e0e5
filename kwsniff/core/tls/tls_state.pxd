# cython: language_level=3
# What is known of a connection inside TLS: how far each direction has come, and what its next record is opened with.
#
# Rule 1: what grows is in `kept`, `carriers` and `turns`, which tls_bytes counts; each has a bound of its own.
# Rule 2: a key is Python's (keys.pyx); everything else is a value that can be saved. Secrets are never part of it.
#
#     cipher  --[ hello ]--[ record ][ record ][ rec          kept: from the first byte of a record that is not whole
#     plain                 ---------  ---------              turns: how far plain had come where records ended

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tls.hello cimport Hello

cdef enum SidePhase:
    SIDE_CLEAR = 0          # records are not encrypted yet
    SIDE_SEALED = 1         # all are
    SIDE_LOST = 2           # where the next record begins, or which number it has, is to be found
    SIDE_GIVEN_UP = 3       # nothing more is opened

cdef enum Epoch:
    EPOCH_HANDSHAKE = 0     # keys of TLS 1.3 up to Finished
    EPOCH_DATA = 1          # keys of data; each further one is a key update, or a renegotiation

# A packet that brought bytes of what is kept.
cdef struct Carrier:
    uint32_t end            # in `kept`, behind its last byte
    Arrival arrival

# The plain stream has reached `plain` when the encrypted one has reached `cipher`.
cdef struct Turn:
    int64_t cipher
    int64_t plain

cdef struct TlsSide:
    int phase
    int epoch
    uint64_t number         # of the next record
    void* key               # see keys.pyx; or NULL
    int64_t asked           # `known` of the connection when its key was asked for and not there
    int64_t guessed         # the same of secrets at hand that were tried, where a hello is missing
    bint proven             # the key has opened a record
    int64_t place           # in the encrypted stream of the first byte kept
    Buffer kept
    Buffer carriers         # Carrier, in the order of the stream
    uint32_t left           # bytes of a damaged record that are still to come: they are passed over
    int64_t plain           # position in the plain stream
    Buffer turns            # Turn
    uint8_t head[4]         # of the current handshake message inside records,
    uint32_t head_num
    uint32_t message_left   # and bytes of its body that have not come
    int64_t missing         # LOST: encrypted bytes since the last record that was opened, or -1;
    int cause               # why they are missing,
    uint64_t least          # the lowest number that the next record can have,
    int64_t tries           # and records that were tried
    bint was_clear          # nothing was encrypted before
    int owed                # a gap of the plain stream that waits for its beginning: its cause + 1

cdef struct Tls:
    TlsSide side[2]         # by endpoint
    Hello* hello            # the connection's
    Hello* again            # of a renegotiation; or NULL
    bint begun              # plaintext came
    bint inside             # plaintext is being handed on
    int64_t known           # grows with what may give a key
    bint by_trying          # which secrets are this connection's was found out by trying them

# Where plaintext goes. `offset` is a position in the plain stream; num -1: an unknown number.
cdef struct TlsSink:
    void* context
    void (*begin)(void* context, Connection* connection) noexcept nogil
    void (*bytes)(void* context, Connection* connection, int direction, Arrival* arrival, int64_t offset,
                  Span data) noexcept nogil
    void (*gap)(void* context, Connection* connection, int direction, Arrival* arrival, int64_t offset, int64_t num,
                int cause) noexcept nogil

cdef struct Opening:
    void* keyring           # see keys.pyx; NULL: nothing is opened
    bint may_come           # secrets may come after the records that they open,
    int64_t version         # and how often some have come
    int64_t most_queued       # bytes of a direction that wait for them
    int64_t most_tries      # records tried until one fits, for each time that a number is not known
    Buffer plain            # what a run of records holds
    Buffer opened           # Opened, for each of them
    TlsSink sink

cdef struct Opened:
    uint32_t length         # with its header
    uint32_t plain
    int kind                # RECORD_DATA, ...


cdef inline int64_t tls_bytes(Tls* tls) noexcept nogil:
    """Memory that it holds, without its hellos."""
    return <int64_t>(sizeof(Tls) + tls.side[0].kept.cap + tls.side[1].kept.cap + tls.side[0].carriers.cap
                     + tls.side[1].carriers.cap + tls.side[0].turns.cap + tls.side[1].turns.cap)


cdef inline bint waits_for_secrets(Tls* tls) noexcept nogil:
    """Whether records are kept that no key is known for."""
    cdef int i
    for i in range(2):
        if tls.side[i].kept.len and tls.side[i].key == NULL and tls.side[i].phase != SIDE_GIVEN_UP:
            return True
    return False
