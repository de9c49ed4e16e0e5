# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Responses that come before their requests.

Rules
  1. Captures may record packets a little out of order, or a request's segment may still be missing: a response without
     a request is parked, within limits, and paired when its request arrives.
  2. It is paired only if the broker had acknowledged the whole request when it sent the response, and the client not the
     response when it asked.
  3. Given up, it is a response of its own: kwsniff never invents the call it belonged to.
  4. Where nothing but answers was captured, some in a row whose ids count up confirm each other; on a port that is
     Kafka's by the user's word one is enough.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport calloc
from libc.string cimport memset

from kwsniff.core.octets.buffer cimport append, release
from kwsniff.core.kafka.dialog cimport (
    RESPONSE, Call, Context, Dialog, Parked, confirm, count_bytes, lost_bin, new_call_id, why_missing,
)
from kwsniff.core.kafka.frames cimport Frame, Framing
from kwsniff.core.kafka.kept_messages cimport MESSAGE_UNEXPECTED, keep_message
from kwsniff.core.kafka.memory cimport parked_slots
from kwsniff.core.kafka.silence cimport may_answer
from kwsniff.core.octets.octets cimport keep, make_octets
from kwsniff.core.kafka.row_sink cimport write_anomaly, write_response_only
from kwsniff.core.declared cimport *
from kwsniff.core.tcp.connections cimport GAP_LOST, GAP_NOT_CAPTURED, Direction

cdef enum:
    MIN_UNEXPECTED = 3          # responses in a row that confirm each other


cdef bint park(Context* context, Dialog* dialog, Frame* frame, int32_t correlation_id) noexcept nogil:
    """Keeps a response for a request that may still come. False: it is not believed to be one."""
    cdef Parked* parked
    cdef int32_t step = <int32_t>(<uint32_t>correlation_id - <uint32_t>dialog.last_unexpected)
    dialog.num_unexpected = dialog.num_unexpected + 1 if dialog.num_unexpected and 1 <= step <= 16 else 1
    dialog.last_unexpected = correlation_id
    if dialog.num_unexpected >= MIN_UNEXPECTED and dialog.connection.direction[dialog.client].bytes == 0:
        confirm(dialog)         # nothing but answers was captured, and they count up
    while dialog.num_parked and (dialog.num_parked >= context.limits.parked_responses
                                 or dialog.parked_bytes + <int64_t>frame.bytes.num > context.limits.parked_bytes
                                 or context.waiting_total + <int64_t>frame.bytes.num
                                 > context.limits.waiting_bytes_total):
        write_anomaly(context, dialog.connection, -1, &frame.first, 1, frame.offset, ANOMALY_PARKED_LIMIT,
                      dialog.num_parked)
        if dialog.given_up_to < dialog.parked[0].frame.offset + 1:
            dialog.given_up_to = dialog.parked[0].frame.offset + 1
        give_up_parked(context, dialog, 0)
    if dialog.parked == NULL:
        dialog.parked = <Parked*>calloc(<size_t>context.limits.parked_responses, sizeof(Parked))
        if dialog.parked == NULL:
            count_bytes(context, frame.capture, BIN_MEMORY_REFUSED, frame.captured)
            return True
        context.waiting_total += parked_slots(context)
    parked = &dialog.parked[dialog.num_parked]
    memset(parked, 0, sizeof(Parked))
    parked.id = new_call_id(dialog.connection)
    parked.frame = frame[0]
    parked.correlation_id = correlation_id
    if not append(&parked.bytes, keep(frame.bytes, <size_t>context.limits.parked_bytes)):
        release(&parked.bytes)
        count_bytes(context, frame.capture, BIN_MEMORY_REFUSED, frame.captured)
        return True
    if parked.bytes.len < frame.bytes.num:
        parked.frame.torn = True
        parked.frame.cause = -1
    dialog.parked_bytes += <int64_t>parked.bytes.len
    context.waiting_total += <int64_t>parked.bytes.cap
    dialog.num_parked += 1
    return True


cdef void unpark(Context* context, Dialog* dialog, int number, Parked* parked) noexcept nogil:
    cdef int i
    parked[0] = dialog.parked[number]
    parked.frame.bytes = make_octets(parked.bytes.data, parked.bytes.len)
    dialog.parked_bytes -= <int64_t>parked.bytes.len
    context.waiting_total -= <int64_t>parked.bytes.cap
    dialog.num_parked -= 1
    for i in range(number, dialog.num_parked):
        dialog.parked[i] = dialog.parked[i + 1]


cdef bint unpark_answer(Context* context, Dialog* dialog, Call* call, Parked* parked) noexcept nogil:
    """The parked answer to `call`, if there is one: by packets that the capture recorded before the call's own, or that
    did not wait for a hole. Its bytes are the caller's."""
    cdef int i
    for i in range(dialog.num_parked):
        if dialog.parked[i].correlation_id == call.correlation_id and may_answer(dialog, &dialog.parked[i].frame, call):
            unpark(context, dialog, i, parked)
            return True
    return False


cdef void give_up_parked(Context* context, Dialog* dialog, int number) noexcept nogil:
    cdef Parked parked
    cdef int reason = why_unexpected(dialog)
    if dialog.forced:
        confirm(dialog)         # a frame in step on a port that is Kafka's
    unpark(context, dialog, number, &parked)
    count_bytes(context, parked.frame.capture, BIN_RESPONSE_ONLY if dialog.confirmed else lost_bin(dialog),
                parked.frame.captured)
    if dialog.confirmed:
        if reason == REASON_NONE:
            write_anomaly(context, dialog.connection, -1, &parked.frame.first, 1, parked.frame.offset,
                          ANOMALY_UNEXPECTED_RESPONSE, parked.correlation_id)
        write_response_only(context, dialog, parked.id, &parked.frame, parked.correlation_id, reason)
        if context.keeps_messages:
            keep_message(context, dialog, &parked.frame, MESSAGE_UNEXPECTED, RESPONSE, NULL, -1,
                         parked.correlation_id)
    release(&parked.bytes)


cdef int why_unexpected(Dialog* dialog) noexcept nogil:
    """Why the request of a response was not seen."""
    cdef Framing* asks = &dialog.framing[dialog.client]
    cdef Direction* own = &dialog.connection.direction[dialog.client]
    if own.packets == 0:
        return REASON_ONE_DIRECTION
    if own.bytes == 0 and own.acked_known and own.acked != own.acked_from:
        return REASON_SEGMENT_NOT_CAPTURED      # more and more was acknowledged, and nothing of it is here
    if asks.gaps:
        # What was answered had arrived.
        return why_missing(GAP_NOT_CAPTURED if asks.gap_cause == GAP_LOST else asks.gap_cause)
    return REASON_CAPTURE_BEGAN_LATER if dialog.connection.opener < 0 else REASON_NONE
