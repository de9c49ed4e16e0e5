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

from kwsniff.core.tcp.parts cimport traffic_of
from kwsniff.core.bytes.buffer cimport Buffer, shrink
from kwsniff.core.kafka.request_texts cimport forget_texts
from kwsniff.core.kafka.kafka_connection cimport NO_PROTOCOL, SPARE_TEXT, Call, Context, KafkaConnection, new_call_id, waiting_call
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.bytes.span cimport wipe
from kwsniff.core.kafka.row_sink cimport write_anomaly
from kwsniff.core.kafka.unanswered cimport is_under_way, may_be_missed, resets_unseen, why_missed

from kwsniff.core.declared cimport *


cdef Call* add_call(Context* context, KafkaConnection* kafka, Frame* frame) noexcept nogil:
    """A new call at the ring's end. Beyond `in_flight_requests` the oldest one makes room."""
    cdef Call* call
    cdef Buffer text, parts
    if kafka.num >= context.limits.in_flight_requests or (
            kafka.num and context.waiting_total > context.limits.in_flight_bytes_total):
        call = waiting_call(kafka, 0)
        write_anomaly(context, kafka.connection, call.id, &frame.first, 0, frame.offset, ANOMALY_OUTSTANDING_LIMIT,
                      kafka.num)
        finish_oldest(context, kafka, STATUS_UNANSWERED, REASON_LIMIT_REACHED)
    if kafka.num == kafka.num_slots and not add_slots(context, kafka, frame):
        return NULL
    call = waiting_call(kafka, kafka.num)
    kafka.num += 1
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
    call.slot = -1
    forget_texts(call)
    call.id = new_call_id(kafka.connection)
    call.capture = kafka.connection.last_capture
    call.first = frame.first
    call.last = frame.last
    call.length = frame.length
    call.ended = frame.ended
    call.captured = frame.captured
    call.bytes_capture = frame.capture
    call.end_offset = frame.offset + frame.length
    call.broker_gaps = kafka.framing[1 - kafka.client].gaps
    call.reason = REASON_NONE
    return call


cdef bint add_slots(Context* context, KafkaConnection* kafka, Frame* frame) noexcept nogil:
    """Room for as many calls again."""
    cdef int64_t num_slots = 2 * kafka.num_slots if kafka.num_slots else 1, i
    cdef Call* calls = <Call*>calloc(<size_t>num_slots, sizeof(Call))
    if calls == NULL:
        write_anomaly(context, kafka.connection, -1, &frame.first, 0, frame.offset, ANOMALY_MEMORY_REFUSED, 0)
        return False
    for i in range(kafka.num):
        calls[i] = waiting_call(kafka, i)[0]
    free(kafka.calls)
    context.waiting_total += (num_slots - kafka.num_slots) * <int64_t>sizeof(Call)
    kafka.calls = calls
    kafka.num_slots = num_slots
    kafka.head = 0
    return True


cdef void finish_oldest(Context* context, KafkaConnection* kafka, int status, int reason) noexcept nogil:
    cdef Call* call = waiting_call(kafka, 0)
    kafka.head += 1
    kafka.num -= 1
    finish_call(context, kafka, call, status, reason, NULL, NULL)


cdef void finish_passed(Context* context, KafkaConnection* kafka) noexcept nogil:
    """The oldest call: later ones were answered, and no byte is missing that its answer could have been."""
    cdef Call* call = waiting_call(kafka, 0)
    write_anomaly(context, kafka.connection, call.id, &call.passed_by, 1, call.passed_offset, ANOMALY_PASSED_OVER,
                  call.correlation_id)
    finish_oldest(context, kafka, STATUS_UNANSWERED, REASON_PASSED_OVER)


cdef void finish_all(Context* context, KafkaConnection* kafka) noexcept nogil:
    """The connection ends: nothing that waits is answered any more."""
    cdef int status, reason
    while kafka.num:
        if needs_no_answer(waiting_call(kafka, 0)):
            finish_oldest(context, kafka, STATUS_NO_RESPONSE_EXPECTED, waiting_call(kafka, 0).reason)
            continue
        explain_silence(kafka, waiting_call(kafka, 0), &status, &reason)
        if status == STATUS_UNANSWERED and waiting_call(kafka, 0).passed:
            finish_passed(context, kafka)
            continue
        finish_oldest(context, kafka, status, reason)


cdef void explain_silence(KafkaConnection* kafka, Call* call, int* status, int* reason) noexcept nogil:
    """Why a call has no response when its connection ends: not sent, or not seen."""
    cdef int broker = 1 - kafka.client
    cdef int end = kafka.connection.end
    if traffic_of(kafka.connection, broker).packets == 0:
        status[0] = STATUS_RESPONSE_NOT_CAPTURED
        reason[0] = REASON_ONE_DIRECTION
    elif kafka.answered_in != NO_PROTOCOL:
        status[0] = STATUS_UNANSWERED
        reason[0] = REASON_NOT_KAFKA
    elif (may_be_missed(kafka, call) or is_under_way(kafka, call)
            or resets_unseen(kafka.connection, broker)):
        status[0] = STATUS_RESPONSE_NOT_CAPTURED
        reason[0] = why_missed(kafka, call)
    else:
        status[0] = STATUS_UNANSWERED
        reason[0] = REASON_OPEN_AT_END
        if end == ENDING_FIN: reason[0] = REASON_CONNECTION_CLOSED
        elif end == ENDING_RESET: reason[0] = REASON_CONNECTION_RESET
        elif end == ENDING_REUSED: reason[0] = REASON_CONNECTION_REUSED
        elif end == ENDING_EVICTED: reason[0] = REASON_CONNECTION_EVICTED
