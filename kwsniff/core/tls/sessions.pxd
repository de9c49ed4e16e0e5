# cython: language_level=3
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from kwsniff.core.octets.buffer cimport Buffer
from kwsniff.core.octets.octets cimport Octets
from kwsniff.core.capture.packets cimport Reader, Segment
from kwsniff.core.tcp.connections cimport Connection, StreamSink, Streams

# The plain stream has reached `plain` when the encrypted one has reached `cipher`.
cdef struct Turn:
    uint32_t cipher
    uint32_t plain

# A captured segment of which not all records were complete when it came.
cdef struct Carrier:
    uint32_t start
    uint32_t end
    int64_t frame
    int64_t time

# One direction; all numbers are TCP's sequence numbers.
cdef struct Side:
    bint known              # cipher_end means something
    uint32_t cipher_end     # behind the last encrypted byte that was captured
    uint32_t plain_end      # what the plain stream goes on with
    uint32_t opened         # cipher_end when the latest plaintext came
    uint32_t acked          # highest acknowledgement of encrypted bytes
    bint acked_known
    bint hole               # encrypted bytes are missing since the latest plaintext
    bint broken             # something was lost, and no plaintext has come since
    bint fin
    int64_t silent_since    # packets of the connection when more than a record lay unopened, or 0
    Buffer turns            # Turn, the newest last
    bint anchored           # records_at means something
    uint32_t records_at     # where the first record begins that was not complete yet
    Buffer carriers         # Carrier, in the order of the stream

cdef struct TlsSession:
    TlsSession* chain          # same hash bucket
    TlsSession* older
    TlsSession* newer
    uint64_t hash
    uint8_t address[2][16]  # [0] is the smaller endpoint; side d is what endpoint d sends
    uint16_t port[2]
    Side side[2]
    int64_t packets
    bint opened             # plaintext came: from there on this connection is plain
    bint restart            # what its bytes are has to be found out anew

# Plaintext on its way to the packets that brought it.
cdef struct Share:
    Segment* segment        # the one that completed the records
    Octets rest
    size_t carrier
    size_t num              # bytes of `rest` that are this carrier's
    bint passed             # the segment itself

# Told when a connection's plaintext begins; `context` is that of the sink.
ctypedef void (*Begin)(void* context, Connection* connection) noexcept nogil

cdef struct Plaintext:
    bint active
    bint extra              # the segment under way was counted as a packet before
    bint unopened           # it acknowledges bytes whose plaintext has not come yet
    Streams* streams
    Reader* reader
    TlsSession** buckets
    uint64_t num_buckets
    uint64_t num
    uint64_t most
    uint64_t seed
    int64_t patience
    TlsSession* oldest
    TlsSession* newest
    TlsSession* current        # of the segment under way
    int64_t frames_before   # packets of the captures before this one
    Octets pieces           # what is left of the batch: per frame a Piece and its bytes
    bint dry                # no more batches
    void* owner
    void (*fetch)(void* owner) noexcept nogil       # sets pieces or dry
    StreamSink next         # where the bytes go, plain or not
    Begin begin

# What a frame completed: this, then its records, then the plaintext of all of them (kwsniff/sources/tls.py writes it).
cdef struct PieceHead:
    uint64_t frame          # from 1, counted over all captures
    uint32_t num_records
    uint32_t num_bytes

cdef struct Record:
    uint32_t length         # with its header
    uint32_t plain          # bytes of application data in it
    uint32_t lost           # how many there may be, when it could not be decrypted

cdef struct Piece:
    Octets records
    Octets data
    uint32_t length         # of all records
    uint32_t lost

cdef bint start_sessions(Plaintext* plaintext, Streams* streams, Reader* reader, uint64_t most, uint64_t seed,
                         int64_t patience) noexcept nogil
cdef void free_sessions(Plaintext* plaintext) noexcept nogil
cdef TlsSession* find_session(Plaintext* plaintext, Segment* segment, int sender) noexcept nogil
cdef void forget_session(Plaintext* plaintext, Connection* connection) noexcept nogil
cdef void drop_front(Buffer* buffer, size_t num) noexcept nogil
