# cython: language_level=3
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kwsniff.core.buffer cimport Buffer
from kwsniff.core.columns cimport Table, TextCache
from kwsniff.core.facts cimport Facts, Known
from kwsniff.core.frames cimport Frame, FrameSink, Framing
from kwsniff.core.limits cimport Limits
from kwsniff.core.octets cimport Octets
from kwsniff.core.recognition cimport Apis
from kwsniff.core.streams cimport Arrival, Connection
from kwsniff.core.tape cimport Op, Tape
from kwsniff.core.topic_ids cimport TopicIds

cdef enum:
    NUM_VERSIONS = 64           # versions per API that a program can be kept for

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

# A request that waits for its response, or whose row is being written.
cdef struct Call:
    int64_t id
    int64_t capture
    bint known                  # its header could be read
    int16_t key
    int16_t version
    int32_t correlation_id
    Arrival first
    Arrival last
    int64_t length
    bint ended                  # the packet of its last byte is known
    int64_t captured            # payload bytes that capture number bytes_capture gave it
    int64_t bytes_capture
    int64_t end_offset          # stream position behind it
    int64_t broker_gaps         # gaps of the broker's direction when it was asked
    int reason                  # why its facts are not whole, or REASON_NONE
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
    Known max_wait
    Known min_bytes
    int caller
    int64_t most_facts          # bytes that may be kept of what it says
    Buffer parts                # PartRow, what the request says of each partition
    Buffer text                 # client id, group, transactional id, then per topic: u32 length, name
    int32_t client_id_len       # -1: null
    int32_t group_len
    int32_t transactional_id_len
    uint32_t member_at          # where the member's id stands in the text; the group instance follows it
    uint32_t protocol_type_at
    int32_t member_len
    int32_t group_instance_len
    int32_t protocol_type_len
    int32_t num_topics

# A partition that a request names; `name_at` counts in the call's text.
cdef struct PartRow:
    uint32_t name_at
    int32_t name_len            # -1: no name
    uint8_t topic_id[16]
    bint has_topic_id
    bint answered
    int32_t partition
    Known offset
    Known record_bytes
    Known records
    int64_t batches

# A response that no request was known for when it came.
cdef struct Parked:
    int32_t correlation_id
    Frame frame
    Buffer bytes

# Texts of a connection that every row repeats; the first three once per table.
cdef enum DialogText:
    TEXT_CLIENT_ID = 0
    TEXT_BROKER_ADDRESS = 7
    TEXT_CLIENT_ADDRESS = 14
    TEXT_SOFTWARE_NAME = 21
    TEXT_SOFTWARE_VERSION, TEXT_MECHANISM, TEXT_PRINCIPAL, NUM_TEXTS

cdef struct Dialog:
    Connection* connection
    int client                  # endpoint that asks, or -1 while nobody knows
    int role
    int protocol
    bint forced                 # by port
    bint confirmed              # something decoded or paired: this is Kafka
    int plausible_requests
    bint proxied                # a PROXY protocol header came first
    int trials                  # decodings in search of a response within this segment
    bint tokens                 # between an answered SaslHandshake v0 and the first request after it
    Framing framing[2]          # by endpoint
    Call* calls                 # ring
    int64_t num_slots
    int64_t head
    int64_t num
    Parked* parked
    int num_parked
    int64_t parked_bytes
    int64_t num_calls
    int32_t last_unexpected     # correlation id of the latest response without a request,
    int num_unexpected          # and how many came in a row with ids that count up
    Buffer client_id
    Buffer software_name
    Buffer software_version
    Buffer sasl_mechanism
    Buffer principal
    TextCache texts[25]
    int caller
    int64_t answered_at         # last packet of the latest response, or NO_TIME
    int64_t muted_until         # the broker said that it reads nothing before then
    uint8_t address[2][48]
    int32_t address_len[2]

cdef enum MessageKind:
    MESSAGE_REQUEST = 0
    MESSAGE_RESPONSE = 1
    MESSAGE_UNEXPECTED = 2      # a response whose request is not known
    MESSAGE_TOKEN = 3           # a bare SASL token

# A whole message for readers that want to see it; its bytes follow behind.
cdef struct Message:
    int64_t num_bytes
    int64_t call_id             # -1: none
    int64_t connection_id
    int64_t capture
    int64_t first_time
    int64_t last_time
    int64_t first_frame
    int64_t last_frame
    int64_t offset
    int64_t length
    int64_t latency             # of a response, or -1
    int32_t correlation_id
    int32_t key                 # -1: not known
    int32_t version             # the one its body is written in
    int32_t kind
    int32_t side                # 0 client to broker
    int32_t torn
    int32_t client_port
    int32_t broker_port
    uint8_t client_address[48]
    uint8_t broker_address[48]

cdef struct Context:
    Limits limits
    Apis apis
    Table tables[7]
    TextCache capture_texts[7]
    int64_t capture_cached      # number of the capture whose name they have
    Tape tape
    Facts facts
    TopicIds topic_ids
    FrameSink frame_sink
    Program* programs[2][128]
    void (*compile)(void* owner, int key, int version, int direction, Program* program) noexcept nogil
    void* owner
    int64_t next_call_id
    int64_t kept_total          # bytes of unfinished frames
    int64_t waiting_total       # bytes of calls and responses that wait for each other
    bint keeps_messages
    Buffer messages             # Message, its bytes, and so on
    Buffer bins                 # int64 per capture and Bin
    Buffer capture_names
    Buffer capture_name_ends    # int64 per capture
    uint8_t ports[8192]         # one bit per port that is Kafka's by the user's word

cdef void start_context(Context* context, uint64_t seed) noexcept nogil
cdef void free_context(Context* context) noexcept nogil
cdef void close_dialog(Context* context, Dialog* dialog) noexcept nogil
cdef void take_bytes(void* context, Connection* connection, int direction, Arrival* arrival, Octets data) noexcept nogil
cdef void take_gap(void* context, Connection* connection, int direction, Arrival* arrival, int64_t num, int cause) noexcept nogil
cdef void take_end(void* context, Connection* connection) noexcept nogil
cdef void take_dropped(void* context, int64_t capture, int cause, int64_t num) noexcept nogil
cdef void take_oddity(void* context, Connection* connection, int direction, Arrival* arrival, int oddity, int64_t value) noexcept nogil
