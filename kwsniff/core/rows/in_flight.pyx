# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Requests in flight, for a live capture.

Rules
  1. Only what the broker owes is listed: an answer that may have passed unseen is not owed.
  2. A Fetch is due when the wait that it asked for is over; what comes while the broker said that it reads nothing, when
     that is over; what is queued behind another call, not before that one, and behind one of the APIs in `always`,
     which waits for others, not at all.
  3. Rows here are Python's: they are few, a look at a time, and no more than asked for.

    | call asked ---- max_wait_ms ---- due |............ before
"""

from libc.stdint cimport int64_t, uint8_t

from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.declared cimport CALLER_BROKER, CALLER_REPLICA
from kwsniff.core.kafka.kafka_connection cimport (
    KEPT_CLIENT_ID, KEPT_GROUP_ID, KEPT_GROUP_INSTANCE_ID, KEPT_MEMBER_ID, KEPT_TOPICS, Call, Context, KafkaConnection,
    waiting_call,
)
from kwsniff.core.kafka.request_texts cimport kept_text, next_topic
from kwsniff.core.kafka.unanswered cimport is_under_way, may_be_missed
from kwsniff.core.bytes.span cimport Span, make_span
from kwsniff.core.rows.rows cimport write_uuid
from kwsniff.core.tcp.parts cimport reset_of, traffic_of
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.wire.topic_ids cimport find_topic


cdef int64_t NEVER = 0x7FFFFFFFFFFFFFFF

cdef enum:
    MOST_TOPICS = 20            # of a call that are named


cdef tuple count_waits(Connection* oldest):
    """How many calls wait, and when the first answer is or was due, or None."""
    cdef Connection* connection = oldest
    cdef KafkaConnection* kafka
    cdef int64_t first = NO_TIME
    cdef int64_t num = 0, due
    while connection != NULL:
        kafka = <KafkaConnection*>connection.kafka
        if kafka != NULL and kafka.confirmed and kafka.num:
            num += kafka.num
            due = waiting_call(kafka, 0).first.time
            if due != NO_TIME:
                due = due_time(kafka, waiting_call(kafka, 0))
            if first == NO_TIME or due < first:
                first = due
        connection = connection.newer
    return num, None if first == NO_TIME else first


cdef list list_waits(Context* context, Connection* oldest, int64_t before, frozenset always, int64_t most):
    """Tuples (call id, API, version, caller, client, its address and port, broker's address and port, asked, due, group,
    member, topics), times in nanoseconds, of calls that are due `before`, and of the APIs in `always`."""
    cdef list rows = []
    cdef Connection* connection = oldest
    cdef KafkaConnection* kafka
    cdef Call* call
    cdef int64_t i, due, ahead
    cdef bint was_reset
    while connection != NULL and <int64_t>len(rows) < most:
        kafka = <KafkaConnection*>connection.kafka
        was_reset = reset_of(connection).by >= 0
        connection = connection.newer
        # After a reset nothing is owed, until it is taken back.
        if kafka == NULL or not kafka.confirmed or kafka.client < 0 or was_reset:
            continue
        ahead = NO_TIME
        for i in range(kafka.num):
            call = waiting_call(kafka, i)
            if not call.known or call.first.time == NO_TIME:
                continue
            due = due_time(kafka, call)
            if ahead != NO_TIME and ahead > due:
                due = ahead
            ahead = NEVER if call.key in always else due
            if due >= before and call.key not in always:
                continue
            if not may_have_passed(kafka, call):
                rows.append(wait_row(context, kafka, call, due))
    return rows


cdef inline bint may_have_passed(KafkaConnection* kafka, Call* call) noexcept nogil:
    """Nothing of the broker is seen, or bytes of it are missing since the call was asked."""
    cdef int broker = 1 - kafka.client
    return (traffic_of(kafka.connection, broker).packets == 0 or may_be_missed(kafka, call)
            or is_under_way(kafka, call))


cdef inline int64_t due_time(KafkaConnection* kafka, Call* call) noexcept nogil:
    cdef int64_t due = call.first.time
    if call.max_wait.is_known:
        due += call.max_wait.value * 1_000_000
    return due if kafka.muted_until == NO_TIME or kafka.muted_until < due else kafka.muted_until


cdef tuple wait_row(Context* context, KafkaConnection* kafka, Call* call, int64_t due):
    cdef int client = kafka.client
    caller = "replica" if kafka.caller == CALLER_REPLICA or call.caller == CALLER_REPLICA else \
        "broker" if kafka.caller == CALLER_BROKER or call.caller == CALLER_BROKER else None
    member = text_of(kept_text(call, KEPT_GROUP_INSTANCE_ID)) or text_of(kept_text(call, KEPT_MEMBER_ID))
    return (
        call.id, call.key, call.version, caller, text_of(kept_text(call, KEPT_CLIENT_ID)),
        text_of(make_span(kafka.address[client], <size_t>kafka.address_len[client])),
        kafka.connection.port[client],
        text_of(make_span(kafka.address[1 - client], <size_t>kafka.address_len[1 - client])),
        kafka.connection.port[1 - client], call.first.time, due, text_of(kept_text(call, KEPT_GROUP_ID)), member,
        topics_of(context, call),
    )


cdef tuple topics_of(Context* context, Call* call):
    cdef Span topic, name, left = kept_text(call, KEPT_TOPICS)
    cdef uint8_t[22] id_text
    cdef bint by_id = False
    cdef list names = []
    while left.num and len(names) < MOST_TOPICS:
        topic = next_topic(&left, &by_id)
        if by_id:
            name = find_topic(&context.topic_ids, topic)
            if name.at == NULL:
                write_uuid(topic, id_text)
                name = make_span(id_text, 22)
            names.append(text_of(name))
        else:
            names.append(text_of(topic))
    return tuple(names)


cdef text_of(Span text):
    return None if text.at == NULL else (<const char*>text.at)[:text.num].decode("utf-8", "replace")
