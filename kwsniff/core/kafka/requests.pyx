# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Frames of the side that asks: requests, and bare SASL tokens.

Rules
  1. Nothing counts as Kafka before it is confirmed: a request decoded to its last field, a response paired, or two
     plausible requests in a row. One that is all here and does not decode is not plausible, but where the user says so.
  2. A request whose `acks` field is 0 gets no response and does not wait for one (ProduceRequest), unless this broker was
     seen to answer such (responses.pyx).
  3. After an answered SaslHandshake v0 what is not a request is a token; at any other time it is not a frame.
  4. Bytes behind the last field harm nothing: brokers pass them over. While nothing is confirmed, only few of them
     are believed, behind a client's name.
  5. A request that no layout describes is a call like any other: its header says who asks, its body stays closed.

    | size | key version correlation client_id | body |
"""

from libc.stdint cimport int16_t, int32_t, int64_t

from kwsniff.core.kafka.calls cimport add_call, finish_call, needs_no_answer
from kwsniff.core.kafka.choices cimport LESSON_REQUEST, choose_by_client, choose_by_header, is_lesson
from kwsniff.core.kafka.kafka_connection cimport CHOICE_NO_BODY, CHOICE_ROW, REQUEST, Call, Context, KafkaConnection, Program, confirm, count_bytes, why_torn
from kwsniff.core.wire.facts cimport gather_facts
from kwsniff.core.kafka.frames cimport LOOK_NO, LOOK_ODD, LOOK_YES, Frame
from kwsniff.core.kafka.messages cimport MESSAGE_REQUEST, MESSAGE_TOKEN, keep_message
from kwsniff.core.bytes.span cimport Span, be16, be32, drop, has, keep, make_span
from kwsniff.core.kafka.row_sink cimport write_anomaly, write_batches
from kwsniff.core.kafka.programs cimport MIN_TRIAL, MOST_TRAILING, has_few_behind, read_message
from kwsniff.core.kafka.apis cimport find_slot_at
from kwsniff.core.kafka.protocol_heuristics cimport look_at_request, may_be_foreign
from kwsniff.core.kafka.memory_budget cimport learned_bytes
from kwsniff.core.kafka.request_facts cimport keep_facts, learn_principal
from kwsniff.core.kafka.fetch_sessions cimport follow_asked
from kwsniff.core.kafka.responses cimport answer_from_orphans
from kwsniff.core.tcp.arrivals cimport GAP_CUT
from kwsniff.core.wire.tape cimport ENGINE_BYTES_LEFT_OVER, ENGINE_OK, EngineStop
from kwsniff.core.declared cimport *


cdef bint take_request(Context* context, KafkaConnection* kafka, Frame* frame) noexcept nogil:
    cdef Span data = frame.bytes
    cdef Span message = drop(data, 4)
    cdef EngineStop stop
    cdef Program* program
    cdef int look, key, slot, version, choice = CHOICE_ROW, status = ENGINE_OK
    cdef bint whole = False, behind = False
    cdef int64_t trailing = 0
    if data.num < 12:
        # Too little to say what it was; if nothing is missing, it was no request.
        if frame.torn or kafka.tokens:
            count_bytes(context, frame.capture, BIN_SASL_TOKENS if kafka.tokens else BIN_TORN_FRAMES, frame.captured)
            return True
        return False
    if frame.torn and frame.found and frame.cause != GAP_CUT:
        return False            # found by searching, and now it cannot prove itself
    look = look_at_request(&context.apis, data, context.limits.frame_bytes)
    key = <int16_t>be16(data, 4)
    version = <int16_t>be16(data, 6)
    slot = find_slot_at(&context.apis, key, kafka.product)
    if look == LOOK_NO and (kafka.tokens or frame.found or not may_be_foreign(data) or not kafka.confirmed
                            and kafka.connection.opener < 0):
        return take_token(context, kafka, frame)
    if look == LOOK_YES and not frame.torn and not frame.found:
        choice = choose_by_client(context, kafka, data, slot, version)
        if choice == CHOICE_NO_BODY and not is_lesson(context, slot, LESSON_REQUEST):
            return pass_request(context, kafka, frame, key, slot, version)
    program = read_message(context, slot, version, REQUEST, message, &status, &stop)
    if program != NULL:
        behind = has_few_behind(message, status, &stop) and names_client(data)
        whole = ((status == ENGINE_OK or behind and look == LOOK_YES) and not frame.torn
                 and (kafka.forced or names_client(data) or message.num >= MIN_TRIAL))
        if status != ENGINE_OK and not behind and not frame.torn and (
                kafka.tokens or frame.found or look == LOOK_ODD and not kafka.confirmed
                or not kafka.confirmed and kafka.connection.opener < 0):
            return take_token(context, kafka, frame)
        if status == ENGINE_BYTES_LEFT_OVER and not frame.torn:
            trailing = <int64_t>(message.num - stop.offset)
        gather_facts(&context.facts, program.ops, &context.tape, message, &context.topic_ids)
    elif kafka.tokens or look == LOOK_ODD and not kafka.confirmed:
        return take_token(context, kafka, frame)
    else:
        read_foreign_header(context, data)
    kafka.tokens = False
    if kafka.forced or behind or names_client(data) and (program == NULL or frame.torn):
        kafka.plausible_requests += look == LOOK_YES
    if whole or kafka.plausible_requests >= 2:
        confirm(kafka)
    return keep_request(context, kafka, frame, key, slot, version, program, status, trailing, choice)


cdef bint pass_request(Context* context, KafkaConnection* kafka, Frame* frame, int key, int slot, int version) noexcept nogil:
    """A call that gets no row: it waits in line, its body stays closed."""
    cdef Call* call = add_call(context, kafka, frame)
    if call == NULL:
        count_bytes(context, frame.capture, BIN_MEMORY_REFUSED, frame.captured)
        return True
    call.known = True
    call.key = <int16_t>key
    call.slot = slot
    call.version = <int16_t>version
    call.correlation_id = <int32_t>be32(frame.bytes, 8)
    call.choice = CHOICE_NO_BODY
    if kafka.num_orphans:
        answer_from_orphans(context, kafka, call)
    return True


cdef inline bint names_client(Span data) noexcept nogil:
    """Small numbers, such as ZooKeeper's, read as a short request, too; but then as one without a client id."""
    return 0 < <int16_t>be16(data, 12)


cdef bint take_token(Context* context, KafkaConnection* kafka, Frame* frame) noexcept nogil:
    if not kafka.tokens:
        return False
    if context.keeps_messages:
        keep_message(context, kafka, frame, MESSAGE_TOKEN, REQUEST, NULL, -1, -1)
    if not frame.torn:
        context.learned_total -= learned_bytes(kafka)
        learn_principal(kafka, drop(frame.bytes, 4))
        context.learned_total += learned_bytes(kafka)
    count_bytes(context, frame.capture, BIN_SASL_TOKENS, frame.captured)
    return True


cdef bint keep_request(Context* context, KafkaConnection* kafka, Frame* frame, int key, int slot, int version,
                       Program* program, int status, int64_t trailing, int choice) noexcept nogil:
    cdef Call* call = add_call(context, kafka, frame)
    if call == NULL:
        count_bytes(context, frame.capture, BIN_MEMORY_REFUSED, frame.captured)
        return True
    call.known = True
    call.key = <int16_t>key
    call.slot = slot
    call.version = <int16_t>version
    call.correlation_id = <int32_t>be32(frame.bytes, 8)
    if frame.torn:
        call.reason = why_torn(frame)
    elif program == NULL:
        call.reason = REASON_UNKNOWN_VERSION
        if slot < 0:
            call.reason = REASON_UNKNOWN_API
        write_anomaly(context, kafka.connection, call.id, &frame.first, 0, frame.offset,
                      ANOMALY_UNKNOWN_API if call.reason == REASON_UNKNOWN_API else ANOMALY_UNKNOWN_VERSION, version)
    elif trailing:
        write_anomaly(context, kafka.connection, call.id, &frame.first, 0, frame.offset, ANOMALY_TRAILING_BYTES,
                      trailing)
    elif status != ENGINE_OK:
        call.reason = REASON_UNDECODABLE
        write_anomaly(context, kafka.connection, call.id, &frame.first, 0, frame.offset,
                      ANOMALY_UNDECODABLE_REQUEST, status)
    call.doubtful = (call.reason == REASON_UNDECODABLE or trailing > MOST_TRAILING
                     or not frame.torn and not kafka.forced and not names_client(frame.bytes)
                     and (program == NULL or frame.length < 4 + MIN_TRIAL))
    follow_asked(context, kafka, &context.facts)
    keep_facts(context, kafka, call, drop(frame.bytes, 12))
    call.choice = choice if choice != CHOICE_ROW else choose_by_header(context, kafka, call)
    if context.facts.batch_hits.len and kafka.confirmed and call.choice == CHOICE_ROW:
        write_batches(context, kafka, call, &context.facts, call.first.time)
    if context.keeps_messages and call.choice == CHOICE_ROW:
        keep_message(context, kafka, frame, MESSAGE_REQUEST, REQUEST, call, version, call.correlation_id)
    if needs_no_answer(call) and not kafka.answers_all:
        note_unasked(kafka, call.correlation_id)
        kafka.num -= 1         # it is at the ring's end and waits for nothing
        finish_call(context, kafka, call, STATUS_NO_RESPONSE_EXPECTED, call.reason, NULL, NULL)
        return True
    if kafka.num > kafka.most_in_flight:
        kafka.most_in_flight = kafka.num
    if kafka.num_orphans:
        answer_from_orphans(context, kafka, call)
    return True


cdef inline void note_unasked(KafkaConnection* kafka, int32_t correlation_id) noexcept nogil:
    """By these ids the answers are known that no broker of Kafka's sends."""
    if not kafka.unasked:
        kafka.unasked = True
        kafka.unasked_from = correlation_id
    kafka.unasked_to = correlation_id


cdef void read_foreign_header(Context* context, Span data) noexcept nogil:
    """Of a message without a layout, the header says who sent it; what follows stays closed."""
    cdef int client_len = <int16_t>be16(data, 12)
    context.tape.num = 0
    gather_facts(&context.facts, NULL, &context.tape, make_span(NULL, 0), &context.topic_ids)
    if client_len >= 0 and has(data, 14, <size_t>client_len):
        context.facts.client_id = keep(drop(data, 14), <size_t>client_len)
