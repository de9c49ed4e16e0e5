# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Frames of both directions to calls: what streams and frames hand over, and to which room it goes.

Rules
  1. Nothing counts as Kafka before it is confirmed (requests.pyx, responses.pyx, orphan_responses.pyx); what is unconfirmed
     leaves no rows but the connection's and anomalies.
  2. A connection is opened by the first bytes or the first gap of a connection and closed by its end, with all that waits.
  3. Every payload byte that the streams hand over, or drop, is counted in one bin.

    bytes -> beginnings -> frames -> requests  -> calls -> rows
               search <----'    `--> responses -> '
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free

from kwsniff.core.kafka.apis cimport free_apis
from kwsniff.core.kafka.protocol_detection cimport (
    carried_in, cut_hello, feed, open_kafka, settle_rest, settle_start, take_first_bytes, turn_away,
)
from kwsniff.core.bytes.buffer cimport release
from kwsniff.core.kafka.calls cimport finish_all
from kwsniff.core.columns.columns cimport free_tables
from kwsniff.core.kafka.kafka_connection cimport HASHED_MESSAGES, NO_PROTOCOL, REQUEST, Call, Context, KafkaConnection, count_bytes, lost_bin, side_of
from kwsniff.core.wire.engine cimport free_tape
from kwsniff.core.wire.facts cimport free_facts
from kwsniff.core.kafka.frames cimport (
    FRAMING_IGNORED, FRAMING_START, Frame, cut_off_framing, free_framing, skip_framing,
)
from kwsniff.core.bytes.hash cimport hash_span, mix
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.kafka.orphan_responses cimport give_up_orphans
from kwsniff.core.kafka.memory_budget cimport drain_if_full, learned_bytes, orphan_slots
from kwsniff.core.kafka.programs cimport NUM_LAYOUTS
from kwsniff.core.kafka.requests cimport take_request
from kwsniff.core.kafka.responses cimport take_response
from kwsniff.core.kafka.decrypted_streams cimport gap_cipher, plain_sink, retry_cipher
from kwsniff.core.kafka.late_secrets cimport free_sealed, is_too_much, keep_sealed, next_opened
from kwsniff.core.kafka.proxy_headers cimport count_early
from kwsniff.core.kafka.row_sink cimport write_anomaly, write_connection
from kwsniff.core.kafka.frame_resync cimport look_for_frame, may_chain, note_step, take_chain
from kwsniff.core.kafka.fetch_sessions cimport end_session, session_bytes
from kwsniff.core.kafka.call_stalls cimport end_stalls, stalls_bytes
from kwsniff.core.kafka.tcp_events cimport end_events
from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.tcp.arrivals cimport (
    GAP_CUT, GAP_CUT_OFF, GAP_LOST, GAP_NOT_CAPTURED, GAP_NOT_DECRYPTED, Arrival,
)
from kwsniff.core.tcp.connection cimport Connection, latest_arrival
from kwsniff.core.tcp.stream_table cimport *
from kwsniff.core.tcp.events cimport TcpEvent
from kwsniff.core.tcp.parts cimport closing_of, sequence_of
from kwsniff.core.tls.hello cimport free_hello, hello_bytes
from kwsniff.core.tls.record_layer cimport miss_records
from kwsniff.core.tls.decryption cimport end_cipher, free_tls
from kwsniff.core.tls.tls_state cimport tls_bytes
from kwsniff.core.wire.topic_ids cimport free_topic_ids, start_topic_ids
from kwsniff.core.declared cimport *


cdef void start_context(Context* context, uint64_t seed) noexcept nogil:
    start_topic_ids(&context.topic_ids, <uint32_t>context.limits.topic_ids, seed)
    context.facts.most_hits = <size_t>context.limits.rows_per_message
    context.frame_sink.context = context
    context.frame_sink.look = look_for_frame
    context.frame_sink.frame = take_frame
    context.frame_sink.out_of_step = note_step
    context.frame_sink.passed = take_passed
    context.frame_sink.chained = take_chain
    context.frame_sink.may_chain = may_chain
    context.opening.sink = plain_sink(context)


cdef void free_context(Context* context) noexcept nogil:
    cdef int i
    if context.programs != NULL:
        for i in range(NUM_LAYOUTS * context.apis.num):
            free(context.programs[i])
    free(context.programs)
    context.programs = NULL
    free_apis(&context.apis)
    free(context.choices.lessons)
    free(context.choices.wanted)
    context.choices.lessons = context.choices.wanted = NULL
    free_tables(context.tables)
    free_tape(&context.tape)
    free_facts(&context.facts)
    free_topic_ids(&context.topic_ids)
    release(&context.messages)
    release(&context.bins)
    release(&context.capture_names)
    release(&context.capture_name_ends)
    release(&context.opening.plain)
    release(&context.opening.opened)


cdef void close_kafka(Context* context, KafkaConnection* kafka) noexcept nogil:
    cdef int64_t i, learned = learned_bytes(kafka)
    cdef int j
    for j in range(2):
        free_framing(&kafka.framing[j], &context.kept_total)
    for i in range(kafka.num_slots):
        context.waiting_total -= <int64_t>(kafka.calls[i].text.cap + kafka.calls[i].parts.cap)
        release(&kafka.calls[i].text)
        release(&kafka.calls[i].parts)
    context.waiting_total -= kafka.num_slots * <int64_t>sizeof(Call)
    free(kafka.calls)
    for j in range(kafka.num_orphans):
        context.waiting_total -= <int64_t>kafka.orphans[j].bytes.cap
        release(&kafka.orphans[j].bytes)
    if kafka.orphans != NULL:
        context.waiting_total -= orphan_slots(context)
    free(kafka.orphans)
    release(&kafka.client_id)
    release(&kafka.software_name)
    release(&kafka.software_version)
    release(&kafka.sasl_mechanism)
    release(&kafka.principal)
    release(&kafka.early_messages)
    context.waiting_total -= stalls_bytes(kafka)
    release(&kafka.stalls)
    if kafka.hello != NULL:
        context.kept_total -= hello_bytes(kafka.hello)
    free_hello(kafka.hello)
    if kafka.tls != NULL:
        context.kept_total -= tls_bytes(kafka.tls)
        free_tls(kafka.tls)
    context.learned_total -= learned
    context.num_kafka_connections -= 1
    context.waiting_total -= session_bytes(kafka)
    end_session(kafka)
    free(kafka)


cdef void take_bytes(void* opaque, Connection* connection, int direction, Arrival* arrival,
                     Span data) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef KafkaConnection* kafka = <KafkaConnection*>connection.kafka
    cdef int64_t offset = sequence_of(connection, direction).offset
    if kafka == NULL:
        kafka = open_kafka(context, connection)
        if kafka == NULL:
            count_bytes(context, arrival.capture, BIN_MEMORY_REFUSED, <int64_t>data.num)
            return
    context.frame_sink.kafka = kafka
    if kafka.tls == NULL and kafka.framing[direction].state == FRAMING_START:
        take_first_bytes(context, kafka, direction, arrival, offset, data)
    else:
        feed(context, kafka, direction, arrival, offset, data)


cdef void take_gap(void* opaque, Connection* connection, int direction, Arrival* arrival, int64_t num,
                   int cause) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef KafkaConnection* kafka = <KafkaConnection*>connection.kafka
    cdef int name = ANOMALY_SEGMENT_LOST
    cdef int64_t offset = sequence_of(connection, direction).offset
    if cause == GAP_NOT_CAPTURED: name = ANOMALY_SEGMENT_NOT_CAPTURED
    elif cause == GAP_CUT: name = ANOMALY_PACKET_CUT
    if kafka == NULL:
        kafka = open_kafka(context, connection)
        if kafka == NULL:
            return
    if kafka.hello != NULL:
        cut_hello(context, kafka, direction)
        miss_records(&kafka.hello.side[direction].records, num)
    if kafka.tls != NULL:
        if kafka.tls.begun and (cause < GAP_CUT or not kafka.framing[direction].gaps):
            write_anomaly(context, connection, -1, arrival, side_of(kafka, direction), offset, name, num)
        gap_cipher(context, kafka, direction, arrival, offset, num, cause)
        return
    if kafka.answered_in != NO_PROTOCOL and not kafka.confirmed:
        turn_away(context, kafka, kafka.answered_in)      # whether it was asked in Kafka's words is not known
    if kafka.framing[direction].state == FRAMING_IGNORED:
        return
    if cause < GAP_CUT or kafka.framing[direction].gaps == 0:
        # What a short snaplen cuts, or what has no key, is reported once per direction, not once per packet.
        write_anomaly(context, connection, -1, arrival, side_of(kafka, direction), offset, name, num)
    context.frame_sink.kafka = kafka
    if kafka.framing[direction].state == FRAMING_START:
        settle_start(context, kafka, direction)
    skip_framing(&kafka.framing[direction], &context.frame_sink, &context.limits, &context.kept_total, arrival,
                 offset, num, cause)


cdef void take_oddity(void* opaque, Connection* connection, int direction, Arrival* arrival, int oddity,
                      int64_t value) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef KafkaConnection* kafka = <KafkaConnection*>connection.kafka
    cdef int name = ANOMALY_SEGMENTS_OVERLAP
    if oddity == ODD_OUT_OF_WINDOW: name = ANOMALY_SEGMENT_OUT_OF_WINDOW
    elif oddity == ODD_AFTER_END: name = ANOMALY_DATA_AFTER_END
    elif oddity == ODD_HELD_LIMIT: name = ANOMALY_HELD_LIMIT
    elif oddity == ODD_CONFLICT: name = ANOMALY_CONFLICTING_RETRANSMISSION
    elif oddity == ODD_EVICTED: name = ANOMALY_CONNECTION_EVICTED
    elif oddity == ODD_RESET: name = ANOMALY_RESET_OUT_OF_WINDOW
    elif oddity == ODD_RESET_TAKEN_BACK: name = ANOMALY_RESET_TAKEN_BACK
    elif oddity == ODD_HANDSHAKE: name = ANOMALY_HANDSHAKE_OUT_OF_PLACE
    elif oddity == ODD_FILLED: name = ANOMALY_HOLE_FILLED
    if oddity == ODD_EVICTED:
        write_anomaly(context, connection, -1, arrival, -1, -1, name, value)
        return
    write_anomaly(context, connection, -1, arrival, side_of(kafka, direction) if kafka != NULL else -1,
                  sequence_of(connection, direction).offset, name, value)


cdef void take_end(void* opaque, Connection* connection) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef KafkaConnection* kafka = <KafkaConnection*>connection.kafka
    drain_if_full(context)
    if kafka == NULL:
        end_events(context, connection, NULL)
        write_connection(context, connection, NULL)
        return
    context.frame_sink.kafka = kafka
    if kafka.hello != NULL:
        cut_hello(context, kafka, 0)
        cut_hello(context, kafka, 1)
    if kafka.tls != NULL:
        end_cipher(&context.opening, kafka.tls, connection)
        if keep_sealed(context, connection, kafka):
            return
    settle_rest(context, kafka)
    finish_kafka(context, connection, kafka)
    connection.kafka = NULL


cdef void finish_kafka(Context* context, Connection* connection, KafkaConnection* kafka) noexcept nogil:
    """Nothing more comes: what waits becomes rows, or is counted."""
    cdef Arrival arrival
    cdef int direction
    if is_cut_off(connection, kafka):
        arrival = latest_arrival(connection)
        cut_off_framing(&kafka.framing[1 - kafka.client], &context.frame_sink, &context.kept_total, &arrival)
    finish_all(context, kafka)
    while kafka.num_orphans:
        give_up_orphans(context, kafka, 0)
    if kafka.protocol == PROTOCOL_UNDECIDED:
        kafka.protocol = carried_in(kafka)
    for direction in range(2):
        if kafka.framing[direction].captured:
            count_bytes(context, kafka.framing[direction].capture,
                        BIN_UNFINISHED if kafka.confirmed else lost_bin(kafka),
                        kafka.framing[direction].captured)
        count_early(context, &kafka.framing[direction], BIN_UNFINISHED if kafka.confirmed else lost_bin(kafka))
    end_events(context, connection, kafka)
    end_stalls(context, kafka)
    write_connection(context, connection, kafka)
    close_kafka(context, kafka)


cdef void end_sealed(Context* context, Connection* connection) noexcept nogil:
    """A connection that has waited for secrets, with what they opened of it."""
    context.frame_sink.kafka = connection.kafka
    drain_if_full(context)
    finish_kafka(context, connection, <KafkaConnection*>connection.kafka)
    free_sealed(context, connection)


cdef void take_secrets(Context* context, Streams* streams) noexcept nogil:
    """Some have come: of any connection, be it open or over."""
    cdef Connection* connection
    cdef Connection* next
    retry_cipher(context, streams)
    connection = next_opened(context, context.sealed.oldest)
    while connection != NULL:
        next = connection.newer
        end_sealed(context, connection)
        connection = next_opened(context, next)


cdef void end_too_many(Context* context, int64_t time) noexcept nogil:
    """Those that have waited for secrets for too long, or take too much memory."""
    while is_too_much(context, time):
        end_sealed(context, context.sealed.oldest)


cdef void forget_sealed(Context* context) noexcept nogil:
    """Their rows are not needed any more."""
    while context.sealed.oldest != NULL:
        close_kafka(context, <KafkaConnection*>context.sealed.oldest.kafka)
        free_sealed(context, context.sealed.oldest)


cdef void end_all_sealed(Context* context) noexcept nogil:
    while context.sealed.oldest != NULL:
        end_sealed(context, context.sealed.oldest)


cdef inline bint is_cut_off(Connection* connection, KafkaConnection* kafka) noexcept nogil:
    """Whether the client closed the connection when the unfinished response, if there is one, had begun."""
    cdef int64_t begun
    if kafka.client < 0 or closing_of(connection).closer != kafka.client:
        return False
    begun = kafka.framing[1 - kafka.client].first.time
    return begun == NO_TIME or closing_of(connection).close_time == NO_TIME or begun <= closing_of(connection).close_time


cdef void take_dropped(void* opaque, int64_t capture, int cause, int64_t num) noexcept nogil:
    cdef int[7] bins = [BIN_RETRANSMITTED, BIN_OUT_OF_WINDOW, BIN_AFTER_END, BIN_MEMORY_REFUSED, BIN_CAPTURED_TWICE,
                        BIN_KEEP_ALIVE, BIN_FILLED]
    count_bytes(<Context*>opaque, capture, bins[cause], num)


cdef void take_passed(void* opaque, void* opaque_kafka, int64_t capture, int64_t num, bint continued) noexcept nogil:
    cdef KafkaConnection* kafka = <KafkaConnection*>opaque_kafka
    cdef int bin = BIN_CONTINUED
    if not continued:
        bin = lost_bin(kafka)
        if kafka.answered_in != NO_PROTOCOL and kafka.framing[1 - kafka.client].state == FRAMING_IGNORED:
            bin = BIN_NOT_KAFKA
    count_bytes(<Context*>opaque, capture, bin, num)


cdef bint take_frame(void* opaque, void* opaque_kafka, int side, Frame* frame) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef KafkaConnection* kafka = <KafkaConnection*>opaque_kafka
    if 0 <= kafka.num_hashed[side] < HASHED_MESSAGES and not (frame.torn and frame.cause == GAP_CUT_OFF):
        hash_message(kafka, side, frame)
    if frame.torn and kafka.confirmed:
        note_torn(context, kafka, side, frame)
    if side == REQUEST:
        return take_request(context, kafka, frame)
    return take_response(context, kafka, frame)


cdef void hash_message(KafkaConnection* kafka, int side, Frame* frame) noexcept nogil:
    """Without a secret: tasks of other buckets have to come to the same."""
    if frame.torn or frame.found:
        kafka.num_hashed[side] = -1
        return
    kafka.messages_hash[side] = hash_span(frame.bytes, mix(kafka.messages_hash[side], frame.bytes.num))
    kafka.num_hashed[side] += 1


cdef void note_torn(Context* context, KafkaConnection* kafka, int side, Frame* frame) noexcept nogil:
    if frame.cause in (GAP_CUT, GAP_NOT_DECRYPTED, GAP_CUT_OFF):
        return
    write_anomaly(context, kafka.connection, -1, &frame.last, side, frame.offset,
                  ANOMALY_FRAME_KEPT_LIMIT if frame.cause < 0 else ANOMALY_FRAME_TORN,
                  frame.length - <int64_t>frame.bytes.num)
