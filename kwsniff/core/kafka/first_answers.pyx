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
from kwsniff.core.kafka.dialog cimport NO_PROTOCOL, Context, Dialog, waiting_call
from kwsniff.core.kafka.frames cimport FRAMING_IGNORED, FRAMING_IN_STEP, FRAMING_LOST, FRAMING_START, Framing
from kwsniff.core.kafka.preambles cimport keep_more, note_early
from kwsniff.core.octets.buffer cimport contents
from kwsniff.core.kafka.recognition cimport ANSWERS, may_become, name_protocol
from kwsniff.core.octets.octets cimport Octets, be32, copy_out, keep, make_octets, u8
from kwsniff.core.tcp.connections cimport Arrival
from kwsniff.core.tls.hello cimport may_be_alert, read_alert


cdef enum:
    SOCKS = 5                   # its version
    MOST_BELIEVED = 1 << 24     # bytes of a first response that may as well be the first word of another protocol


cdef bint wait_for_greeting(Context* context, Framing* framing, Arrival* arrival, int64_t offset,
                            Octets data) noexcept nogil:
    """Keeps the first bytes of answers while something else than a response may become of them."""
    cdef uint8_t[ANSWER_BYTES] room
    cdef Octets start = join_kept(framing, data, room)
    if not may_be_alert(start) and (is_frame(start) or not may_become(start, ANSWERS)):
        return False
    if framing.kept.len == 0:
        framing.first = arrival[0]
        framing.offset = offset
    if not keep_more(context, framing, data):
        return False
    note_early(framing, arrival.capture, <int64_t>data.num)
    return True


cdef inline bint is_frame(Octets data) noexcept nogil:
    """Whether all is here that its size says."""
    return data.num >= 4 and data.num - 4 >= be32(data, 0)


cdef Octets join_kept(Framing* framing, Octets data, uint8_t* room) noexcept nogil:
    """The first ANSWER_BYTES of what was kept and what comes now."""
    cdef Octets kept = keep(contents(&framing.kept), ANSWER_BYTES)
    if kept.num == 0:
        return data
    data = keep(data, ANSWER_BYTES - kept.num)
    copy_out(kept, 0, room, kept.num)
    if data.num:            # behind a gap there are none, and no address either
        copy_out(data, 0, &room[kept.num], data.num)
    return make_octets(room, kept.num + data.num)


cdef int judge_answers(Context* context, Dialog* dialog, Octets data) noexcept nogil:
    """How the broker's direction begins: in step where its beginning was captured, elsewhere a frame is looked for.
    Returns the protocol for which the connection is turned away, or NO_PROTOCOL."""
    cdef Framing* own = &dialog.framing[1 - dialog.client]
    cdef Framing* asking = &dialog.framing[dialog.client]
    cdef int protocol, alert = read_alert(data)
    if not dialog.connection.direction[1 - dialog.client].syn and not dialog.carrier and alert < 0:
        own.state = FRAMING_LOST
        return NO_PROTOCOL
    if u8(data, 0) == SOCKS and not dialog.carrier and (asking.gaps or asking.state == FRAMING_START):
        own.state = FRAMING_LOST            # it may answer a greeting that is missing
        return NO_PROTOCOL
    if alert >= 0 and dialog.confirmed:     # a Kafka request to a port that speaks TLS
        dialog.alert = alert
        own.state = FRAMING_IGNORED
        return NO_PROTOCOL
    protocol = name_protocol(data, ANSWERS)
    if protocol == PROTOCOL_OTHER or protocol == PROTOCOL_EMPTY or answers_a_call(dialog, data):
        own.state = FRAMING_IN_STEP
        if dialog.confirmed and data.num >= 4 and not 4 <= be32(data, 0) <= context.limits.frame_bytes:
            dialog.answered_in = PROTOCOL_OTHER     # unless an answer is found behind it (responses.pyx)
        return NO_PROTOCOL
    if not dialog.confirmed and (protocol == PROTOCOL_TLS or not is_silent(dialog)):
        return protocol
    dialog.answered_in = protocol
    own.state = FRAMING_IGNORED
    if not dialog.confirmed:
        dialog.protocol = protocol
    return NO_PROTOCOL


cdef inline bint is_silent(Dialog* dialog) noexcept nogil:
    """Whether the side that asks has sent nothing yet."""
    return dialog.framing[dialog.client].state == FRAMING_START and dialog.connection.direction[dialog.client].bytes == 0


cdef bint answers_a_call(Dialog* dialog, Octets data) noexcept nogil:
    """Whether a call waits for what these bytes begin: the first words of some protocols could be a size and a number."""
    cdef int64_t i
    if data.num < 8 or be32(data, 0) > MOST_BELIEVED:
        return False
    for i in range(dialog.num):
        if waiting_call(dialog, i).correlation_id == <int32_t>be32(data, 4):
            return True
    return False
