# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The first bytes of the side that answers, while they do not show yet what they are.

Rules
  1. They are kept only while a TLS alert, which is seven bytes long, or the first words of another protocol may become of
     them, and no response is whole in them.
  2. A TLS alert instead of a first response, and first words of other protocols, are noted; what follows is passed
     over. A side that greets before it is asked is not a broker, but a client may still send it Kafka requests.
  3. What is kept is fed on when more comes, and counted at the latest when the connection ends.

    | 15 | 03 | 0x | 00 02 | level | description |      or a response: | size u32 | correlation id ...
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kwsniff.core.declared cimport PROTOCOL_EMPTY, PROTOCOL_OTHER, PROTOCOL_TLS
from kwsniff.core.kafka.kafka_connection cimport NO_PROTOCOL, Context, KafkaConnection, waiting_call
from kwsniff.core.kafka.frames cimport FRAMING_IGNORED, FRAMING_IN_STEP, FRAMING_LOST, FRAMING_START, Framing
from kwsniff.core.kafka.proxy_headers cimport keep_more, note_early
from kwsniff.core.bytes.buffer cimport contents
from kwsniff.core.kafka.protocol_heuristics cimport ANSWERS, may_become, name_protocol
from kwsniff.core.bytes.span cimport Span, be32, copy_out, keep, make_span, u8
from kwsniff.core.tcp.parts cimport sequence_of, traffic_of
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tls.hello cimport may_be_alert, read_alert


cdef enum:
    SOCKS = 5                   # its version
    MOST_BELIEVED = 1 << 24     # bytes of a first response that may as well be the first word of another protocol


cdef bint wait_for_greeting(Context* context, Framing* framing, Arrival* arrival, int64_t offset,
                            Span data) noexcept nogil:
    """Keeps the first bytes of answers while something else than a response may become of them."""
    cdef uint8_t[ANSWER_BYTES] room
    cdef Span start = join_kept(framing, data, room)
    if not may_be_alert(start) and (is_frame(start) or not may_become(start, ANSWERS)):
        return False
    if framing.kept.len == 0:
        framing.first = arrival[0]
        framing.offset = offset
    if not keep_more(context, framing, data):
        return False
    note_early(framing, arrival.capture, <int64_t>data.num)
    return True


cdef inline bint is_frame(Span data) noexcept nogil:
    """Whether all is here that its size says."""
    return data.num >= 4 and data.num - 4 >= be32(data, 0)


cdef Span join_kept(Framing* framing, Span data, uint8_t* room) noexcept nogil:
    """The first ANSWER_BYTES of what was kept and what comes now."""
    cdef Span kept = keep(contents(&framing.kept), ANSWER_BYTES)
    if kept.num == 0:
        return data
    data = keep(data, ANSWER_BYTES - kept.num)
    copy_out(kept, 0, room, kept.num)
    if data.num:            # behind a gap there are none, and no address either
        copy_out(data, 0, &room[kept.num], data.num)
    return make_span(room, kept.num + data.num)


cdef int judge_answers(Context* context, KafkaConnection* kafka, Span data) noexcept nogil:
    """How the broker's direction begins: in step where its beginning was captured, elsewhere a frame is looked for.
    Returns the protocol for which the connection is turned away, or NO_PROTOCOL."""
    cdef Framing* own = &kafka.framing[1 - kafka.client]
    cdef Framing* asking = &kafka.framing[kafka.client]
    cdef int protocol, alert = read_alert(data)
    if not sequence_of(kafka.connection, 1 - kafka.client).syn and not kafka.carrier and alert < 0:
        own.state = FRAMING_LOST
        return NO_PROTOCOL
    if u8(data, 0) == SOCKS and not kafka.carrier and (asking.gaps or asking.state == FRAMING_START):
        own.state = FRAMING_LOST            # it may answer a greeting that is missing
        return NO_PROTOCOL
    if alert >= 0 and kafka.confirmed:     # a Kafka request to a port that speaks TLS
        kafka.alert = alert
        own.state = FRAMING_IGNORED
        return NO_PROTOCOL
    protocol = name_protocol(data, ANSWERS)
    if protocol == PROTOCOL_OTHER or protocol == PROTOCOL_EMPTY or answers_a_call(kafka, data):
        own.state = FRAMING_IN_STEP
        if kafka.confirmed and data.num >= 4 and not 4 <= be32(data, 0) <= context.limits.frame_bytes:
            kafka.answered_in = PROTOCOL_OTHER     # unless an answer is found behind it (responses.pyx)
        return NO_PROTOCOL
    if not kafka.confirmed and (protocol == PROTOCOL_TLS or not is_silent(kafka)):
        return protocol
    kafka.answered_in = protocol
    own.state = FRAMING_IGNORED
    if not kafka.confirmed:
        kafka.protocol = protocol
    return NO_PROTOCOL


cdef inline bint is_silent(KafkaConnection* kafka) noexcept nogil:
    """Whether the side that asks has sent nothing yet."""
    return kafka.framing[kafka.client].state == FRAMING_START and traffic_of(kafka.connection, kafka.client).bytes == 0


cdef bint answers_a_call(KafkaConnection* kafka, Span data) noexcept nogil:
    """Whether a call waits for what these bytes begin: the first words of some protocols could be a size and a number."""
    cdef int64_t i
    if data.num < 8 or be32(data, 0) > MOST_BELIEVED:
        return False
    for i in range(kafka.num):
        if waiting_call(kafka, i).correlation_id == <int32_t>be32(data, 4):
            return True
    return False
