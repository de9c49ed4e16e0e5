# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""TCP events (retransmissions, closed windows, resets), and the call that each delayed.

Rules
  1. Only connections that are Kafka's, or carried nothing, have rows: events wait until that is known, EVENTS of them.
  2. An event delayed the call whose bytes it is about: a position in the stream of a direction lies in one request or
     response. The call may be over, waiting, or not known yet; then the event waits for it.
  3. A connection has `tcp_events` rows at most; an anomaly reports what is beyond, once.
  4. Positions of plaintext are not TCP's: inside TLS no call is named.

    stream   | request | request |  hole  |             spoken  | the latest SPOKEN calls that are over |
                  ^ sent again: this call's
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport malloc

from kwsniff.core.declared cimport ANOMALY_TCP_EVENTS_LIMIT, TCP_EVENT_SYN_AGAIN
from kwsniff.core.kafka.kafka_connection cimport SPOKEN, Call, Context, KafkaConnection, Spoken, waiting_call
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.kafka.row_sink cimport write_anomaly, write_event
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.events cimport EVENTS, TcpEvent

cdef enum:
    WAITING_LOOKED_AT = 64


cdef void take_event(void* opaque, Connection* connection, TcpEvent* event) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef KafkaConnection* kafka = <KafkaConnection*>connection.kafka
    cdef int64_t call_id = -1
    connection.events_seen += 1
    if connection.events_seen > context.limits.tcp_events:
        connection.events_lost += 1
        return
    if kafka != NULL and kafka.confirmed:
        if not has_place(event) or kafka.decrypted:
            if event.kind != TCP_EVENT_SYN_AGAIN and kafka.num and not kafka.decrypted:
                call_id = waiting_call(kafka, 0).id
            write_event(context, connection, kafka, event, call_id)
            return
        call_id = find_call(kafka, event)
        if call_id >= 0:
            write_event(context, connection, kafka, event, call_id)
            return
    if connection.events == NULL:
        connection.events = <TcpEvent*>malloc(EVENTS * sizeof(TcpEvent))
        if connection.events == NULL:
            connection.events_lost += 1
            return
    if connection.num_events == EVENTS:
        drop_first(context, connection, kafka)
    connection.events[connection.num_events] = event[0]
    connection.num_events += 1


cdef inline bint has_place(TcpEvent* event) noexcept nogil:
    return event.offset >= 0 and event.stream >= 0


cdef void drop_first(Context* context, Connection* connection, KafkaConnection* kafka) noexcept nogil:
    cdef int i
    if kafka != NULL and kafka.confirmed:
        write_event(context, connection, kafka, &connection.events[0], -1)
    else:
        connection.events_lost += 1
    connection.num_events -= 1
    for i in range(connection.num_events):
        connection.events[i] = connection.events[i + 1]


cdef inline bint meets(TcpEvent* event, int64_t begin, int64_t end) noexcept nogil:
    return event.offset < end and event.offset + (event.bytes if event.bytes > 0 else 1) > begin


cdef int64_t find_call(KafkaConnection* kafka, TcpEvent* event) noexcept nogil:
    """The call of a place in a stream, -1 if none is known there (yet)."""
    cdef Spoken* spoken
    cdef Call* call
    cdef int64_t i
    for i in range(SPOKEN):
        spoken = &kafka.spoken[i]
        if spoken.id and (meets(event, spoken.asked, spoken.asked_end) if event.stream == kafka.client
                          else meets(event, spoken.answered, spoken.answered_end)):
            return spoken.id
    if event.stream == kafka.client:
        for i in range(kafka.num if kafka.num < WAITING_LOOKED_AT else WAITING_LOOKED_AT):
            call = waiting_call(kafka, i)
            if meets(event, call.end_offset - call.length, call.end_offset):
                return call.id
    return -1


cdef void settle_events(Context* context, KafkaConnection* kafka, Call* call, Frame* response) noexcept nogil:
    """A call is over, and a row: remembers its positions, and writes the events that waited for it."""
    cdef Connection* connection = kafka.connection
    cdef Spoken* spoken = &kafka.spoken[kafka.num_spoken & (SPOKEN - 1)]
    cdef TcpEvent* event
    cdef int i, kept = 0
    cdef int64_t call_id
    kafka.num_spoken += 1
    spoken.id = call.id
    spoken.asked = call.end_offset - call.length
    spoken.asked_end = call.end_offset
    spoken.answered = response.offset if response != NULL else 0
    spoken.answered_end = response.offset + response.length if response != NULL else 0
    for i in range(connection.num_events):
        event = &connection.events[i]
        call_id = -1 if kafka.decrypted or not has_place(event) else find_call(kafka, event)
        if call_id >= 0 or kafka.decrypted or not has_place(event):
            write_event(context, connection, kafka, event, call_id)
            continue
        connection.events[kept] = event[0]
        kept += 1
    connection.num_events = kept


cdef void end_events(Context* context, Connection* connection, KafkaConnection* kafka) noexcept nogil:
    """The connection is over: what waits belongs to no call. `kafka` is NULL where it carried no payload."""
    cdef int i
    if kafka != NULL and not kafka.confirmed and not kafka.forced and not connection.refused:
        return
    for i in range(connection.num_events):
        write_event(context, connection, kafka, &connection.events[i], -1)
    connection.num_events = 0
    if connection.events_lost:
        write_anomaly(context, connection, -1, NULL, -1, -1, ANOMALY_TCP_EVENTS_LIMIT, connection.events_lost)
