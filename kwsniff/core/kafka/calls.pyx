# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Requests that wait for their response, from the first byte to their row.

Rules
  1. A broker answers one connection in order (KafkaChannel, muted while a request is in flight): calls wait in a ring,
     and the oldest one ends first.
  2. Unconfirmed calls leave no rows; their bytes are still counted.
  3. Beyond the limits of one connection or of all of them together the oldest call of the connection makes room.
  4. A call that ends without a response says why: not sent, or not seen.

    | free | head: oldest | ... | head + num - 1: newest | free |
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from kwsniff.core.octets.buffer cimport Buffer, shrink
from kwsniff.core.kafka.kept_texts cimport forget_texts
from kwsniff.core.kafka.dialog cimport NO_PROTOCOL, SPARE_TEXT, Call, Context, Dialog, new_call_id, waiting_call
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.octets.octets cimport wipe
from kwsniff.core.kafka.row_sink cimport write_anomaly
from kwsniff.core.kafka.silence cimport is_under_way, may_be_missed, resets_unseen, why_missed

from kwsniff.core.declared cimport *


cdef Call* add_call(Context* context, Dialog* dialog, Frame* frame) noexcept nogil:
    """A new call at the ring's end. Beyond `outstanding_calls` the oldest one makes room."""
    cdef Call* call
    cdef Buffer text, parts
    if dialog.num >= context.limits.outstanding_calls or (
            dialog.num and context.waiting_total > context.limits.waiting_bytes_total):
        call = waiting_call(dialog, 0)
        write_anomaly(context, dialog.connection, call.id, &frame.first, 0, frame.offset, ANOMALY_OUTSTANDING_LIMIT,
                      dialog.num)
        finish_oldest(context, dialog, STATUS_UNANSWERED, REASON_LIMIT_REACHED)
    if dialog.num == dialog.num_slots and not add_slots(context, dialog, frame):
        return NULL
    call = waiting_call(dialog, dialog.num)
    dialog.num += 1
    context.waiting_total -= <int64_t>(call.text.cap + call.parts.cap)
    shrink(&call.text, SPARE_TEXT)
    shrink(&call.parts, SPARE_TEXT)
    context.waiting_total += <int64_t>(call.text.cap + call.parts.cap)
    text = call.text
    parts = call.parts
    wipe(call, sizeof(Call))
    call.text = text
    call.parts = parts
    call.caller = CALLER_UNKNOWN
    forget_texts(call)
    call.id = new_call_id(dialog.connection)
    call.capture = dialog.connection.last_capture
    call.first = frame.first
    call.last = frame.last
    call.length = frame.length
    call.ended = frame.ended
    call.captured = frame.captured
    call.bytes_capture = frame.capture
    call.end_offset = frame.offset + frame.length
    call.broker_gaps = dialog.framing[1 - dialog.client].gaps
    call.reason = REASON_NONE
    return call


cdef bint add_slots(Context* context, Dialog* dialog, Frame* frame) noexcept nogil:
    """Room for as many calls again."""
    cdef int64_t num_slots = 2 * dialog.num_slots if dialog.num_slots else 1, i
    cdef Call* calls = <Call*>calloc(<size_t>num_slots, sizeof(Call))
    if calls == NULL:
        write_anomaly(context, dialog.connection, -1, &frame.first, 0, frame.offset, ANOMALY_MEMORY_REFUSED, 0)
        return False
    for i in range(dialog.num):
        calls[i] = waiting_call(dialog, i)[0]
    free(dialog.calls)
    context.waiting_total += (num_slots - dialog.num_slots) * <int64_t>sizeof(Call)
    dialog.calls = calls
    dialog.num_slots = num_slots
    dialog.head = 0
    return True


cdef void finish_oldest(Context* context, Dialog* dialog, int status, int reason) noexcept nogil:
    cdef Call* call = waiting_call(dialog, 0)
    dialog.head += 1
    dialog.num -= 1
    finish_call(context, dialog, call, status, reason, NULL, NULL)


cdef void finish_passed(Context* context, Dialog* dialog) noexcept nogil:
    """The oldest call: later ones were answered, and no byte is missing that its answer could have been."""
    cdef Call* call = waiting_call(dialog, 0)
    write_anomaly(context, dialog.connection, call.id, &call.passed_by, 1, call.passed_offset, ANOMALY_PASSED_OVER,
                  call.correlation_id)
    finish_oldest(context, dialog, STATUS_UNANSWERED, REASON_PASSED_OVER)


cdef void finish_all(Context* context, Dialog* dialog) noexcept nogil:
    """The connection ends: nothing that waits is answered any more."""
    cdef int status, reason
    while dialog.num:
        if needs_no_answer(waiting_call(dialog, 0)):
            finish_oldest(context, dialog, STATUS_NO_RESPONSE_EXPECTED, waiting_call(dialog, 0).reason)
            continue
        explain_silence(dialog, waiting_call(dialog, 0), &status, &reason)
        if status == STATUS_UNANSWERED and waiting_call(dialog, 0).passed:
            finish_passed(context, dialog)
            continue
        finish_oldest(context, dialog, status, reason)


cdef void explain_silence(Dialog* dialog, Call* call, int* status, int* reason) noexcept nogil:
    """Why a call has no response when its connection ends: not sent, or not seen."""
    cdef int broker = 1 - dialog.client
    cdef int end = dialog.connection.end
    if dialog.connection.direction[broker].packets == 0:
        status[0] = STATUS_RESPONSE_NOT_CAPTURED
        reason[0] = REASON_ONE_DIRECTION
    elif dialog.answered_in != NO_PROTOCOL:
        status[0] = STATUS_UNANSWERED
        reason[0] = REASON_NOT_KAFKA
    elif (may_be_missed(dialog, call) or is_under_way(dialog, call)
            or resets_unseen(dialog.connection, broker)):
        status[0] = STATUS_RESPONSE_NOT_CAPTURED
        reason[0] = why_missed(dialog, call)
    else:
        status[0] = STATUS_UNANSWERED
        reason[0] = REASON_OPEN_AT_END
        if end == END_FIN: reason[0] = REASON_CONNECTION_CLOSED
        elif end == END_RESET: reason[0] = REASON_CONNECTION_RESET
        elif end == END_REUSED: reason[0] = REASON_CONNECTION_REUSED
        elif end == END_EVICTED: reason[0] = REASON_CONNECTION_EVICTED
