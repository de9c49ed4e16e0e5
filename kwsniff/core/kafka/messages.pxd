# cython: language_level=3
# The bytes of whole messages, kept for `show` and other readers. messages.pyx has the rules.

from libc.stdint cimport int32_t, int64_t, uint8_t

from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection
from kwsniff.core.kafka.frames cimport Frame

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
    int64_t last_capture        # of its last byte
    int64_t first_time
    int64_t last_time
    int64_t first_frame
    int64_t last_frame
    int64_t offset
    int64_t length
    int64_t latency             # of a response, or -1
    int32_t correlation_id
    int32_t key                 # -1: not known
    int32_t product             # whose API it is, 0: every server's
    int32_t version             # the one its body is written in
    int32_t kind
    int32_t side                # 0 client to broker
    int32_t torn
    int32_t client_port
    int32_t broker_port
    uint8_t client_address[48]
    uint8_t broker_address[48]

cdef void keep_message(Context* context, KafkaConnection* kafka, Frame* frame, int kind, int side, Call* call, int version,
                       int32_t correlation_id) noexcept nogil
cdef list choose_messages(Buffer* messages, bytes ended, bint alone, int64_t most)
