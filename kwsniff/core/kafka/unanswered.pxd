# cython: language_level=3
"""What the silence of a broker proves: whether the answer to a call may have been sent and missed.

Rules
  1. An answer comes in the broker's stream after what the request's own packets acknowledge (`answer_from`): the client
     had all before that when it asked. Holes in front of it hide no answer, however late they are noticed.
  2. A call was left without an answer only if the broker's stream is whole from there on: no hole, nothing passed over
     unread, no unfinished frame that a hole may have made up. Everything else leaves it open.
  3. Where no packet of the request tells a position, the stream must be whole from its first byte, and that byte be what
     the client was waiting for: by the handshake, or by the first acknowledgement that was seen.
  4. A reset may show more of the broker's stream than the capture has: by its own number, by what its sender or receiver
     continues with or, if it comes from a client that had closed, by the packet that it answers (resets.pxd).
  5. What an acknowledgement of encrypted bytes is in plaintext is not known exactly in front of what was opened: inside
     TLS the stream must be whole for UNCERTAIN bytes more, and be opened.

    broker   --[ hole ]----|--------------[ answer to a later call ]     proven
             --------------|--[ hole ]----[ answer to a later call ]     open
                           ^ answer_from
"""

from libc.stdint cimport int64_t, uint32_t

from kwsniff.core.declared cimport ENDING_RESET, REASON_LIMIT_REACHED, REASON_SEGMENT_LOST, REASON_SEGMENT_NOT_CAPTURED
from kwsniff.core.kafka.kafka_connection cimport Call, KafkaConnection, why_missing
from kwsniff.core.kafka.frames cimport FRAMING_IN_STEP, FRAMING_LOST, Frame, Framing
from kwsniff.core.tcp.arrivals cimport GAP_NOT_CAPTURED
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.lifecycle cimport Reset
from kwsniff.core.tcp.parts cimport furthest_of, reset_of, sequence_of
from kwsniff.core.tcp.segments cimport distance
from kwsniff.core.tcp.send_sequence cimport SendSequence
from kwsniff.core.tls.tls_state cimport SIDE_SEALED, TlsSide

cdef enum:
    UNCERTAIN = 1 << 16         # bytes of records that hold no data, and of what records add to theirs


cdef inline int64_t answer_from(Call* call) noexcept nogil:
    """The position of the broker's stream before which the answer cannot be; -1: none is known."""
    return call.last.acked if call.ended else call.first.acked


cdef inline uint32_t first_number(Connection* connection, int direction) noexcept nogil:
    """Of the first byte that was seen of a stream; if none was, that behind all that is known of it."""
    cdef SendSequence* own = sequence_of(connection, direction)
    cdef uint32_t number
    if own.known:
        return own.first_seq
    number = furthest_of(connection, direction)
    return own.fin_seq if own.fin and number == own.fin_seq + 1 else number


cdef inline bint begins_whole(Connection* connection, int direction) noexcept nogil:
    """Whether nothing can be missing in front of what was seen first."""
    cdef SendSequence* own = sequence_of(connection, direction)
    return own.syn or own.acked_known and distance(first_number(connection, direction), own.acked_from) <= 0


cdef inline bint is_sealed_hole(TlsSide* side, Framing* answers, Call* call) noexcept nogil:
    """The same of a broker's direction inside TLS."""
    if side.owed or side.phase != SIDE_SEALED:
        return True
    return answers.gaps and (answers.hole_end + UNCERTAIN > answer_from(call) or answers.gaps != call.broker_gaps)


cdef inline bint is_holed(KafkaConnection* kafka, Call* call) noexcept nogil:
    """Whether bytes that may be the answer are missing, or were passed over unread."""
    cdef Framing* answers = &kafka.framing[1 - kafka.client]
    if answers.hole_end > answer_from(call) and answers.hole_end:
        return True
    if kafka.decrypted and is_sealed_hole(&kafka.tls.side[1 - kafka.client], answers, call):
        return True
    return (answers.state == FRAMING_LOST
            and answer_from(call) < sequence_of(kafka.connection, 1 - kafka.client).offset)


cdef inline bint is_under_way(KafkaConnection* kafka, Call* call) noexcept nogil:
    """Whether the stream is inside a frame that has begun and may be the answer: bytes of it are missing, or it begins
    behind a hole and may be none."""
    cdef Framing* answers = &kafka.framing[1 - kafka.client]
    if kafka.decrypted and kafka.tls.side[1 - kafka.client].kept.len:
        return True
    return answers.torn or (answers.state == FRAMING_IN_STEP and answers.have and answers.gaps
                            and answer_from(call) < sequence_of(kafka.connection, 1 - kafka.client).offset)


cdef inline bint is_given_up(KafkaConnection* kafka, Call* call) noexcept nogil:
    """Whether responses without a request had to make room: the answer may have been one of them."""
    return kafka.given_up_to > answer_from(call) and kafka.given_up_to


cdef inline bint may_be_missed(KafkaConnection* kafka, Call* call) noexcept nogil:
    """Whether the answer may have come without being seen, in front of the frame that is read."""
    if is_holed(kafka, call) or is_given_up(kafka, call):
        return True
    return answer_from(call) < 0 and not begins_whole(kafka.connection, 1 - kafka.client)


cdef inline bint resets_unseen(Connection* connection, int broker) noexcept nogil:
    """Whether the reset that ended the connection shows that the broker had said more than is here."""
    cdef SendSequence* own = sequence_of(connection, broker)
    cdef Reset* reset = reset_of(connection)
    if connection.end != ENDING_RESET or connection.refused:
        return False
    if own.goes_on_unseen:
        return True
    if reset.sender != broker:
        return reset.answers_unseen
    if own.known:
        return distance(reset.seq, own.next_seq) > own.fin
    return own.acked_known and distance(reset.seq, own.acked_from) > own.fin


cdef inline int why_missed(KafkaConnection* kafka, Call* call) noexcept nogil:
    """The reason of a call whose answer may have been missed; some holes have no proof that they ever arrived."""
    cdef Framing* answers = &kafka.framing[1 - kafka.client]
    cdef SendSequence* own = sequence_of(kafka.connection, 1 - kafka.client)
    if is_holed(kafka, call) or is_under_way(kafka, call):
        if answers.gap_cause == GAP_NOT_CAPTURED and answers.lost_end > answer_from(call):
            return REASON_SEGMENT_LOST
        return why_missing(answers.gap_cause)
    if is_given_up(kafka, call):
        return REASON_LIMIT_REACHED
    if (answer_from(call) < 0 and own.acked_known and distance(own.acked, own.acked_from) > 0
            and distance(own.acked, first_number(kafka.connection, 1 - kafka.client)) >= 0):
        return REASON_SEGMENT_NOT_CAPTURED
    return REASON_SEGMENT_LOST


cdef inline bint was_received(KafkaConnection* kafka, Frame* response, Call* call) noexcept nogil:
    """Whether the client had this when it began to ask, as far as positions are known: then it is not an answer."""
    return response.offset < call.first.acked and not kafka.decrypted


cdef inline bint may_answer(KafkaConnection* kafka, Frame* response, Call* call) noexcept nogil:
    """Whether the broker had acknowledged the whole request when it sent this, and the client did not have it yet."""
    return ((response.first.acked < 0 or response.first.acked >= call.end_offset)
            and not was_received(kafka, response, call))


cdef inline bint may_be_later_one(KafkaConnection* kafka, Frame* response, Call* call, Call* later) noexcept nogil:
    """Whether a response is the answer to the later of two calls of one correlation id. A client uses an id again when it
    had its answer: that of the first one may lie in a hole, in front of what the second one acknowledges."""
    return (later.correlation_id == call.correlation_id and answer_from(later) > answer_from(call)
            and may_be_missed(kafka, call) and may_answer(kafka, response, later))
