# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Resynchronization of a direction after a gap: whether a frame begins here.

Rules
  1. A response is believed in when it answers a call that waits and decodes; one whose end is not here when enough of
     it made sense, or where a segment begins. Decodings per segment are bounded.
  2. A request must name the client that is known, or begin with a segment; what is there of its body must be one.
  3. Responses without a waiting request are believed in by a chain of headers, beside requests that are Kafka's or where no
     request was captured at all.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memset

from kwsniff.core.declared cimport ANOMALY_FRAMING_LOST, ANOMALY_FRAMING_RESUMED, PROTOCOL_OTHER
from kwsniff.core.kafka.protocol_detection cimport turn_away
from kwsniff.core.bytes.buffer cimport contents
from kwsniff.core.kafka.kafka_connection cimport REQUEST, Call, Context, KafkaConnection, confirm, waiting_call
from kwsniff.core.kafka.frames cimport LOOK_NO, LOOK_ODD, LOOK_YES, Frame, Link
from kwsniff.core.bytes.span cimport Span, be16, be32, drop, has, keep, make_span
from kwsniff.core.kafka.orphan_responses cimport park
from kwsniff.core.kafka.apis cimport find_slot_at
from kwsniff.core.kafka.programs cimport MIN_TRIAL, has_few_behind, read_message
from kwsniff.core.kafka.protocol_heuristics cimport look_at_request
from kwsniff.core.kafka.responses cimport answer_waiting, decodes
from kwsniff.core.kafka.row_sink cimport write_anomaly
from kwsniff.core.tcp.parts cimport traffic_of
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.wire.tape cimport ENGINE_ARRAY_LONGER_THAN_FRAME, ENGINE_OK, ENGINE_UNEXPECTED_END, EngineStop

cdef enum:
    AWAITED = 256               # waiting calls that an answer is looked for among
    MAX_TRIALS = 32             # decodings per segment: more would be quadratic work


cdef int look_for_frame(void* opaque, void* opaque_kafka, int side, Span data, bint first) noexcept nogil:
    """Whether a frame begins here, in a direction that is out of step."""
    cdef Context* context = <Context*>opaque
    cdef KafkaConnection* kafka = <KafkaConnection*>opaque_kafka
    cdef uint32_t size
    cdef Call* call
    cdef int64_t i
    if side == REQUEST:
        return look_for_request(context, kafka, data, first)
    if first:
        kafka.trials = 0
    size = be32(data, 0)
    if data.num < 8 or size < 4 or size > context.limits.frame_bytes or kafka.trials >= MAX_TRIALS:
        return LOOK_NO
    # The answer that comes next is one of the first: only lost ones lie before it.
    for i in range(kafka.num if kafka.num < AWAITED else AWAITED):
        call = waiting_call(kafka, i)
        if call.correlation_id == <int32_t>be32(data, 4):
            if call.doubtful and not kafka.confirmed:
                return LOOK_NO
            if not first and call.correlation_id == 0 and size < MIN_TRIAL:
                return LOOK_NO          # mostly zeroes, as there are in any message
            kafka.trials += 1
            if <int64_t>data.num >= 4 + <int64_t>size:
                return LOOK_YES if decodes(context, call, keep(data, 4 + <size_t>size), False) else LOOK_NO
            return LOOK_YES if first or decodes(context, call, data, True) else LOOK_NO
    return LOOK_NO


cdef int look_for_request(Context* context, KafkaConnection* kafka, Span data, bint first) noexcept nogil:
    """Zeroes and small numbers make many a short request: the client must be the one known, or a segment begin here,
    and what is there of the body must be one."""
    cdef int look = look_at_request(&context.apis, data, context.limits.frame_bytes)
    cdef uint32_t size = be32(data, 0)
    cdef bint named = 0 < <int16_t>be16(data, 12)
    cdef EngineStop stop
    cdef int status
    cdef Span message = drop(keep(data, 4 + <size_t>size), 4)
    if look == LOOK_NO or data.num < 14:
        return LOOK_NO
    if kafka.client_id.len:
        if not matches_client_id(kafka, data):
            return LOOK_NO
    elif not first:
        return LOOK_NO
    if read_message(context, find_slot_at(&context.apis, <int16_t>be16(data, 4), kafka.product), <int16_t>be16(data, 6), REQUEST, message, &status, &stop) == NULL:
        return LOOK_NO if look == LOOK_ODD else LOOK_YES
    if message.num == size:
        return LOOK_YES if status == ENGINE_OK or named and has_few_behind(message, status, &stop) else LOOK_NO
    if look == LOOK_ODD and kafka.client_id.len == 0:
        return LOOK_NO
    return LOOK_YES if status == ENGINE_UNEXPECTED_END or status == ENGINE_ARRAY_LONGER_THAN_FRAME else LOOK_NO


cdef bint matches_client_id(KafkaConnection* kafka, Span data) noexcept nogil:
    """Whether the header names the client that is known, as far as the capture kept its name."""
    cdef Span known = contents(&kafka.client_id)
    cdef size_t i
    if be16(data, 12) != known.num:
        return False
    for i in range(known.num):
        if has(data, 14 + i, 1) and known.at[i] != data.at[14 + i]:
            return False
    return True


cdef bint may_chain(void* opaque, void* opaque_kafka) noexcept nogil:
    """Responses are believed in by their headers alone only beside requests that are Kafka's, or where no request
    was captured at all."""
    cdef KafkaConnection* kafka = <KafkaConnection*>opaque_kafka
    return (kafka.confirmed or kafka.forced or traffic_of(kafka.connection, kafka.client).bytes == 0)


cdef void take_chain(void* opaque, void* opaque_kafka, Link* chain, int num) noexcept nogil:
    """Of the links nothing but the headers was kept. Their requests may wait already, or still lie behind a hole."""
    cdef Context* context = <Context*>opaque
    cdef KafkaConnection* kafka = <KafkaConnection*>opaque_kafka
    cdef Frame frame
    cdef uint8_t[8] header
    cdef int i, j
    confirm(kafka)
    for i in range(num):
        memset(&frame, 0, sizeof(Frame))
        for j in range(4):
            header[j] = <uint8_t>((chain[i].length - 4) >> (24 - 8 * j))
            header[4 + j] = <uint8_t>(<uint32_t>chain[i].correlation_id >> (24 - 8 * j))
        frame.bytes = make_span(header, 8)
        frame.torn = True
        frame.cause = kafka.framing[1 - kafka.client].gap_cause
        frame.length = chain[i].length
        frame.offset = chain[i].offset
        frame.first = chain[i].first
        frame.last = chain[i].last
        frame.ended = chain[i].ended
        frame.capture = chain[i].first.capture
        if not answer_waiting(context, kafka, &frame, chain[i].correlation_id):
            park(context, kafka, &frame, chain[i].correlation_id)


cdef void note_step(void* opaque, void* opaque_kafka, int side, Arrival* arrival, int64_t offset, bint lost,
                    int64_t value) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef KafkaConnection* kafka = <KafkaConnection*>opaque_kafka
    cdef int direction = kafka.client if side == REQUEST else 1 - kafka.client
    if lost and not kafka.confirmed and not kafka.forced:
        if kafka.connection.opener >= 0 and (side == REQUEST or not traffic_of(kafka.connection, kafka.client).bytes):
            turn_away(context, kafka, PROTOCOL_OTHER)
        return
    if not lost and value == 0 and kafka.framing[direction].gaps == 0:
        return                  # the first frame of a direction whose beginning was not captured
    write_anomaly(context, kafka.connection, -1, arrival, side, offset,
                  ANOMALY_FRAMING_LOST if lost else ANOMALY_FRAMING_RESUMED, value)
    if lost:
        kafka.framing[direction].gaps += 1         # its cause is known already (frames.pyx)
    elif value:
        kafka.framing[direction].gaps += 1         # what was passed over may have held answers
