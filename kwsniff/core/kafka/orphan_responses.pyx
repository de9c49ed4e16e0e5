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

from kwsniff.core.bytes.buffer cimport append, release
from kwsniff.core.kafka.kafka_connection cimport (
    RESPONSE, Call, Context, KafkaConnection, OrphanResponse, confirm, count_bytes, lost_bin, new_call_id, why_missing,
)
from kwsniff.core.kafka.frames cimport Frame, Framing
from kwsniff.core.kafka.messages cimport MESSAGE_UNEXPECTED, keep_message
from kwsniff.core.kafka.memory_budget cimport orphan_slots
from kwsniff.core.kafka.unanswered cimport may_answer
from kwsniff.core.bytes.span cimport keep, make_span
from kwsniff.core.kafka.row_sink cimport write_anomaly, write_response_only
from kwsniff.core.declared cimport *
from kwsniff.core.tcp.arrivals cimport GAP_LOST, GAP_NOT_CAPTURED
from kwsniff.core.tcp.parts cimport sequence_of, traffic_of
from kwsniff.core.tcp.send_sequence cimport SendSequence
from kwsniff.core.tcp.traffic cimport Traffic

cdef enum:
    MIN_UNEXPECTED = 3          # responses in a row that confirm each other


cdef bint park(Context* context, KafkaConnection* kafka, Frame* frame, int32_t correlation_id) noexcept nogil:
    """Keeps a response for a request that may still come. False: it is not believed to be one."""
    cdef OrphanResponse* orphans
    cdef int32_t step = <int32_t>(<uint32_t>correlation_id - <uint32_t>kafka.last_unexpected)
    kafka.num_unexpected = kafka.num_unexpected + 1 if kafka.num_unexpected and 1 <= step <= 16 else 1
    kafka.last_unexpected = correlation_id
    if kafka.num_unexpected >= MIN_UNEXPECTED and traffic_of(kafka.connection, kafka.client).bytes == 0:
        confirm(kafka)         # nothing but answers was captured, and they count up
    while kafka.num_orphans and (kafka.num_orphans >= context.limits.orphan_responses
                                 or kafka.orphan_bytes + <int64_t>frame.bytes.num > context.limits.orphan_bytes
                                 or context.waiting_total + <int64_t>frame.bytes.num
                                 > context.limits.in_flight_bytes_total):
        write_anomaly(context, kafka.connection, -1, &frame.first, 1, frame.offset, ANOMALY_PARKED_LIMIT,
                      kafka.num_orphans)
        if kafka.given_up_to < kafka.orphans[0].frame.offset + 1:
            kafka.given_up_to = kafka.orphans[0].frame.offset + 1
        give_up_orphans(context, kafka, 0)
    if kafka.orphans == NULL:
        kafka.orphans = <OrphanResponse*>calloc(<size_t>context.limits.orphan_responses, sizeof(OrphanResponse))
        if kafka.orphans == NULL:
            count_bytes(context, frame.capture, BIN_MEMORY_REFUSED, frame.captured)
            return True
        context.waiting_total += orphan_slots(context)
    orphans = &kafka.orphans[kafka.num_orphans]
    memset(orphans, 0, sizeof(OrphanResponse))
    orphans.id = new_call_id(kafka.connection)
    orphans.frame = frame[0]
    orphans.correlation_id = correlation_id
    if not append(&orphans.bytes, keep(frame.bytes, <size_t>context.limits.orphan_bytes)):
        release(&orphans.bytes)
        count_bytes(context, frame.capture, BIN_MEMORY_REFUSED, frame.captured)
        return True
    if orphans.bytes.len < frame.bytes.num:
        orphans.frame.torn = True
        orphans.frame.cause = -1
    kafka.orphan_bytes += <int64_t>orphans.bytes.len
    context.waiting_total += <int64_t>orphans.bytes.cap
    kafka.num_orphans += 1
    return True


cdef void unpark(Context* context, KafkaConnection* kafka, int number, OrphanResponse* orphans) noexcept nogil:
    cdef int i
    orphans[0] = kafka.orphans[number]
    orphans.frame.bytes = make_span(orphans.bytes.data, orphans.bytes.len)
    kafka.orphan_bytes -= <int64_t>orphans.bytes.len
    context.waiting_total -= <int64_t>orphans.bytes.cap
    kafka.num_orphans -= 1
    for i in range(number, kafka.num_orphans):
        kafka.orphans[i] = kafka.orphans[i + 1]


cdef bint unpark_answer(Context* context, KafkaConnection* kafka, Call* call, OrphanResponse* orphans) noexcept nogil:
    """The parked answer to `call`, if there is one: by packets that the capture recorded before the call's own, or that
    did not wait for a hole. Its bytes are the caller's."""
    cdef int i
    for i in range(kafka.num_orphans):
        if kafka.orphans[i].correlation_id == call.correlation_id and may_answer(kafka, &kafka.orphans[i].frame, call):
            unpark(context, kafka, i, orphans)
            return True
    return False


cdef void give_up_orphans(Context* context, KafkaConnection* kafka, int number) noexcept nogil:
    cdef OrphanResponse orphans
    cdef int reason = why_unexpected(kafka)
    if kafka.forced:
        confirm(kafka)         # a frame in step on a port that is Kafka's
    unpark(context, kafka, number, &orphans)
    count_bytes(context, orphans.frame.capture, BIN_RESPONSE_ONLY if kafka.confirmed else lost_bin(kafka),
                orphans.frame.captured)
    if kafka.confirmed:
        if reason == REASON_NONE:
            write_anomaly(context, kafka.connection, -1, &orphans.frame.first, 1, orphans.frame.offset,
                          ANOMALY_UNEXPECTED_RESPONSE, orphans.correlation_id)
        write_response_only(context, kafka, orphans.id, &orphans.frame, orphans.correlation_id, reason)
        if context.keeps_messages:
            keep_message(context, kafka, &orphans.frame, MESSAGE_UNEXPECTED, RESPONSE, NULL, -1,
                         orphans.correlation_id)
    release(&orphans.bytes)


cdef int why_unexpected(KafkaConnection* kafka) noexcept nogil:
    """Why the request of a response was not seen."""
    cdef Framing* asks = &kafka.framing[kafka.client]
    cdef SendSequence* own = sequence_of(kafka.connection, kafka.client)
    cdef Traffic* traffic = traffic_of(kafka.connection, kafka.client)
    if traffic.packets == 0:
        return REASON_ONE_DIRECTION
    if traffic.bytes == 0 and own.acked_known and own.acked != own.acked_from:
        return REASON_SEGMENT_NOT_CAPTURED      # more and more was acknowledged, and nothing of it is here
    if asks.gaps:
        # What was answered had arrived.
        return why_missing(GAP_NOT_CAPTURED if asks.gap_cause == GAP_LOST else asks.gap_cause)
    return REASON_CAPTURE_BEGAN_LATER if kafka.connection.opener < 0 else REASON_NONE
