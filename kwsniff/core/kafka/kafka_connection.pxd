# cython: language_level=3
# What the rooms between frames and rows share: a connection's connection, its calls, and the context of an analysis.
#
# Rule 1: a call's struct stays in its ring's slot for the next call; only its two buffers are kept, up to SPARE_TEXT.
# Rule 2: `waiting_total` counts every byte that calls and parked responses hold, wherever it is allocated or freed.
# Rule 3: what grows is counted in one of the totals of memory_budget.pxd.
# Rule 4: every payload byte is counted in exactly one bin, when it is known which.
#
#     calls:  ring of num_slots (a power of two)   | free | head: oldest ... head + num | free |

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kwsniff.core.declared cimport (
    BIN_LOST_FRAMING, BIN_NOT_KAFKA, BIN_UNDECIDED, NUM_BINS, NUM_TABLES, PROTOCOL_KAFKA, PROTOCOL_UNDECIDED,
    REASON_CUT_BY_SNAPLEN, REASON_CUT_OFF_BY_CLIENT, REASON_LIMIT_REACHED, REASON_NOT_DECRYPTED,
    REASON_SEGMENT_LOST, REASON_SEGMENT_NOT_CAPTURED, REASON_UNDECODABLE,
)
from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.columns.columns cimport Table, TextCache
from kwsniff.core.wire.facts cimport Facts
from kwsniff.core.kafka.frames cimport Frame, FrameSink, Framing
from kwsniff.core.bytes.known cimport Known
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.limits cimport Limits
from kwsniff.core.kafka.apis cimport Apis
from kwsniff.core.tls.hello cimport Hello
from kwsniff.core.tls.tls_state cimport Opening, Tls
from kwsniff.core.tcp.arrivals cimport GAP_CUT, GAP_CUT_OFF, GAP_NOT_CAPTURED, GAP_NOT_DECRYPTED, GAP_PASSED_OVER, Arrival
from kwsniff.core.tcp.connection cimport Ages, Connection
from kwsniff.core.tcp.events cimport TcpEvent
from kwsniff.core.wire.tape cimport Op, Tape
from kwsniff.core.wire.topic_ids cimport TopicIds

cdef enum:
    REQUEST = 0                 # sides of a connection, as directions of messages
    RESPONSE = 1
    MAX_FRONT = 8
    HASHED_MESSAGES = 4         # of each side, by which twins are known
    NO_PROTOCOL = -1
    SPARE_TEXT = 512            # text and partitions of a call up to this size are kept for the next call

cdef enum ProgramState:
    PROGRAM_UNTRIED = 0
    PROGRAM_READY = 1
    PROGRAM_ABSENT = 2

cdef struct Program:
    int state
    const Op* ops
    uint32_t num_ops
    const uint8_t* paths        # the static path of every op, one behind the other
    const uint32_t* path_ends   # num_ops + 1

# What becomes of a call that no reader wants, see choices.pxd.
cdef enum Choice:
    CHOICE_ROW = 0
    CHOICE_NO_ROW = 1           # its request is read
    CHOICE_NO_BODY = 2

cdef enum ConnectionChoice:
    CONNECTION_UNDECIDED = 0
    CONNECTION_WANTED = 1
    CONNECTION_UNWANTED = 2

cdef enum:
    MOST_CHOICES = 64           # versions of an API that are decided by themselves

# What a call keeps of its request's texts, see request_texts.pxd.
cdef enum KeptText:
    KEPT_CLIENT_ID, KEPT_GROUP_ID, KEPT_TRANSACTIONAL_ID, KEPT_TOPICS, KEPT_MEMBER_ID, KEPT_GROUP_INSTANCE_ID,
    KEPT_PROTOCOL_TYPE, KEPT_RACK,
    KEPT_MESSAGE,               # its bytes behind the correlation id, as far as there was room
    NUM_KEPT_TEXTS

cdef struct KeptSpan:
    uint32_t at
    int32_t num                 # -1: none

# A request that waits for its response, or whose row is being written.
cdef struct Call:
    int64_t id
    int64_t capture
    bint known                  # its header could be read
    int choice                  # Choice
    int16_t key
    int16_t version
    int32_t slot                # of its API, -1: no layout has it
    int32_t correlation_id
    Arrival first
    Arrival last
    int64_t length
    bint ended                  # the packet of its last byte is known
    int64_t captured            # payload bytes that capture number bytes_capture gave it
    int64_t bytes_capture
    int64_t end_offset          # stream position behind it
    int64_t broker_gaps         # gaps of the broker's direction when it became known
    int reason                  # why its facts are not whole, or REASON_NONE
    bint doubtful               # it does not decode, or much follows it: no proof of what the connection is
    int passed                  # later calls that were answered before it
    Arrival passed_by           # the first of those answers
    int64_t passed_offset
    bint has_acks
    int16_t acks
    bint has_partitions
    int64_t partitions
    bint has_records
    bint records_uncounted
    int64_t records
    int64_t record_bytes
    Known generation
    Known producer_id
    Known producer_epoch
    Known isolation
    Known committed
    Known session_id
    Known session_epoch
    Known max_wait
    Known min_bytes
    Known max_bytes
    Known timeout
    int caller
    int64_t most_facts          # bytes that may be kept of what it says
    Buffer parts                # PartRow, what the request says of each partition
    Buffer text                 # what `kept` points into, and names of `parts`
    KeptSpan kept[NUM_KEPT_TEXTS]

# A partition that a request names; `name_at` counts in the call's text.
cdef struct PartRow:
    uint32_t name_at
    int32_t name_len            # -1: no name
    uint8_t topic_id[16]
    bint has_topic_id
    bint answered
    uint64_t name_hash          # 0: not looked at yet
    int32_t partition
    Known offset
    Known record_bytes
    Known records
    int64_t batches

# A response that no request was known for when it came.
cdef struct OrphanResponse:
    int64_t id
    int32_t correlation_id
    Frame frame
    Buffer bytes

# Texts of a connection that every row repeats; the first three once per table.
cdef enum KafkaConnectionText:
    TEXT_CLIENT_ID = 0
    TEXT_BROKER_ADDRESS = NUM_TABLES
    TEXT_CLIENT_ADDRESS = 2 * NUM_TABLES
    TEXT_SOFTWARE_NAME = 3 * NUM_TABLES
    TEXT_SOFTWARE_VERSION, TEXT_MECHANISM, TEXT_PRINCIPAL, NUM_TEXTS

# A hash table: numbers of entries + 1, or 0; `num` is a power of two, or 0.
cdef struct Slots:
    uint32_t* at
    uint32_t num

# The fetch session of a connection; its partitions as fetch_sessions.pyx keeps them.
cdef struct Session:
    bint is_pending             # asked for, not answered yet
    bint is_known
    int64_t id
    int64_t epoch               # of the latest request
    Buffer parts
    Buffer topics
    Buffer text
    Slots part_slots
    Slots topic_slots
    uint32_t idle_topics        # that have no partitions any more

# What the broker did for a call, as those in line behind it have to know.
cdef struct Served:
    int64_t id
    int64_t begun
    int64_t ended
    int wait                    # Wait that took most of this time

# The position in both streams of a call that is over.
cdef struct Spoken:
    int64_t id
    int64_t asked
    int64_t asked_end
    int64_t answered
    int64_t answered_end

cdef enum:
    SPOKEN = 8                  # calls that are over and remembered, for segments that come again

cdef struct KafkaConnection:
    Connection* connection
    int client                  # endpoint that asks, or -1 while unknown
    int role
    int protocol
    bint forced                 # by port
    bint confirmed              # something decoded or paired: this is Kafka
    int plausible_requests
    bint proxied                # a PROXY protocol header came first,
    uint8_t proxied_address[48] # and named this client
    int32_t proxied_len
    int32_t proxied_port
    int carrier                 # what the connection is a tunnel of, see proxy_headers.pxd;
    int phase[2]                # by endpoint: what comes next before what it carries,
    int64_t preamble_left[2]    # and bytes to pass over
    uint64_t messages_hash[2]   # of the first HASHED_MESSAGES of each side, REQUEST and RESPONSE,
    int num_hashed[2]           # and how many these are; -1: one of them was not whole
    int trials                  # decodings in search of a response within this segment
    bint tokens                 # between an answered SaslHandshake v0 and the first request after it
    Framing framing[2]          # by endpoint
    Call* calls                 # ring
    int64_t num_slots
    int64_t head
    int64_t num
    OrphanResponse* orphans
    int num_orphans
    int64_t orphan_bytes
    int64_t given_up_to         # stream position behind the parked responses that had to make room
    int64_t num_calls
    int64_t most_in_flight      # greatest `num` right after a request
    int32_t last_unexpected     # correlation id of the latest response without a request,
    int num_unexpected          # and how many came in a row with ids that count up
    Buffer client_id
    Buffer software_name
    Buffer software_version
    Buffer sasl_mechanism
    Buffer principal
    Buffer early_messages       # not confirmed yet; see messages.pyx
    Buffer stalls               # that wait for their call, see call_stalls.pyx
    int product                 # of the server, by what its answers show; 0: not known, or one without layouts of its own
    int num_told                # answers that could have shown it
    int alert                   # of TLS, where the first response should be; or -1
    int answered_in             # Protocol of the broker's first bytes, where they are none of Kafka's; or NO_PROTOCOL
    int proxy_version           # of the PROXY protocol header, or 0
    bint answers_all            # the broker answers Produce with acks=0, too;
    bint unasked                # while that is not known, the first and the last correlation id of such calls
    int32_t unasked_from        # that no answer was seen to
    int32_t unasked_to
    Hello* hello                # of a TLS connection, or NULL
    Tls* tls                    # how its records are opened; or NULL
    bint decrypted              # its bytes are plaintext of TLS records
    Session session
    TextCache texts[NUM_TEXTS]
    int caller
    int chosen                  # ConnectionChoice, for requests with its client id
    int64_t answered_at         # last packet of the latest response, or NO_TIME
    int64_t muted_until         # the broker said that it reads nothing before then
    int64_t served_id           # the latest call whose time is known
    Served front[8]             # calls that the next ones may have waited for, the longest first,
    int num_front               # which is also the earliest: none later took as long
    Spoken spoken[8]
    uint32_t num_spoken
    bint clocks_differ          # records came that were made after they came
    uint8_t address[2][48]
    int32_t address_len[2]

cdef struct Context             # below; RowSink names it

# Where everything goes that becomes a row; the rooms of rows set it (rows/sink.pyx). Facts and responses may be NULL.
cdef struct RowSink:
    void (*call)(Context* context, KafkaConnection* kafka, Call* call, int status, int reason, Frame* response,
                 Facts* facts) noexcept nogil
    void (*partitions)(Context* context, KafkaConnection* kafka, Call* call, Facts* facts) noexcept nogil
    void (*latency)(Context* context, KafkaConnection* kafka, Call* call, Frame* response, Facts* facts) noexcept nogil
    void (*batches)(Context* context, KafkaConnection* kafka, Call* call, Facts* facts, int64_t time) noexcept nogil
    void (*errors)(Context* context, KafkaConnection* kafka, Call* call, Frame* response, Facts* facts,
                   Program* program) noexcept nogil
    void (*response_only)(Context* context, KafkaConnection* kafka, int64_t id, Frame* response, int32_t correlation_id,
                          int reason) noexcept nogil
    void (*connection)(Context* context, Connection* connection, KafkaConnection* kafka) noexcept nogil
    void (*anomaly)(Context* context, Connection* connection, int64_t call_id, Arrival* arrival, int direction,
                    int64_t offset, int name, int64_t value) noexcept nogil
    void (*event)(Context* context, Connection* connection, KafkaConnection* kafka, TcpEvent* event,
                  int64_t call_id) noexcept nogil
    void (*stalls)(Context* context, KafkaConnection* kafka, Call* call, int64_t asked, int64_t arrived, int64_t left,
                   int64_t answered) noexcept nogil

# Which calls are wanted; without `some`, all of them.
cdef struct Choices:
    bint some
    int64_t first_time          # of the first bytes of their requests, both included
    int64_t last_time
    int64_t first_id            # correlation ids
    int64_t last_id
    uint8_t* lessons            # Lesson, per slot of `apis`
    uint8_t* wanted             # whether a call may be one, per slot and version: MOST_CHOICES of each slot
    int (*may_choose)(void* owner, KafkaConnection* kafka) noexcept nogil

# The most that was kept at one time of what all connections share a bound on.
cdef struct Shared:
    int64_t connections
    int64_t topic_ids
    int64_t held
    int64_t frames
    int64_t waiting
    int64_t memory

# What a word shows, by its hash.
cdef struct KnownWord:
    uint64_t hash
    int product

cdef struct Context:
    Limits limits
    Apis apis
    Table tables[NUM_TABLES]
    TextCache capture_texts[NUM_TABLES]
    int64_t capture_cached      # number of the capture whose name they have
    Tape tape
    Facts facts
    TopicIds topic_ids
    FrameSink frame_sink
    Program** programs          # NUM_LAYOUTS per slot of `apis`, each with one per version, or NULL
    void (*compile)(void* owner, int api, int version, int direction, Program* program) noexcept nogil
    int (*recognise)(void* owner, int kind, Span word) noexcept nogil    # the number of the product that a word shows, or 0
    KnownWord known_words[256]  # what it said already
    void* owner
    int64_t kept_total          # bytes of unfinished frames
    int64_t waiting_total       # bytes of calls and responses that wait for each other
    int64_t learned_total       # bytes of what connections are known to be: client ids, principals,
    int64_t num_kafka_connections
    int64_t below               # bytes of the connections themselves, as the latest packet left them
    int64_t most_bytes          # that all of this may be, see memory_budget.pxd
    Ages sealed                 # connections that have ended and wait for secrets, see late_secrets.pyx;
    bint closing                # none waits any more
    void (*drain)(void* owner) noexcept nogil   # has the tables taken; or NULL
    bint keeps_messages
    uint32_t bucket             # only connections of this bucket are followed,
    uint32_t num_buckets        # if there is more than one
    bint beside                 # other analyzers follow the others at the same time
    Shared shared               # of this one, where there are others
    int64_t since               # only packets of these times are read; NO_TIME: no bound
    int64_t until
    Buffer messages             # see messages.pxd
    Buffer bins                 # int64 per capture and Bin
    Buffer capture_names
    Buffer capture_name_ends    # int64 per capture
    uint8_t ports[8192]         # one bit per port that is Kafka's by the user's word
    Opening opening             # of TLS records
    RowSink rows
    Choices choices


cdef enum:
    IDS_PER_PACKET = 1000       # beyond that, call ids are taken from 2^62 on, 2^24 for each packet


cdef inline int64_t new_call_id(Connection* connection) noexcept nogil:
    """The same whatever else is captured: the connection's latest packet, and the number among the calls that became
    known since."""
    cdef int64_t number = connection.num_ids
    connection.num_ids += 1
    if number < IDS_PER_PACKET:
        return connection.ordinal * IDS_PER_PACKET + number
    return (<int64_t>1 << 62) + (connection.ordinal << 24) + number


cdef inline void count_bytes(Context* context, int64_t capture, int bin, int64_t num) noexcept nogil:
    (<int64_t*>context.bins.data)[capture * NUM_BINS + bin] += num


cdef inline int lost_bin(KafkaConnection* kafka) noexcept nogil:
    """The bin of bytes of this connection that are part of no frame."""
    if kafka.protocol == PROTOCOL_KAFKA:
        return BIN_LOST_FRAMING
    return BIN_UNDECIDED if kafka.protocol == PROTOCOL_UNDECIDED else BIN_NOT_KAFKA


cdef inline bint is_forced(Context* context, uint32_t port) noexcept nogil:
    """Whether this port is Kafka's by the user's word."""
    return context.ports[port >> 3] >> (port & 7) & 1


cdef inline int side_of(KafkaConnection* kafka, int direction) noexcept nogil:
    """0 client to broker, 1 broker to client, -1 not known."""
    if kafka.client < 0:
        return -1
    return 0 if direction == kafka.client else 1


cdef inline int called_client(KafkaConnection* kafka) noexcept nogil:
    """The endpoint that rows call the client: where that is unknown, the one with the higher port."""
    if kafka.client >= 0:
        return kafka.client
    return 1 if kafka.connection.port[1] > kafka.connection.port[0] else 0


cdef inline int why_missing(int cause) noexcept nogil:
    if cause == GAP_CUT:
        return REASON_CUT_BY_SNAPLEN
    if cause == GAP_NOT_DECRYPTED:
        return REASON_NOT_DECRYPTED
    if cause == GAP_PASSED_OVER:
        return REASON_UNDECODABLE
    return REASON_SEGMENT_NOT_CAPTURED if cause == GAP_NOT_CAPTURED else REASON_SEGMENT_LOST


cdef inline int why_torn(Frame* frame) noexcept nogil:
    if frame.cause == GAP_CUT:
        return REASON_CUT_BY_SNAPLEN
    if frame.cause == GAP_CUT_OFF:
        return REASON_CUT_OFF_BY_CLIENT
    return REASON_LIMIT_REACHED if frame.cause < 0 else why_missing(frame.cause)


cdef inline void confirm(KafkaConnection* kafka) noexcept nogil:
    kafka.confirmed = True
    kafka.protocol = PROTOCOL_KAFKA


cdef inline Call* waiting_call(KafkaConnection* kafka, int64_t number) noexcept nogil:
    """The call that waits behind `number` others."""
    return &kafka.calls[(kafka.head + number) & (kafka.num_slots - 1)]
