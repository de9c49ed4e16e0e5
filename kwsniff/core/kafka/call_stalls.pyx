# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Stalls that wait until the call that they held up is known.

Rules
  1. A stall is its call's by time: the bytes that came before it and behind it are of one message. So TLS makes no
     difference, and a stall lies inside the part of the call's time that its message took.
  2. A call takes its stalls when it ends; what is older than its messages then held up no call, and is forgotten.
  3. Of one message MOST_STALLS wait. Beyond, those in a row with one cause become one.
  4. What TLS hides has no messages, and no stalls.

    request  | data |== stall ==| data |             response  | data |== stall ==| data |
"""

from libc.stdint cimport INT64_MAX, int64_t

from kwsniff.core.bytes.buffer cimport append_raw
from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.declared cimport (
    STALL_CAUSE_FAST_RETRANSMISSION, STALL_CAUSE_PATH_MTU, STALL_CAUSE_RETRANSMISSION_TIMEOUT,
)
from kwsniff.core.kafka.frames cimport FRAMING_IN_STEP, Framing
from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection
from kwsniff.core.kafka.row_sink cimport write_stalls
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stall_marks cimport Stall

cdef enum:
    MOST_STALLS = 1024


cdef bint is_inside(Connection* connection, int direction) noexcept nogil:
    """Whether the next byte of this endpoint continues a message."""
    cdef KafkaConnection* kafka = <KafkaConnection*>connection.kafka
    if kafka == NULL or not kafka.confirmed:
        return False
    if kafka.tls != NULL:
        return kafka.decrypted
    return kafka.framing[direction].have > 0 and kafka.framing[direction].state == FRAMING_IN_STEP


cdef void take_stall(void* opaque, Connection* connection, Stall* stall) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef KafkaConnection* kafka = <KafkaConnection*>connection.kafka
    cdef Stall* stalls
    cdef int64_t num, cap
    if kafka == NULL or not kafka.confirmed or kafka.tls != NULL and not kafka.decrypted:
        return
    stalls = <Stall*>kafka.stalls.data
    num = <int64_t>(kafka.stalls.len // sizeof(Stall))
    if stall.cause == STALL_CAUSE_PATH_MTU:
        blame_path(stalls, num, stall)
    if num >= MOST_STALLS:
        if stalls[num - 1].sender == stall.sender and stalls[num - 1].cause == stall.cause:
            stalls[num - 1].until = stall.until
            stalls[num - 1].took += stall.took
            stalls[num - 1].last_frame = stall.last_frame
            return
        kafka.stalls.len = 0
    cap = <int64_t>kafka.stalls.cap
    append_raw(&kafka.stalls, stall, sizeof(Stall))
    context.waiting_total += <int64_t>kafka.stalls.cap - cap


cdef void blame_path(Stall* stalls, int64_t num, Stall* stall) noexcept nogil:
    """The segment did not fit through the path the times before, either."""
    cdef int64_t i
    for i in range(num):
        if (stalls[i].sender == stall.sender and stalls[i].offset == stall.offset
                and stalls[i].cause in (STALL_CAUSE_FAST_RETRANSMISSION, STALL_CAUSE_RETRANSMISSION_TIMEOUT)):
            stalls[i].cause = STALL_CAUSE_PATH_MTU


cdef inline int64_t begun_at(KafkaConnection* kafka, int direction) noexcept nogil:
    """When the unfinished message of this endpoint began."""
    cdef Framing* framing = &kafka.framing[direction]
    return framing.first.time if framing.have > 0 and framing.state == FRAMING_IN_STEP else <int64_t>INT64_MAX


cdef void settle_unanswered(Context* context, KafkaConnection* kafka, Call* call) noexcept nogil:
    """The call ends without a response: to the end its request was on its way, or its response inside one."""
    if call.first.time != NO_TIME and kafka.client >= 0:
        write_stalls(context, kafka, call, call.first.time, <int64_t>INT64_MAX, begun_at(kafka, 1 - kafka.client), <int64_t>INT64_MAX)


cdef void end_stalls(Context* context, KafkaConnection* kafka) noexcept nogil:
    """The connection is over: what waits is of messages that are not whole."""
    if kafka.stalls.len and kafka.client >= 0 and not context.choices.some:
        write_stalls(context, kafka, NULL, begun_at(kafka, kafka.client), <int64_t>INT64_MAX,
                     begun_at(kafka, 1 - kafka.client), <int64_t>INT64_MAX)
    kafka.stalls.len = 0
