# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Matches responses to requests by correlation id and order.

Rules
  1. A response is matched with the oldest waiting request of its correlation id; if that one's answer may lie in a hole,
     and the id was used again behind the hole, with the latest one. Requests that it passes over wait on
     for MOST_PASSED answers more, in case something between swapped them; then they will not be answered.
  2. An ApiVersions response of error 35 has a v0 body whatever was asked (KIP-511).
  3. After an answered SaslHandshake v0 both directions carry bare tokens until the client sends a request again.
  4. The first response after a search must decode to its last byte.
  5. A response to a call with acks=0 shows that this broker answers all: from then on such calls wait, too.

    | size | correlation | body |     waiting: 5 6 7 8, response 7: 5 and 6 are passed over, 8 waits on
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

from kwsniff.core.bytes.buffer cimport release
from kwsniff.core.kafka.apis cimport ApiRange, api_at, in_span
from kwsniff.core.kafka.calls cimport finish_call, finish_oldest, finish_passed, needs_no_answer
from kwsniff.core.kafka.choices cimport is_response_read
from kwsniff.core.kafka.kafka_connection cimport (
    CHOICE_ROW, KEPT_CLIENT_ID, NO_PROTOCOL, RESPONSE, Call, Context, KafkaConnection, OrphanResponse, Program, confirm, count_bytes, waiting_call, why_torn,
)
from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.wire.facts cimport Facts, gather_facts
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.kafka.messages cimport MESSAGE_RESPONSE, MESSAGE_TOKEN, keep_message
from kwsniff.core.bytes.span cimport Span, be16, be32, drop
from kwsniff.core.kafka.orphan_responses cimport park, unpark_answer
from kwsniff.core.kafka.row_sink cimport write_anomaly, write_batches, write_errors
from kwsniff.core.kafka.head_of_line cimport note_served
from kwsniff.core.kafka.unanswered cimport may_be_later_one, may_be_missed, was_received, why_missed
from kwsniff.core.kafka.products cimport learn_product
from kwsniff.core.kafka.programs cimport MIN_TRIAL, has_few_behind, read_message, run
from kwsniff.core.tcp.arrivals cimport GAP_CUT
from kwsniff.core.kafka.fetch_sessions cimport follow_answered
from kwsniff.core.wire.tape cimport (
    ENGINE_BYTES_LEFT_OVER, ENGINE_NULL_NOT_ALLOWED, ENGINE_OK, ENGINE_UNEXPECTED_END, EngineStop,
)
from kwsniff.core.declared cimport *

cdef extern from *:
    """
    #define MILLISECOND 1000000LL
    """
    const int64_t MILLISECOND

cdef enum:
    UNSUPPORTED_VERSION = 35
    MOST_PASSED = 16


cdef bint take_response(Context* context, KafkaConnection* kafka, Frame* frame) noexcept nogil:
    cdef int32_t correlation_id
    cdef int64_t i
    cdef int status, reason
    if frame.bytes.num < 8:
        if frame.torn or kafka.tokens:
            count_bytes(context, frame.capture, BIN_SASL_TOKENS if kafka.tokens else BIN_TORN_FRAMES, frame.captured)
            return True
        return False
    if frame.torn and frame.found and frame.cause != GAP_CUT:
        return False            # found by searching, and now it cannot prove itself
    correlation_id = <int32_t>be32(frame.bytes, 4)
    i = find_asked(context, kafka, frame, correlation_id)
    if i < 0:
        if frame.found:
            return False
        if kafka.tokens:
            if context.keeps_messages:
                keep_message(context, kafka, frame, MESSAGE_TOKEN, RESPONSE, NULL, -1, -1)
            count_bytes(context, frame.capture, BIN_SASL_TOKENS, frame.captured)
            return True
        if is_unasked(kafka, correlation_id):
            kafka.answers_all = True
            kafka.unasked_from = correlation_id + 1
            count_bytes(context, frame.capture, BIN_NO_RESPONSE_EXPECTED, frame.captured)
            return True
        return park(context, kafka, frame, correlation_id)
    i = latest_of_id(kafka, frame, i)
    if frame.found and not frame.torn and not decodes(
            context, waiting_call(kafka, i), frame.bytes, False):
        return False
    bring_forward(context, kafka, frame, i)
    answer(context, kafka, frame)
    return True


cdef inline int64_t find_asked(Context* context, KafkaConnection* kafka, Frame* frame, int32_t correlation_id) noexcept nogil:
    """The number of the waiting call with this correlation id, -1: there is none. Some brokers answer some versions with
    id 0 whatever was asked: then the oldest call, if it is such a one."""
    cdef int64_t i
    cdef Call* call
    cdef ApiRange* api
    for i in range(kafka.num):
        if waiting_call(kafka, i).correlation_id == correlation_id and not was_received(
                kafka, frame, waiting_call(kafka, i)):
            return i
    if correlation_id or not kafka.num or frame.torn:
        return -1
    call = waiting_call(kafka, 0)
    api = api_at(&context.apis, call.slot)
    if api == NULL or not in_span(&api.unnumbered, call.version) or was_received(kafka, frame, call):
        return -1
    return 0 if decodes(context, call, frame.bytes, False) else -1


cdef inline bint is_unasked(KafkaConnection* kafka, int32_t correlation_id) noexcept nogil:
    """Whether it is the id of a call with acks=0, which brokers do not answer: Azure Event Hubs does."""
    return kafka.unasked and (<uint32_t>correlation_id - <uint32_t>kafka.unasked_from
                               <= <uint32_t>kafka.unasked_to - <uint32_t>kafka.unasked_from)


cdef inline int64_t latest_of_id(KafkaConnection* kafka, Frame* frame, int64_t number) noexcept nogil:
    """The call that is answered, of those with its correlation id: the oldest, but where its answer may lie in a hole."""
    cdef int64_t i
    if may_be_missed(kafka, waiting_call(kafka, number)):
        for i in range(number + 1, kafka.num):
            if may_be_later_one(kafka, frame, waiting_call(kafka, number), waiting_call(kafka, i)):
                number = i
    return number


cdef bint answer_waiting(Context* context, KafkaConnection* kafka, Frame* frame, int32_t correlation_id) noexcept nogil:
    """Answers the call of this correlation id by what is known of the frame, if there is such a call."""
    cdef int64_t i
    for i in range(kafka.num):
        if waiting_call(kafka, i).correlation_id == correlation_id:
            bring_forward(context, kafka, frame, i)
            answer(context, kafka, frame)
            return True
    return False


cdef void bring_forward(Context* context, KafkaConnection* kafka, Frame* frame, int64_t number) noexcept nogil:
    """Makes the call that is answered the oldest one. Those before it end, or wait on behind it in their order; each is
    moved MOST_PASSED times at most."""
    cdef Call call
    cdef Call* passed
    cdef int64_t i
    while number and not waits_on(kafka, waiting_call(kafka, 0)):
        pass_over(context, kafka, frame)
        number -= 1
    if number == 0:
        return
    call = waiting_call(kafka, number)[0]
    i = number
    while i:
        passed = waiting_call(kafka, i)
        passed[0] = waiting_call(kafka, i - 1)[0]
        if passed.passed == 0:
            passed.passed_by = frame.first
            passed.passed_offset = frame.offset
        passed.passed += 1
        i -= 1
    waiting_call(kafka, 0)[0] = call


cdef inline bint waits_on(KafkaConnection* kafka, Call* call) noexcept nogil:
    return call.reason == REASON_NONE and not needs_no_answer(call) and call.passed < MOST_PASSED and not may_be_missed(kafka, call)


cdef void pass_over(Context* context, KafkaConnection* kafka, Frame* frame) noexcept nogil:
    """The oldest call will not be answered."""
    cdef Call* call = waiting_call(kafka, 0)
    if needs_no_answer(call):
        finish_oldest(context, kafka, STATUS_NO_RESPONSE_EXPECTED, call.reason)
        return
    if may_be_missed(kafka, call):
        finish_oldest(context, kafka, STATUS_RESPONSE_NOT_CAPTURED, why_missed(kafka, call))
        return
    if call.reason != REASON_NONE:
        # It may have been one that needs no answer: its own bytes do not say.
        finish_oldest(context, kafka, STATUS_UNANSWERED, call.reason)
        return
    if call.passed == 0:
        call.passed_by = frame.first
        call.passed_offset = frame.offset
    finish_passed(context, kafka)


cdef inline void note_oddities(Context* context, KafkaConnection* kafka, Call* call, Frame* frame, int version) noexcept nogil:
    """What the place and the version of an answer show."""
    kafka.answered_in = NO_PROTOCOL
    if call.passed:
        write_anomaly(context, kafka.connection, call.id, &frame.first, 1, frame.offset, ANOMALY_ANSWERED_OUT_OF_ORDER,
                      call.correlation_id)
    if version != call.version:
        write_anomaly(context, kafka.connection, call.id, &frame.first, 1, frame.offset,
                      ANOMALY_API_VERSIONS_FALLBACK, call.version)


cdef void answer(Context* context, KafkaConnection* kafka, Frame* frame) noexcept nogil:
    """The oldest waiting call is answered by `frame`."""
    cdef Call* call = waiting_call(kafka, 0)
    cdef ApiRange* api
    cdef Program* program
    cdef Span message = drop(frame.bytes, 4)
    cdef EngineStop stop
    cdef int status = ENGINE_OK, version = answered_version(context, call, message), reason = call.reason
    kafka.head += 1
    kafka.num -= 1
    if reason == REASON_SEGMENT_LOST:
        reason = REASON_SEGMENT_NOT_CAPTURED    # what was answered had arrived
    note_oddities(context, kafka, call, frame, version)
    program = read_answer(context, kafka, call, frame, version, &status, &stop)
    if not call.doubtful or program != NULL and not frame.torn and proves(
            call, message, status == ENGINE_OK, has_few_behind(message, status, &stop)):
        confirm(kafka)
    if context.keeps_messages and call.choice == CHOICE_ROW:
        keep_message(context, kafka, frame, MESSAGE_RESPONSE, RESPONSE, call, version, call.correlation_id)
    if program == NULL:
        finish_call(context, kafka, call, STATUS_ANSWERED, reason, frame, NULL)
        note_answer(kafka, call, frame, NULL)
        return
    gather_facts(&context.facts, program.ops, &context.tape, message, &context.topic_ids)
    context.facts.broken = status != ENGINE_OK and status != ENGINE_BYTES_LEFT_OVER
    if frame.torn:
        if reason == REASON_NONE:
            reason = why_torn(frame)
    elif status == ENGINE_BYTES_LEFT_OVER:
        write_anomaly(context, kafka.connection, call.id, &frame.first, 1, frame.offset, ANOMALY_TRAILING_BYTES,
                      <int64_t>(message.num - stop.offset))
    elif status != ENGINE_OK:
        reason = REASON_UNDECODABLE
        write_anomaly(context, kafka.connection, call.id, &frame.first, 1, frame.offset,
                      ANOMALY_UNDECODABLE_RESPONSE, status)
    api = api_at(&context.apis, call.slot)
    if api != NULL and in_span(&api.tokens, call.version) and context.facts.first_error == 0:
        kafka.tokens = True
    if api != NULL and api.tells and kafka.product == 0:
        learn_product(context, kafka, program.ops, message)
    follow_answered(kafka, call, &context.facts)
    finish_call(context, kafka, call, STATUS_ANSWERED, reason, frame, &context.facts)
    note_answer(kafka, call, frame, &context.facts)
    if call.choice == CHOICE_ROW:
        write_found(context, kafka, call, frame, program)


cdef inline void write_found(Context* context, KafkaConnection* kafka, Call* call, Frame* frame, Program* program) noexcept nogil:
    """Rows of what a response has many of."""
    if context.facts.aborted_behind.is_known and not frame.torn:
        write_anomaly(context, kafka.connection, call.id, &frame.first, 1, frame.offset, ANOMALY_ABORTED_OUT_OF_ORDER,
                      context.facts.aborted_behind.value)
    if context.facts.batch_hits.len:
        write_batches(context, kafka, call, &context.facts, frame.first.time)
    if context.facts.num_errors:
        if <size_t>context.facts.num_errors > context.facts.most_hits:
            write_anomaly(context, kafka.connection, call.id, &frame.first, 1, frame.offset, ANOMALY_CALL_FACTS_LIMIT,
                          context.facts.num_errors)
        write_errors(context, kafka, call, frame, &context.facts, program)


cdef Program* read_answer(Context* context, KafkaConnection* kafka, Call* call, Frame* frame, int version, int* status,
                          EngineStop* stop) noexcept nogil:
    """The program of a response, whose cells are in the tape; NULL where no layout has it, or no reader wants it."""
    cdef Program* program
    if not is_response_read(context, kafka, call):
        return NULL
    program = read_message(context, call.slot, version, RESPONSE, drop(frame.bytes, 4), status, stop)
    if status[0] == ENGINE_NULL_NOT_ALLOWED and not frame.torn:
        read_nulls(context, kafka, call, frame, program, status, stop)
    return program


cdef void read_nulls(Context* context, KafkaConnection* kafka, Call* call, Frame* frame, Program* program, int* status,
                     EngineStop* stop) noexcept nogil:
    """Reads a response with null bytes where none may be: Azure Event Hubs sends such. If it is whole then, it is believed."""
    cdef Span message = drop(frame.bytes, 4)
    cdef EngineStop first = stop[0]
    status[0] = run(context, program, message, stop, True)
    if status[0] == ENGINE_OK or has_few_behind(message, status[0], stop):
        write_anomaly(context, kafka.connection, call.id, &frame.first, 1, frame.offset, ANOMALY_NULL_NOT_ALLOWED,
                      4 + <int64_t>first.offset)
        return
    status[0] = run(context, program, message, stop, False)


cdef inline bint proves(Call* call, Span message, bint exact, bint behind) noexcept nogil:
    """Whether an answer makes good for a doubtful question. Small numbers in frames, such as ZooKeeper's, fit many a
    short layout: a question that does not decode must name its client then, and the answer say something."""
    if call.reason == REASON_NONE and exact:
        return True
    return ((exact or behind) and message.num >= MIN_TRIAL
            and (call.reason == REASON_NONE or call.kept[<int>KEPT_CLIENT_ID].num > 0))


cdef inline int answered_version(Context* context, Call* call, Span message) noexcept nogil:
    """The version that a response is written in: the one that was asked for, but for refused ApiVersions (KIP-511)."""
    cdef ApiRange* api
    if call.version > 0 and be16(message, 4) == UNSUPPORTED_VERSION:
        api = api_at(&context.apis, call.slot)
        if api != NULL and api.fallback:
            return 0
    return call.version


cdef bint decodes(Context* context, Call* call, Span frame, bint partly) noexcept nogil:
    """Whether these bytes are a response to `call`, or could be the beginning of one. A few bytes behind the last field
    are believed: some brokers send them."""
    cdef int status
    cdef EngineStop stop
    cdef Span message = drop(frame, 4)
    if read_message(context, call.slot, answered_version(context, call, message), RESPONSE, message, &status, &stop) == NULL:
        return False
    if partly:
        # A few bytes break off in anything: half of what is there must have made sense.
        return status == ENGINE_UNEXPECTED_END and stop.offset >= MIN_TRIAL
    return status == ENGINE_OK or stop.offset >= MIN_TRIAL and has_few_behind(message, status, &stop)


cdef void answer_from_orphans(Context* context, KafkaConnection* kafka, Call* call) noexcept nogil:
    """The newest call may have been answered already. Calls before it that still wait were passed over then."""
    cdef OrphanResponse orphans
    if not unpark_answer(context, kafka, call, &orphans):
        return
    bring_forward(context, kafka, &orphans.frame, kafka.num - 1)
    answer(context, kafka, &orphans.frame)
    release(&orphans.bytes)


cdef void note_answer(KafkaConnection* kafka, Call* call, Frame* response, Facts* facts) noexcept nogil:
    """Remembers when the broker was done with this call: the next one cannot have begun before."""
    if not response.ended or response.last.time == NO_TIME:
        return
    if kafka.served_id != call.id:         # when it was asked is not known
        note_served(kafka, call.id, kafka.answered_at if kafka.answered_at != NO_TIME else response.last.time,
                    response.last.time, WAIT_NONE)
    kafka.answered_at = response.last.time - response.last.late
    kafka.muted_until = NO_TIME
    if facts != NULL and facts.has_throttle and facts.throttle > 0 and not facts.held_back:
        kafka.muted_until = response.last.time + facts.throttle * MILLISECOND
