# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The bytes of whole messages, kept for `show` and other readers.

Rules
  1. Only what is confirmed to be Kafka's is handed out; what came before waits with its connection, up to EARLY_BYTES.
  2. They lie one behind the other until their call is over: Message, its bytes (header and body, without the size). Then
     those that the reader wants become Python's, and the others go.
  3. What memory does not hold is left out whole.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport bsearch, qsort
from libc.string cimport memcpy, memset

from kwsniff.core.bytes.buffer cimport Buffer, append, append_raw, contents, release
from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.bytes.span cimport Span, copy_out, drop, keep
from kwsniff.core.capture.packets cimport NO_TIME

cdef enum:
    EARLY_BYTES = 1024          # the first request or two of a connection, which a snaplen cut

cdef tuple MESSAGE_KINDS = ("request", "response", "unexpected_response", "sasl_token")


cdef void keep_message(Context* context, KafkaConnection* kafka, Frame* frame, int kind, int side, Call* call, int version,
                       int32_t correlation_id) noexcept nogil:
    """`call`: the call it belongs to, or NULL."""
    cdef Message message
    cdef Span data = drop(frame.bytes, 4)
    cdef Buffer* out = &context.messages if kafka.confirmed else &kafka.early_messages
    cdef size_t before = out.len
    if kafka.confirmed and kafka.early_messages.len:
        append(out, contents(&kafka.early_messages))
        release(&kafka.early_messages)
        before = out.len
    if not kafka.confirmed and before + sizeof(Message) + data.num > EARLY_BYTES:
        return
    memset(&message, 0, sizeof(Message))
    message.num_bytes = <int64_t>data.num
    message.call_id = call.id if call != NULL else -1
    message.connection_id = kafka.connection.id
    message.capture = frame.first.capture
    message.last_capture = frame.last.capture if frame.ended else frame.first.capture
    message.first_time = frame.first.time
    message.last_time = frame.last.time if frame.ended else NO_TIME
    message.first_frame = frame.first.frame
    message.last_frame = frame.last.frame if frame.ended else -1
    message.offset = frame.offset
    message.length = frame.length
    message.latency = -1
    if kind == MESSAGE_RESPONSE and frame.ended and frame.last.time != NO_TIME and call.first.time != NO_TIME:
        message.latency = frame.last.ready - call.first.time
    message.correlation_id = correlation_id
    message.key = call.key if call != NULL else -1
    message.product = context.apis.ranges[call.slot].id >> 16 if call != NULL and call.slot >= 0 else 0
    message.version = version
    message.kind = kind
    message.side = side
    message.torn = frame.torn
    message.client_port = kafka.connection.port[kafka.client]
    message.broker_port = kafka.connection.port[1 - kafka.client]
    memcpy(message.client_address, kafka.address[kafka.client], sizeof(message.client_address))
    memcpy(message.broker_address, kafka.address[1 - kafka.client], sizeof(message.broker_address))
    if not (append_raw(out, &message, sizeof(Message)) and append(out, data)):
        out.len = before


cdef struct Ended:
    int64_t call_id
    int64_t fits                # it is wanted


cdef int by_call(const void* one, const void* other) noexcept nogil:
    cdef int64_t a = (<const Ended*>one).call_id
    cdef int64_t b = (<const Ended*>other).call_id
    return (a > b) - (a < b)


cdef list choose_messages(Buffer* messages, bytes ended, bint alone, int64_t most):
    """Those of calls that are over, and alone, that are wanted, as dicts; the others of such calls are dropped.

    `ended`: Ended of each call that is over. `alone`: messages of no call are wanted, too. The oldest that wait are handed out while all take more than `most`."""
    cdef Message message
    cdef Ended* rows = NULL
    cdef Ended* row
    cdef size_t num = <size_t>len(ended) // sizeof(Ended)
    cdef Span rest = contents(messages)
    cdef Span data
    cdef Buffer left
    cdef bint wanted
    cdef list taken = []
    copy = bytearray(ended)
    if num:
        rows = <Ended*><char*>copy
        qsort(rows, num, sizeof(Ended), by_call)
    memset(&left, 0, sizeof(Buffer))
    while rest.num:
        data = next_message(&rest, &message)
        row = find_ended(rows, num, message.call_id)
        if row != NULL:
            wanted = row.fits != 0
        elif message.call_id < 0:
            wanted = alone
        else:
            wanted = not (append_raw(&left, &message, sizeof(Message)) and append(&left, data))
        if wanted:
            taken.append(as_dict(&message, data))
    rest = contents(&left)
    while rest.num > <size_t>most:
        data = next_message(&rest, &message)
        taken.append(as_dict(&message, data))
    messages.len = 0
    append(messages, rest)      # it held them before
    release(&left)
    return taken


cdef Span next_message(Span* rest, Message* message) noexcept nogil:
    """Its bytes; `rest` then begins behind it."""
    cdef Span data
    copy_out(rest[0], 0, message, sizeof(Message))
    data = keep(drop(rest[0], sizeof(Message)), <size_t>message.num_bytes)
    rest[0] = drop(rest[0], sizeof(Message) + data.num)
    return data


cdef Ended* find_ended(Ended* rows, size_t num, int64_t call_id) noexcept nogil:
    cdef Ended key
    key.call_id = call_id
    return <Ended*>bsearch(&key, rows, num, sizeof(Ended), by_call) if num and call_id >= 0 else NULL


cdef dict as_dict(Message* message, Span data):
    return {
        "kind": MESSAGE_KINDS[message.kind],
        "direction": message.side,
        "call_id": message.call_id if message.call_id >= 0 else None,
        "connection_id": message.connection_id,
        "capture": message.capture,
        "last_capture": message.last_capture,
        "client_address": message.client_address.decode(),
        "client_port": message.client_port,
        "broker_address": message.broker_address.decode(),
        "broker_port": message.broker_port,
        "api_key": message.key if message.key >= 0 else None,
        "product": message.product,
        "api_version": message.version if message.version >= 0 else None,
        "correlation_id": message.correlation_id if message.kind != MESSAGE_TOKEN else None,
        "first_time": None if message.first_time == NO_TIME else message.first_time,
        "last_time": None if message.last_time == NO_TIME else message.last_time,
        "first_frame": message.first_frame,
        "last_frame": message.last_frame if message.last_frame >= 0 else None,
        "stream_offset": message.offset,
        "length": message.length,
        "latency_ns": message.latency if message.latency >= 0 else None,
        "torn": bool(message.torn),
        "data": (<const char*>data.at)[:data.num],
    }
