# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Whole messages, kept for readers that want to see them.

Rules
  1. Only what is confirmed to be Kafka's is handed out; what came before waits with its connection, up to EARLY_BYTES.
  2. They lie one behind the other until the reader takes them: Message, its bytes (header and body, without the size).
  3. What memory does not hold is left out whole.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

from kwsniff.core.octets.buffer cimport Buffer, append, append_raw, contents, release
from kwsniff.core.kafka.dialog cimport Call, Context, Dialog
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.octets.octets cimport Octets, drop
from kwsniff.core.capture.packets cimport NO_TIME

cdef enum:
    EARLY_BYTES = 1024          # the first request or two of a connection, which a snaplen cut

cdef tuple MESSAGE_KINDS = ("request", "response", "unexpected_response", "sasl_token")


cdef void keep_message(Context* context, Dialog* dialog, Frame* frame, int kind, int side, Call* call, int version,
                       int32_t correlation_id) noexcept nogil:
    """`call`: the call it belongs to, or NULL."""
    cdef Message message
    cdef Octets data = drop(frame.bytes, 4)
    cdef Buffer* out = &context.messages if dialog.confirmed else &dialog.early_messages
    cdef size_t before = out.len
    if dialog.confirmed and dialog.early_messages.len:
        append(out, contents(&dialog.early_messages))
        release(&dialog.early_messages)
        before = out.len
    if not dialog.confirmed and before + sizeof(Message) + data.num > EARLY_BYTES:
        return
    memset(&message, 0, sizeof(Message))
    message.num_bytes = <int64_t>data.num
    message.call_id = call.id if call != NULL else -1
    message.connection_id = dialog.connection.id
    message.capture = frame.first.capture
    message.first_time = frame.first.time
    message.last_time = frame.last.time if frame.ended else NO_TIME
    message.first_frame = frame.first.frame
    message.last_frame = frame.last.frame if frame.ended else -1
    message.offset = frame.offset
    message.length = frame.length
    message.latency = -1
    if kind == MESSAGE_RESPONSE and frame.ended and frame.last.time != NO_TIME and call.first.time != NO_TIME:
        message.latency = frame.last.time - call.first.time
    message.correlation_id = correlation_id
    message.key = call.key if call != NULL else -1
    message.version = version
    message.kind = kind
    message.side = side
    message.torn = frame.torn
    message.client_port = dialog.connection.port[dialog.client]
    message.broker_port = dialog.connection.port[1 - dialog.client]
    memcpy(message.client_address, dialog.address[dialog.client], sizeof(message.client_address))
    memcpy(message.broker_address, dialog.address[1 - dialog.client], sizeof(message.broker_address))
    if not (append_raw(out, &message, sizeof(Message)) and append(out, data)):
        out.len = before


cdef list drain_messages(Buffer* messages):
    """All that wait, as dicts."""
    cdef Message message
    cdef size_t at = 0
    cdef list taken = []
    data = messages.data
    while at < messages.len:
        memcpy(&message, &data[at], sizeof(Message))
        at += sizeof(Message)
        taken.append({
            "kind": MESSAGE_KINDS[message.kind],
            "direction": message.side,
            "call_id": message.call_id if message.call_id >= 0 else None,
            "connection_id": message.connection_id,
            "capture": message.capture,
            "client_address": message.client_address.decode(),
            "client_port": message.client_port,
            "broker_address": message.broker_address.decode(),
            "broker_port": message.broker_port,
            "api_key": message.key if message.key >= 0 else None,
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
            "data": (<const char*>&data[at])[:message.num_bytes],
        })
        at += <size_t>message.num_bytes
    messages.len = 0
    return taken
