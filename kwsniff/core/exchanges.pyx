# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Frames of both directions to calls: who asks whom, which response answers which request.

Rules
  1. A broker answers one connection in order (KafkaChannel, muted while a request is in flight). The response is
     matched with the oldest waiting request of its correlation id; requests that it passes over will not be answered.
  2. A request whose `acks` field is 0 gets no response and does not wait for one (ProduceRequest).
  3. Nothing counts as Kafka before it is confirmed: a request decoded to its last byte, a response paired, or two
     plausible requests in a row. Unconfirmed calls leave no rows.
  4. A response that comes before its request (captures may record packets a little out of order, or their request's
     segment is still missing) is parked, within limits, and paired when the request arrives.
  5. An ApiVersions response of error 35 has a v0 body whatever was asked (KIP-511).
  6. After an answered SaslHandshake v0 both directions carry bare tokens until the client sends a request again.

    client to broker   | size | key version correlation client_id | body |     waits in the ring: head ... head+num
    broker to client   | size | correlation | body |
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memset

from kwsniff.core.buffer cimport Buffer, append, append_raw, contents, release, shrink
from kwsniff.core.columns cimport free_tables
from kwsniff.core.engine cimport free_tape, run_program
from kwsniff.core.facts cimport TOPIC_BY_ID, Facts, free_facts, gather_facts
from kwsniff.core.frames cimport *
from kwsniff.core.octets cimport Octets, be16, be32, drop, has, keep, make_octets
from kwsniff.core.packets cimport NO_TIME
from kwsniff.core.partitions cimport keep_parts, write_batches, write_partitions
from kwsniff.core.recognition cimport (
    NUM_API_KEYS, is_gssapi_token, look_at_request, measure_proxy_header, name_protocol,
)
from kwsniff.core.rows cimport (
    format_address, write_anomaly, write_call, write_connection, write_errors, write_response_only,
)
from kwsniff.core.streams cimport *
from kwsniff.core.tape cimport (
    ENGINE_ARRAY_LONGER_THAN_FRAME, ENGINE_BYTES_LEFT_OVER, ENGINE_OK, ENGINE_UNEXPECTED_END, EngineStop,
)
from kwsniff.core.timing cimport note_answer, write_latency
from kwsniff.core.topic_ids cimport free_topic_ids, start_topic_ids
from kwsniff.core.verdicts cimport *

cdef enum:
    API_VERSIONS = 18
    SASL_HANDSHAKE = 17
    UNSUPPORTED_VERSION = 35
    REQUEST = 0
    RESPONSE = 1
    START_BYTES = 256           # enough to tell what a direction carries
    SPARE_TEXT = 512            # text and partitions of a call up to this size are kept for the next call
    MIN_TRIAL = 24              # bytes of a response that must make sense before its rest is waited for
    AWAITED = 256               # waiting calls that an answer is looked for among, while out of step
    MIN_UNEXPECTED = 3          # responses in a row that confirm each other
    MAX_TRIALS = 32             # decodings per segment in search of a frame: more would be quadratic work


cdef void start_context(Context* context, uint64_t seed) noexcept nogil:
    start_topic_ids(&context.topic_ids, <uint32_t>context.limits.topic_ids, seed)
    context.facts.most_hits = <size_t>context.limits.hits_per_message
    context.frame_sink.context = context
    context.frame_sink.look = look_for_frame
    context.frame_sink.frame = take_frame
    context.frame_sink.out_of_step = note_step
    context.frame_sink.passed = take_passed
    context.frame_sink.chained = take_chain
    context.frame_sink.may_chain = may_chain


cdef void free_context(Context* context) noexcept nogil:
    cdef int direction, key
    for direction in range(2):
        for key in range(<int>NUM_API_KEYS):
            free(context.programs[direction][key])
            context.programs[direction][key] = NULL
    free_tables(context.tables)
    free_tape(&context.tape)
    free_facts(&context.facts)
    free_topic_ids(&context.topic_ids)
    release(&context.messages)
    release(&context.bins)
    release(&context.capture_names)
    release(&context.capture_name_ends)


cdef inline void count_bytes(Context* context, int64_t capture, int bin, int64_t num) noexcept nogil:
    (<int64_t*>context.bins.data)[capture * NUM_BINS + bin] += num


cdef void take_dropped(void* opaque, int64_t capture, int cause, int64_t num) noexcept nogil:
    cdef int[4] bins = [BIN_RETRANSMITTED, BIN_OUT_OF_WINDOW, BIN_AFTER_END, BIN_MEMORY_REFUSED]
    count_bytes(<Context*>opaque, capture, bins[cause], num)


cdef void take_passed(void* opaque, void* opaque_dialog, int64_t capture, int64_t num, bint continued) noexcept nogil:
    cdef Dialog* dialog = <Dialog*>opaque_dialog
    cdef int bin = BIN_CONTINUED
    if not continued:
        bin = lost_bin(dialog)
    count_bytes(<Context*>opaque, capture, bin, num)


cdef inline int lost_bin(Dialog* dialog) noexcept nogil:
    """The bin of bytes of this connection that are part of no frame."""
    if dialog.protocol == PROTOCOL_KAFKA:
        return BIN_LOST_FRAMING
    return BIN_UNDECIDED if dialog.protocol == PROTOCOL_UNDECIDED else BIN_NOT_KAFKA


cdef inline bint is_forced(Context* context, uint32_t port) noexcept nogil:
    return context.ports[port >> 3] >> (port & 7) & 1


# -- dialogs ----------------------------------------------------------------------------------------------------

cdef Dialog* open_dialog(Context* context, Connection* connection) noexcept nogil:
    cdef Dialog* dialog = <Dialog*>calloc(1, sizeof(Dialog))
    cdef int i
    if dialog == NULL:
        write_anomaly(context, connection, -1, NULL, -1, -1, ANOMALY_MEMORY_REFUSED, sizeof(Dialog))
        return NULL
    connection.dialog = dialog
    dialog.connection = connection
    dialog.protocol = PROTOCOL_UNDECIDED
    dialog.client = -1
    dialog.role = ROLE_UNKNOWN
    dialog.caller = CALLER_UNKNOWN
    dialog.answered_at = NO_TIME
    dialog.muted_until = NO_TIME
    for i in range(2):
        dialog.address_len[i] = format_address(connection.address[i], dialog.address[i])
        if is_forced(context, connection.port[i]) and not is_forced(context, connection.port[1 - i]):
            dialog.forced = True
            set_client(dialog, 1 - i, ROLE_PORT)
    if dialog.client < 0 and connection.opener >= 0:
        set_client(dialog, connection.opener, ROLE_HANDSHAKE)
        dialog.forced = is_forced(context, connection.port[1 - connection.opener])
    return dialog


cdef void set_client(Dialog* dialog, int client, int role) noexcept nogil:
    dialog.client = client
    dialog.role = role
    dialog.framing[client].direction = 0
    dialog.framing[1 - client].direction = 1


cdef void close_dialog(Context* context, Dialog* dialog) noexcept nogil:
    cdef int64_t i
    cdef int j
    for j in range(2):
        free_framing(&dialog.framing[j], &context.kept_total)
    for i in range(dialog.num_slots):
        context.waiting_total -= <int64_t>(dialog.calls[i].text.cap + dialog.calls[i].parts.cap)
        release(&dialog.calls[i].text)
        release(&dialog.calls[i].parts)
    context.waiting_total -= dialog.num_slots * <int64_t>sizeof(Call)
    free(dialog.calls)
    for j in range(dialog.num_parked):
        context.waiting_total -= <int64_t>dialog.parked[j].bytes.cap
        release(&dialog.parked[j].bytes)
    free(dialog.parked)
    release(&dialog.client_id)
    release(&dialog.software_name)
    release(&dialog.software_version)
    release(&dialog.sasl_mechanism)
    release(&dialog.principal)
    free(dialog)


cdef void take_bytes(void* opaque, Connection* connection, int direction, Arrival* arrival,
                     Octets data) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef Dialog* dialog = <Dialog*>connection.dialog
    cdef int64_t offset = connection.direction[direction].offset
    if dialog == NULL:
        dialog = open_dialog(context, connection)
        if dialog == NULL:
            count_bytes(context, arrival.capture, BIN_MEMORY_REFUSED, <int64_t>data.num)
            return
    context.frame_sink.dialog = dialog
    if dialog.framing[direction].state == FRAMING_START:
        take_first_bytes(context, dialog, direction, arrival, offset, data)
    else:
        feed(context, dialog, direction, arrival, offset, data)


cdef inline void feed(Context* context, Dialog* dialog, int direction, Arrival* arrival, int64_t offset,
                      Octets data) noexcept nogil:
    if dialog.client < 0 and dialog.framing[direction].state == FRAMING_LOST:
        look_midway(context, dialog, direction, arrival, offset, data)
        return
    feed_framing(&dialog.framing[direction], &context.frame_sink, &context.limits, &context.kept_total, arrival,
                 offset, data)


cdef void take_gap(void* opaque, Connection* connection, int direction, Arrival* arrival, int64_t num,
                   int cause) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef Dialog* dialog = <Dialog*>connection.dialog
    cdef int name = ANOMALY_SEGMENT_LOST
    cdef int64_t offset = connection.direction[direction].offset
    if cause == GAP_NOT_CAPTURED: name = ANOMALY_SEGMENT_NOT_CAPTURED
    elif cause == GAP_CUT: name = ANOMALY_PACKET_CUT
    if dialog == NULL:
        dialog = open_dialog(context, connection)
        if dialog == NULL:
            return
    if dialog.framing[direction].state == FRAMING_IGNORED:
        return
    if cause != GAP_CUT or dialog.framing[direction].gaps == 0:
        # What a short snaplen cuts is told once per direction, not once per packet.
        write_anomaly(context, connection, -1, arrival, side_of(dialog, direction), offset, name, num)
    context.frame_sink.dialog = dialog
    if dialog.framing[direction].state == FRAMING_START:
        settle_start(context, dialog, direction)
    skip_framing(&dialog.framing[direction], &context.frame_sink, &context.limits, &context.kept_total, arrival,
                 offset, num, cause)


cdef inline int side_of(Dialog* dialog, int direction) noexcept nogil:
    """0 client to broker, 1 broker to client, -1 not known."""
    if dialog.client < 0:
        return -1
    return 0 if direction == dialog.client else 1


cdef void take_oddity(void* opaque, Connection* connection, int direction, Arrival* arrival, int oddity,
                      int64_t value) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef Dialog* dialog = <Dialog*>connection.dialog
    cdef int name = ANOMALY_SEGMENTS_OVERLAP
    if oddity == ODD_OUT_OF_WINDOW: name = ANOMALY_SEGMENT_OUT_OF_WINDOW
    elif oddity == ODD_AFTER_END: name = ANOMALY_DATA_AFTER_END
    elif oddity == ODD_HELD_LIMIT: name = ANOMALY_HELD_LIMIT
    elif oddity == ODD_CONFLICT: name = ANOMALY_CONFLICTING_RETRANSMISSION
    write_anomaly(context, connection, -1, arrival, side_of(dialog, direction) if dialog != NULL else -1,
                  connection.direction[direction].offset, name, value)


cdef void take_end(void* opaque, Connection* connection) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef Dialog* dialog = <Dialog*>connection.dialog
    cdef int status, reason, direction
    if dialog == NULL:
        write_connection(context, connection, NULL)
        return
    context.frame_sink.dialog = dialog
    while dialog.num:
        explain_silence(dialog, &dialog.calls[dialog.head & (dialog.num_slots - 1)], &status, &reason)
        finish_oldest(context, dialog, status, reason)
    while dialog.num_parked:
        give_up_parked(context, dialog, 0)
    for direction in range(2):
        if dialog.framing[direction].captured:
            count_bytes(context, dialog.framing[direction].capture,
                        BIN_UNFINISHED if dialog.confirmed else lost_bin(dialog),
                        dialog.framing[direction].captured)
    write_connection(context, connection, dialog)
    close_dialog(context, dialog)
    connection.dialog = NULL


# -- the beginning of a connection ------------------------------------------------------------------------------

cdef void take_first_bytes(Context* context, Dialog* dialog, int direction, Arrival* arrival, int64_t offset,
                           Octets data) noexcept nogil:
    """Collects the first bytes of a direction until they show what the connection carries."""
    cdef Framing* framing = &dialog.framing[direction]
    if dialog.client >= 0 and dialog.client != direction:
        start_answers(context, dialog, data)
        feed(context, dialog, direction, arrival, offset, data)
        return
    if framing.kept.len == 0:
        data = drop_proxy_header(context, dialog, arrival, &offset, data)
        if data.num == 0:
            return
        framing.first = arrival[0]
        framing.offset = offset
        # The usual case: the whole first request is here, nothing needs to be copied.
        if judge_start(context, dialog, direction, data, False) != LOOK_MORE:
            feed(context, dialog, direction, arrival, offset, data)
            return
    context.kept_total -= <int64_t>framing.kept.cap
    if append(&framing.kept, data):
        framing.captured += <int64_t>data.num
        framing.capture = arrival.capture
    else:
        count_bytes(context, arrival.capture, BIN_MEMORY_REFUSED, <int64_t>data.num)
    context.kept_total += <int64_t>framing.kept.cap
    if judge_start(context, dialog, direction, contents(&framing.kept),
                   framing.kept.len >= START_BYTES) != LOOK_MORE:
        feed_early(context, dialog, direction)


cdef Octets drop_proxy_header(Context* context, Dialog* dialog, Arrival* arrival, int64_t* offset,
                              Octets data) noexcept nogil:
    """What follows a PROXY protocol header is what the client sent. A header in pieces is not looked for: proxies send
    it in one, before anything else."""
    cdef int64_t num = 0
    if not dialog.proxied and dialog.connection.opener >= 0 and offset[0] == 0:
        num = measure_proxy_header(data)
    if num <= 0:
        return data
    dialog.proxied = True
    count_bytes(context, arrival.capture, BIN_NOT_KAFKA, num)
    offset[0] += num
    return drop(data, <size_t>num)


cdef void feed_early(Context* context, Dialog* dialog, int direction) noexcept nogil:
    """Feeds what was collected of a direction before it was known how to read it."""
    cdef Framing* framing = &dialog.framing[direction]
    cdef Buffer early = framing.kept
    cdef Arrival first = framing.first
    if early.len == 0 or framing.state == FRAMING_START:
        return
    memset(&framing.kept, 0, sizeof(Buffer))
    context.kept_total -= <int64_t>early.cap
    framing.have = 0
    framing.need = 0
    framing.captured = 0
    feed(context, dialog, direction, &first, framing.offset, contents(&early))
    release(&early)


cdef int judge_start(Context* context, Dialog* dialog, int direction, Octets data, bint enough) noexcept nogil:
    """Decides by the first bytes of the side that asks (or of either side, while nobody knows which one it is)."""
    cdef int look = look_at_request(&context.apis, data, context.limits.frame_bytes)
    cdef int protocol
    if look == LOOK_MORE and not enough:
        return LOOK_MORE
    if look == LOOK_YES and dialog.client < 0:
        look = look_twice(context, data)
        if look == LOOK_MORE and not enough:
            return LOOK_MORE
    if look == LOOK_YES:
        if dialog.client < 0:
            set_client(dialog, direction, ROLE_CONTENT)
        dialog.framing[direction].state = FRAMING_IN_STEP
        return LOOK_YES
    protocol = name_protocol(data)
    if dialog.connection.opener >= 0 and is_gssapi_token(data):
        # Old brokers take GSS-API tokens without a handshake; the first request after them tells what this is.
        if dialog.client < 0:
            set_client(dialog, direction, ROLE_HANDSHAKE)
        dialog.tokens = True
        dialog.framing[direction].state = FRAMING_IN_STEP
        return LOOK_YES
    if look == LOOK_NO and protocol == PROTOCOL_OTHER and dialog.connection.opener == direction \
            and data.num >= 14 and be32(data, 0) <= context.limits.frame_kept_bytes and may_be_foreign(data):
        # An API that Kafka does not have, before anything else: what follows will tell.
        if dialog.client < 0:               # the SYN was recorded late: the dialog began without an opener
            set_client(dialog, direction, ROLE_HANDSHAKE)
        dialog.framing[direction].state = FRAMING_IN_STEP
        return LOOK_YES
    if dialog.forced or (dialog.connection.opener < 0 and protocol == PROTOCOL_OTHER):
        dialog.framing[direction].state = FRAMING_LOST      # in the middle of something: look on
    else:
        turn_away(context, dialog, protocol)
    return LOOK_NO


cdef int look_twice(Context* context, Octets data) noexcept nogil:
    """While nobody knows which side asks, a header is not enough: a response with correlation id 11 reads as the
    header of a Produce v11. The body must be one too, and a request whose end is not here must name its client."""
    cdef uint32_t size = be32(data, 0)
    cdef Program* program = find_program(context, <int16_t>be16(data, 4), <int16_t>be16(data, 6), REQUEST)
    cdef EngineStop stop
    cdef Octets message = drop(keep(data, 4 + <size_t>size), 4)
    cdef int status
    if program == NULL:
        return LOOK_NO
    status = run_program(program.ops, program.num_ops, message.at, message.num, &context.tape,
                         <size_t>context.limits.cells, &stop)
    if message.num == size:
        return LOOK_YES if status == ENGINE_OK else LOOK_NO
    if status != ENGINE_UNEXPECTED_END and status != ENGINE_ARRAY_LONGER_THAN_FRAME:
        return LOOK_NO
    return LOOK_YES if 0 < <int16_t>be16(data, 12) and message.num >= MIN_TRIAL else LOOK_MORE


cdef void start_answers(Context* context, Dialog* dialog, Octets data) noexcept nogil:
    """The broker's direction begins in step where its beginning was captured; elsewhere a frame is looked for."""
    cdef int protocol
    if not dialog.connection.direction[1 - dialog.client].syn:
        dialog.framing[1 - dialog.client].state = FRAMING_LOST
        return
    dialog.framing[1 - dialog.client].state = FRAMING_IN_STEP
    if not dialog.confirmed and not dialog.forced:
        protocol = name_protocol(data)
        if protocol != PROTOCOL_OTHER:
            turn_away(context, dialog, protocol)


cdef void settle_start(Context* context, Dialog* dialog, int direction) noexcept nogil:
    """The first bytes end in a gap: what is there must do."""
    cdef Framing* framing = &dialog.framing[direction]
    if framing.kept.len and (dialog.client < 0 or dialog.client == direction):
        judge_start(context, dialog, direction, contents(&framing.kept), True)
        feed_early(context, dialog, direction)


cdef void turn_away(Context* context, Dialog* dialog, int protocol) noexcept nogil:
    """Nothing of this connection is followed any more; what it had kept is not Kafka's."""
    cdef int i
    cdef Framing* framing
    dialog.protocol = protocol
    for i in range(2):
        framing = &dialog.framing[i]
        if framing.kept.len == 0 or framing.state != FRAMING_START:
            # Collected first bytes are fed on, and counted then.
            if framing.captured:
                count_bytes(context, framing.capture, lost_bin(dialog), framing.captured)
                framing.captured = 0
            free_framing(framing, &context.kept_total)
        framing.state = FRAMING_IGNORED


cdef void look_midway(Context* context, Dialog* dialog, int direction, Arrival* arrival, int64_t offset,
                      Octets data) noexcept nogil:
    """A connection without a handshake whose first bytes said nothing: a request may begin with a later segment."""
    cdef Framing* framing = &dialog.framing[direction]
    cdef bint alone = dialog.connection.direction[1 - direction].packets == 0
    if (look_at_request(&context.apis, data, context.limits.frame_bytes) == LOOK_YES
            and look_twice(context, data) == LOOK_YES):
        set_client(dialog, direction, ROLE_CONTENT)
        framing.state = FRAMING_IN_STEP
        framing.found = FOUND_AT_SEGMENT
        feed(context, dialog, direction, arrival, offset, data)
        return
    if alone:
        follow_chain(framing, &context.limits, arrival, offset, data)
    if alone and framing.chain_num == CHAIN_LENGTH:
        # Nothing but answers was captured: the other side is the client.
        set_client(dialog, 1 - direction, ROLE_CONTENT)
        feed(context, dialog, direction, arrival, offset, data)
        return
    count_bytes(context, arrival.capture, BIN_UNDECIDED, <int64_t>data.num)
    framing.searched += <int64_t>data.num
    if framing.searched > context.limits.search_bytes:
        turn_away(context, dialog, PROTOCOL_UNDECIDED)


cdef int look_for_frame(void* opaque, void* opaque_dialog, int side, Octets data, bint first) noexcept nogil:
    """Whether a frame begins here, in a direction that is out of step."""
    cdef Context* context = <Context*>opaque
    cdef Dialog* dialog = <Dialog*>opaque_dialog
    cdef uint32_t size
    cdef Call* call
    cdef int64_t i
    if side == REQUEST:
        return look_for_request(context, dialog, data, first)
    if first:
        dialog.trials = 0
    size = be32(data, 0)
    if data.num < 8 or size < 4 or size > context.limits.frame_bytes or dialog.trials >= MAX_TRIALS:
        return LOOK_NO
    # The answer that comes next is one of the first: only lost ones lie before it.
    for i in range(dialog.num if dialog.num < AWAITED else AWAITED):
        call = &dialog.calls[(dialog.head + i) & (dialog.num_slots - 1)]
        if call.correlation_id == <int32_t>be32(data, 4):
            dialog.trials += 1
            if <int64_t>data.num >= 4 + <int64_t>size:
                return LOOK_YES if decodes(context, call, keep(data, 4 + <size_t>size), False) else LOOK_NO
            return LOOK_YES if first or decodes(context, call, data, True) else LOOK_NO
    return LOOK_NO


cdef bint may_chain(void* opaque, void* opaque_dialog) noexcept nogil:
    """Responses are believed in by their headers alone only beside requests that are Kafka's, or where no request
    was captured at all."""
    cdef Dialog* dialog = <Dialog*>opaque_dialog
    return (dialog.confirmed or dialog.forced or dialog.connection.direction[dialog.client].packets == 0)


cdef void take_chain(void* opaque, void* opaque_dialog, Link* chain, int num) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef Dialog* dialog = <Dialog*>opaque_dialog
    cdef Frame frame
    cdef uint8_t head[8]
    cdef int i
    confirm(dialog)
    for i in range(num):
        memset(&frame, 0, sizeof(Frame))
        frame.length = chain[i].length
        frame.offset = chain[i].offset
        frame.first = chain[i].first
        frame.last = chain[i].last
        frame.ended = chain[i].ended
        frame.capture = chain[i].first.capture
        write_response_only(context, dialog, &frame, chain[i].correlation_id, why_unexpected(dialog))


cdef inline void confirm(Dialog* dialog) noexcept nogil:
    dialog.confirmed = True
    dialog.protocol = PROTOCOL_KAFKA


cdef int look_for_request(Context* context, Dialog* dialog, Octets data, bint first) noexcept nogil:
    """Zeroes and small numbers make many a short request: the client must be the one known, or a segment begin here,
    and what is there of the body must be one."""
    cdef int look = look_at_request(&context.apis, data, context.limits.frame_bytes)
    cdef uint32_t size = be32(data, 0)
    cdef Program* program
    cdef EngineStop stop
    if look == LOOK_NO or data.num < 14:
        return LOOK_NO
    if dialog.client_id.len:
        if not matches_client_id(dialog, data):
            return LOOK_NO
    elif not first:
        return LOOK_NO
    program = find_program(context, <int16_t>be16(data, 4), <int16_t>be16(data, 6), REQUEST)
    if program == NULL:
        return LOOK_YES
    data = drop(keep(data, 4 + <size_t>size), 4)
    look = run_program(program.ops, program.num_ops, data.at, data.num, &context.tape,
                       <size_t>context.limits.cells, &stop)
    if data.num == size:
        return LOOK_YES if look == ENGINE_OK else LOOK_NO
    return LOOK_YES if look == ENGINE_UNEXPECTED_END or look == ENGINE_ARRAY_LONGER_THAN_FRAME else LOOK_NO


cdef bint matches_client_id(Dialog* dialog, Octets data) noexcept nogil:
    """Whether the header names the client that is known, as far as the capture kept its name."""
    cdef Octets known = contents(&dialog.client_id)
    cdef size_t i
    if be16(data, 12) != known.num:
        return False
    for i in range(known.num):
        if has(data, 14 + i, 1) and known.at[i] != data.at[14 + i]:
            return False
    return True


cdef inline int answered_version(Call* call, Octets message) noexcept nogil:
    """The version that a response is written in: the one that was asked for, but for refused ApiVersions (KIP-511)."""
    if call.key == API_VERSIONS and call.version > 0 and be16(message, 4) == UNSUPPORTED_VERSION:
        return 0
    return call.version


cdef bint decodes(Context* context, Call* call, Octets frame, bint partly) noexcept nogil:
    """Whether these bytes are, to the last one, a response to `call`, or could be the beginning of one."""
    cdef int status
    cdef EngineStop stop
    cdef Octets message = drop(frame, 4)
    cdef Program* program = find_program(context, call.key, answered_version(call, message), RESPONSE)
    if program == NULL:
        return False
    status = run_program(program.ops, program.num_ops, message.at, message.num, &context.tape,
                         <size_t>context.limits.cells, &stop)
    if partly:
        # A few bytes break off in anything: half of what is there must have made sense.
        return status == ENGINE_UNEXPECTED_END and stop.offset >= MIN_TRIAL
    return status == ENGINE_OK


cdef void note_step(void* opaque, void* opaque_dialog, int side, Arrival* arrival, int64_t offset, bint lost,
                    int64_t value) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef Dialog* dialog = <Dialog*>opaque_dialog
    cdef int direction = dialog.client if side == REQUEST else 1 - dialog.client
    if lost and not dialog.confirmed and not dialog.forced:
        if dialog.connection.opener >= 0 and (side == REQUEST or not dialog.connection.direction[dialog.client].bytes):
            turn_away(context, dialog, PROTOCOL_OTHER)
        return
    if not lost and value == 0 and dialog.framing[direction].gaps == 0:
        return                  # the first frame of a direction whose beginning was not captured
    write_anomaly(context, dialog.connection, -1, arrival, side, offset,
                  ANOMALY_FRAMING_LOST if lost else ANOMALY_FRAMING_RESUMED, value)
    if lost:
        dialog.framing[direction].gaps += 1
        dialog.framing[direction].gap_cause = GAP_LOST


# -- messages for readers ---------------------------------------------------------------------------------------

cdef void keep_message(Context* context, Dialog* dialog, Frame* frame, int kind, int side, Call* call, int version,
                       int32_t correlation_id) noexcept nogil:
    """`call`: the call it belongs to, or NULL. What memory does not hold is left out whole."""
    cdef Message message
    cdef Octets data = drop(frame.bytes, 4)
    cdef size_t before = context.messages.len
    if not dialog.confirmed:
        return
    memset(&message, 0, sizeof(Message))
    message.num_bytes = <int64_t>data.num
    message.call_id = call.id if call != NULL else -1
    message.connection_id = dialog.connection.id
    message.capture = frame.first.capture
    message.first_time = frame.first.time
    message.last_time = frame.last.time if frame.ended else NO_TIME
    message.first_frame = frame.first.frame
    message.last_frame = frame.last.frame if frame.ended else -1
    message.offset = frame.offset
    message.length = frame.length
    message.latency = -1
    if kind == MESSAGE_RESPONSE and frame.ended and frame.last.time != NO_TIME and call.first.time != NO_TIME:
        message.latency = frame.last.time - call.first.time
    message.correlation_id = correlation_id
    message.key = call.key if call != NULL else -1
    message.version = version
    message.kind = kind
    message.side = side
    message.torn = frame.torn
    message.client_port = dialog.connection.port[dialog.client]
    message.broker_port = dialog.connection.port[1 - dialog.client]
    memcpy(message.client_address, dialog.address[dialog.client], sizeof(message.client_address))
    memcpy(message.broker_address, dialog.address[1 - dialog.client], sizeof(message.broker_address))
    if not (append_raw(&context.messages, &message, sizeof(Message)) and append(&context.messages, data)):
        context.messages.len = before


# -- frames -----------------------------------------------------------------------------------------------------

cdef bint take_frame(void* opaque, void* opaque_dialog, int side, Frame* frame) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef Dialog* dialog = <Dialog*>opaque_dialog
    if frame.torn and dialog.confirmed:
        note_torn(context, dialog, side, frame)
    if side == REQUEST:
        return take_request(context, dialog, frame)
    return take_response(context, dialog, frame)


cdef void note_torn(Context* context, Dialog* dialog, int side, Frame* frame) noexcept nogil:
    if frame.cause == GAP_CUT:
        return
    write_anomaly(context, dialog.connection, -1, &frame.last, side, frame.offset,
                  ANOMALY_FRAME_KEPT_LIMIT if frame.cause < 0 else ANOMALY_FRAME_TORN,
                  frame.length - <int64_t>frame.bytes.num)


cdef Program* find_program(Context* context, int key, int version, int direction) noexcept nogil:
    """The program of a message, compiled when first met; NULL when no layout has it."""
    cdef Program* programs
    if key < 0 or key >= NUM_API_KEYS or version < 0 or version >= NUM_VERSIONS:
        return NULL
    programs = context.programs[direction][key]
    if programs == NULL:
        programs = <Program*>calloc(NUM_VERSIONS, sizeof(Program))
        if programs == NULL:
            return NULL
        context.programs[direction][key] = programs
    if programs[version].state == PROGRAM_UNTRIED:
        context.compile(context.owner, key, version, direction, &programs[version])
    return &programs[version] if programs[version].state == PROGRAM_READY else NULL


cdef inline int why_torn(Frame* frame) noexcept nogil:
    if frame.cause == GAP_CUT:
        return REASON_CUT_BY_SNAPLEN
    return REASON_LIMIT_REACHED if frame.cause < 0 else why_missing(frame.cause)


cdef inline int why_missing(int cause) noexcept nogil:
    if cause == GAP_CUT:
        return REASON_CUT_BY_SNAPLEN
    return REASON_SEGMENT_NOT_CAPTURED if cause == GAP_NOT_CAPTURED else REASON_SEGMENT_LOST


cdef Call* add_call(Context* context, Dialog* dialog, Frame* frame) noexcept nogil:
    """A new call at the ring's end. Beyond `outstanding_calls` the oldest one makes room."""
    cdef int64_t num_slots, i
    cdef Call* calls
    cdef Call* call
    cdef Buffer text, parts
    if dialog.num >= context.limits.outstanding_calls or (
            dialog.num and context.waiting_total > context.limits.waiting_bytes_total):
        call = &dialog.calls[dialog.head & (dialog.num_slots - 1)]
        write_anomaly(context, dialog.connection, call.id, &frame.first, 0, frame.offset, ANOMALY_OUTSTANDING_LIMIT,
                      dialog.num)
        finish_oldest(context, dialog, STATUS_UNANSWERED, REASON_LIMIT_REACHED)
    if dialog.num == dialog.num_slots:
        num_slots = 2 * dialog.num_slots if dialog.num_slots else 1
        calls = <Call*>calloc(<size_t>num_slots, sizeof(Call))
        if calls == NULL:
            write_anomaly(context, dialog.connection, -1, &frame.first, 0, frame.offset, ANOMALY_MEMORY_REFUSED, 0)
            return NULL
        for i in range(dialog.num):
            calls[i] = dialog.calls[(dialog.head + i) & (dialog.num_slots - 1)]
        free(dialog.calls)
        context.waiting_total += (num_slots - dialog.num_slots) * <int64_t>sizeof(Call)
        dialog.calls = calls
        dialog.num_slots = num_slots
        dialog.head = 0
    call = &dialog.calls[(dialog.head + dialog.num) & (dialog.num_slots - 1)]
    dialog.num += 1
    context.waiting_total -= <int64_t>(call.text.cap + call.parts.cap)
    shrink(&call.text, SPARE_TEXT)
    shrink(&call.parts, SPARE_TEXT)
    context.waiting_total += <int64_t>(call.text.cap + call.parts.cap)
    text = call.text
    parts = call.parts
    memset(call, 0, sizeof(Call))
    call.text = text
    call.parts = parts
    call.caller = CALLER_UNKNOWN
    call.member_len = -1
    call.group_instance_len = -1
    call.protocol_type_len = -1
    call.id = context.next_call_id
    context.next_call_id += 1
    call.capture = <int64_t>(context.capture_name_ends.len // sizeof(int64_t)) - 1
    call.first = frame.first
    call.last = frame.last
    call.length = frame.length
    call.ended = frame.ended
    call.captured = frame.captured
    call.bytes_capture = frame.capture
    call.end_offset = frame.offset + frame.length
    call.broker_gaps = dialog.framing[1 - dialog.client].gaps
    call.reason = REASON_NONE
    call.client_id_len = -1
    call.group_len = -1
    call.transactional_id_len = -1
    return call


cdef bint take_request(Context* context, Dialog* dialog, Frame* frame) noexcept nogil:
    cdef Octets data = frame.bytes
    cdef Octets message = drop(data, 4)
    cdef EngineStop stop
    cdef Program* program
    cdef int look, key, version, status = ENGINE_OK
    cdef bint whole = False
    if data.num < 12:
        # Too little to say what it was; if nothing is missing, it was no request.
        if frame.torn or dialog.tokens:
            count_bytes(context, frame.capture, BIN_SASL_TOKENS if dialog.tokens else BIN_TORN_FRAMES, frame.captured)
            return True
        return False
    if frame.torn and frame.found and frame.cause != GAP_CUT:
        return False            # found by searching, and now it cannot prove itself
    look = look_at_request(&context.apis, data, context.limits.frame_bytes)
    key = <int16_t>be16(data, 4)
    version = <int16_t>be16(data, 6)
    if look == LOOK_NO and (dialog.tokens or frame.found or not may_be_foreign(data) or not dialog.confirmed
                            and dialog.connection.opener < 0):
        return take_token(context, dialog, frame)
    program = find_program(context, key, version, REQUEST)
    if program != NULL:
        status = run_program(program.ops, program.num_ops, message.at, message.num, &context.tape,
                             <size_t>context.limits.cells, &stop)
        whole = status == ENGINE_OK and not frame.torn
        if not whole and not frame.torn and (dialog.tokens or frame.found or not dialog.confirmed
                                             and dialog.connection.opener < 0):
            return take_token(context, dialog, frame)
        gather_facts(&context.facts, program.ops, &context.tape, message, &context.topic_ids)
    elif dialog.tokens:
        return take_token(context, dialog, frame)
    else:
        read_foreign_header(context, data)
    dialog.tokens = False
    dialog.plausible_requests += look == LOOK_YES
    if whole or dialog.plausible_requests >= 2:
        confirm(dialog)
    return keep_request(context, dialog, frame, key, version, program, status)


cdef bint take_token(Context* context, Dialog* dialog, Frame* frame) noexcept nogil:
    """After SaslHandshake v0 what is no request is a token; at any other time it is no frame."""
    if not dialog.tokens:
        return False
    if context.keeps_messages:
        keep_message(context, dialog, frame, MESSAGE_TOKEN, REQUEST, NULL, -1, -1)
    if not frame.torn:
        learn_principal(dialog, drop(frame.bytes, 4))
    count_bytes(context, frame.capture, BIN_SASL_TOKENS, frame.captured)
    return True


cdef bint keep_request(Context* context, Dialog* dialog, Frame* frame, int key, int version, Program* program,
                       int status) noexcept nogil:
    cdef Call* call = add_call(context, dialog, frame)
    if call == NULL:
        count_bytes(context, frame.capture, BIN_MEMORY_REFUSED, frame.captured)
        return True
    call.known = True
    call.key = <int16_t>key
    call.version = <int16_t>version
    call.correlation_id = <int32_t>be32(frame.bytes, 8)
    if frame.torn:
        call.reason = why_torn(frame)
    elif program == NULL:
        call.reason = REASON_UNKNOWN_VERSION
        if key < 0 or key >= NUM_API_KEYS or not context.apis.ranges[key].known:
            call.reason = REASON_UNKNOWN_API
        write_anomaly(context, dialog.connection, call.id, &frame.first, 0, frame.offset,
                      ANOMALY_UNKNOWN_API if call.reason == REASON_UNKNOWN_API else ANOMALY_UNKNOWN_VERSION, version)
    elif status != ENGINE_OK:
        call.reason = REASON_UNDECODABLE
        write_anomaly(context, dialog.connection, call.id, &frame.first, 0, frame.offset,
                      ANOMALY_UNDECODABLE_REQUEST, status)
    keep_facts(context, dialog, call)
    if context.facts.batch_hits.len and dialog.confirmed:
        write_batches(context, dialog, call, &context.facts, call.first.time)
    if context.keeps_messages:
        keep_message(context, dialog, frame, MESSAGE_REQUEST, REQUEST, call, version, call.correlation_id)
    if call.has_acks and call.acks == 0:
        dialog.num -= 1         # it stands at the ring's end and waits for nothing
        finish_call(context, dialog, call, STATUS_NO_RESPONSE_EXPECTED, call.reason, NULL, NULL)
        return True
    answer_from_parked(context, dialog, call)
    return True


cdef bint may_be_foreign(Octets data) noexcept nogil:
    """A request of an API that Kafka does not have: vendors use keys from 500 on, with Kafka's own header."""
    cdef uint32_t i, num
    cdef int client_len = <int16_t>be16(data, 12)
    cdef uint32_t size = be32(data, 0)
    if data.num < 14 or <int16_t>be16(data, 4) < 0 or be16(data, 6) >= NUM_VERSIONS or size < 10:
        return False
    if client_len < -1 or client_len > <int64_t>size - 10:
        return False
    num = client_len if client_len > 0 else 0
    for i in range(num):
        if not has(data, 14 + i, 1):
            return True
        if data.at[14 + i] < 0x20:
            return False
    return True


cdef void read_foreign_header(Context* context, Octets data) noexcept nogil:
    """Of a message without a layout, the header says who sent it; what follows stays closed."""
    cdef int client_len = <int16_t>be16(data, 12)
    context.tape.num = 0
    gather_facts(&context.facts, NULL, &context.tape, make_octets(NULL, 0), &context.topic_ids)
    if client_len >= 0 and has(data, 14, <size_t>client_len):
        context.facts.client_id = keep(drop(data, 14), <size_t>client_len)


cdef int32_t keep_text(Context* context, Call* call, Octets text) noexcept nogil:
    if text.at == NULL:
        return -1
    if <int64_t>(call.text.len + text.num) > call.most_facts or not append(&call.text, text):
        return -1
    return <int32_t>text.num


cdef inline void learn_text(Dialog* dialog, Buffer* known, Octets text) noexcept nogil:
    if text.at != NULL and text.num:
        known.len = 0
        append(known, text)
        memset(dialog.texts, 0, sizeof(dialog.texts))       # rows from here on say something else


cdef void keep_facts(Context* context, Dialog* dialog, Call* call) noexcept nogil:
    """Copies what the request says out of its bytes, which go."""
    cdef Facts* facts = &context.facts
    cdef Octets* topics = <Octets*>facts.topics.data
    cdef size_t i, num = facts.topics.len // sizeof(Octets)
    cdef uint32_t length
    context.waiting_total -= <int64_t>(call.text.cap + call.parts.cap)
    # Without room only the names of those who talk are kept.
    call.most_facts = context.limits.call_facts_bytes
    if context.waiting_total > context.limits.waiting_bytes_total and call.most_facts > SPARE_TEXT:
        call.most_facts = SPARE_TEXT
    call.client_id_len = keep_text(context, call, facts.client_id)
    call.group_len = keep_text(context, call, facts.group)
    call.transactional_id_len = keep_text(context, call, facts.transactional_id)
    for i in range(num):
        length = <uint32_t>topics[i].num
        if <int64_t>(call.text.len + (length & ~TOPIC_BY_ID) + 4) > call.most_facts:
            write_anomaly(context, dialog.connection, call.id, &call.first, 0, -1, ANOMALY_CALL_FACTS_LIMIT,
                          <int64_t>num)
            break
        if not append_raw(&call.text, &length, 4):
            break
        if not append_raw(&call.text, topics[i].at, length & ~TOPIC_BY_ID):
            call.text.len -= 4
            break
        call.num_topics += 1
    keep_party(context, dialog, call, facts)
    keep_parts(context, call, facts)
    context.waiting_total += <int64_t>(call.text.cap + call.parts.cap)
    call.has_acks = facts.has_acks
    call.acks = facts.acks
    call.has_partitions = facts.has_partitions
    call.partitions = facts.partitions
    call.has_records = facts.has_records
    call.records_uncounted = facts.records_uncounted
    call.records = facts.records
    call.record_bytes = facts.record_bytes
    if dialog.client_id.len == 0:
        learn_text(dialog, &dialog.client_id, facts.client_id)
    learn_text(dialog, &dialog.software_name, facts.software_name)
    learn_text(dialog, &dialog.software_version, facts.software_version)
    learn_text(dialog, &dialog.sasl_mechanism, facts.sasl_mechanism)


cdef void keep_party(Context* context, Dialog* dialog, Call* call, Facts* facts) noexcept nogil:
    """Who asks, in which role, as whom."""
    cdef bint known = 0 <= call.key < NUM_API_KEYS and context.apis.ranges[call.key].known
    call.member_at = <uint32_t>call.text.len
    call.member_len = keep_text(context, call, facts.member)
    call.group_instance_len = keep_text(context, call, facts.group_instance)
    call.protocol_type_at = <uint32_t>call.text.len
    call.protocol_type_len = keep_text(context, call, facts.protocol_type)
    call.generation = facts.generation
    call.producer_id = facts.producer_id
    call.producer_epoch = facts.producer_epoch
    call.isolation = facts.isolation
    call.committed = facts.committed
    call.session_id = facts.session_id
    call.max_wait = facts.max_wait
    call.min_bytes = facts.min_bytes
    if facts.replica_id.is_known and facts.replica_id.value >= 0:
        call.caller = CALLER_REPLICA
    elif known:
        call.caller = CALLER_BROKER if context.apis.ranges[call.key].internal else dialog.caller
        if call.caller == CALLER_UNKNOWN:
            call.caller = CALLER_CLIENT
    if call.caller > dialog.caller or dialog.caller == CALLER_CLIENT:
        dialog.caller = call.caller
    if facts.secret.at != NULL:
        learn_principal(dialog, facts.secret)


cdef void learn_principal(Dialog* dialog, Octets token) noexcept nogil:
    """The user name that a client's first token shows: PLAIN has it between two NULs (RFC 4616), SCRAM behind n= of
    its second comma-separated part or later (RFC 5802). The password is never looked at."""
    cdef Octets mechanism = contents(&dialog.sasl_mechanism)
    cdef size_t start = 0, end
    if mechanism.num == 5 and memcmp(mechanism.at, b"PLAIN", 5) == 0:
        while start < token.num and token.at[start]:
            start += 1
        end = start + 1
        while end < token.num and token.at[end]:
            end += 1
        if start < token.num and end < token.num:
            learn_text(dialog, &dialog.principal, keep(drop(token, start + 1), end - start - 1))
    elif mechanism.num > 6 and memcmp(mechanism.at, b"SCRAM-", 6) == 0 and be16(token, 0) >> 8 in (0x6E, 0x79, 0x70):
        while start + 3 < token.num and not (token.at[start] == 0x2C and be16(token, start + 1) == 0x6E3D):
            start += 1
        end = start + 3
        while end < token.num and token.at[end] != 0x2C:
            end += 1
        if start + 3 < token.num:
            learn_text(dialog, &dialog.principal, keep(drop(token, start + 3), end - start - 3))


# -- responses --------------------------------------------------------------------------------------------------

cdef bint take_response(Context* context, Dialog* dialog, Frame* frame) noexcept nogil:
    cdef int32_t correlation_id
    cdef int64_t i
    cdef int status, reason
    if frame.bytes.num < 8:
        if frame.torn or dialog.tokens:
            count_bytes(context, frame.capture, BIN_SASL_TOKENS if dialog.tokens else BIN_TORN_FRAMES, frame.captured)
            return True
        return False
    if frame.torn and frame.found and frame.cause != GAP_CUT:
        return False            # found by searching, and now it cannot prove itself
    correlation_id = <int32_t>be32(frame.bytes, 4)
    for i in range(dialog.num):
        if dialog.calls[(dialog.head + i) & (dialog.num_slots - 1)].correlation_id == correlation_id:
            break
    else:
        if frame.found:
            return False
        if dialog.tokens:
            if context.keeps_messages:
                keep_message(context, dialog, frame, MESSAGE_TOKEN, RESPONSE, NULL, -1, -1)
            count_bytes(context, frame.capture, BIN_SASL_TOKENS, frame.captured)
            return True
        return park(context, dialog, frame, correlation_id)
    if frame.found and not frame.torn and not decodes(
            context, &dialog.calls[(dialog.head + i) & (dialog.num_slots - 1)], frame.bytes, False):
        return False
    while i:
        pass_over(context, dialog, frame)
        i -= 1
    answer(context, dialog, frame)
    return True


cdef void pass_over(Context* context, Dialog* dialog, Frame* frame) noexcept nogil:
    cdef Call* call = &dialog.calls[dialog.head & (dialog.num_slots - 1)]
    cdef Framing* answers = &dialog.framing[1 - dialog.client]
    if answers.gaps != call.broker_gaps:
        finish_oldest(context, dialog, STATUS_RESPONSE_NOT_CAPTURED, why_missing(answers.gap_cause))
        return
    if call.reason != REASON_NONE:
        # It may have been one that needs no answer: its own bytes do not say.
        finish_oldest(context, dialog, STATUS_UNANSWERED, call.reason)
        return
    write_anomaly(context, dialog.connection, call.id, &frame.first, 1, frame.offset, ANOMALY_PASSED_OVER,
                  call.correlation_id)
    finish_oldest(context, dialog, STATUS_UNANSWERED, REASON_PASSED_OVER)


cdef void finish_oldest(Context* context, Dialog* dialog, int status, int reason) noexcept nogil:
    cdef Call* call = &dialog.calls[dialog.head & (dialog.num_slots - 1)]
    dialog.head += 1
    dialog.num -= 1
    finish_call(context, dialog, call, status, reason, NULL, NULL)


cdef void finish_call(Context* context, Dialog* dialog, Call* call, int status, int reason, Frame* response,
                      Facts* facts) noexcept nogil:
    cdef int[4] bins = [BIN_ANSWERED, BIN_NO_RESPONSE_EXPECTED, BIN_UNANSWERED, BIN_RESPONSE_NOT_CAPTURED]
    cdef int bin = bins[status] if dialog.confirmed else lost_bin(dialog)
    count_bytes(context, call.bytes_capture, bin, call.captured)
    if response != NULL:
        count_bytes(context, response.capture, bin, response.captured)
    if dialog.confirmed:
        write_call(context, dialog, call, status, reason, response, facts)
        write_partitions(context, dialog, call, facts)
        if response != NULL:
            write_latency(context, dialog, call, response, facts)


cdef void answer(Context* context, Dialog* dialog, Frame* frame) noexcept nogil:
    """The oldest waiting call is answered by `frame`."""
    cdef Call* call = &dialog.calls[dialog.head & (dialog.num_slots - 1)]
    cdef Program* program
    cdef Octets message = drop(frame.bytes, 4)
    cdef EngineStop stop
    cdef int status = ENGINE_OK, version = answered_version(call, message), reason = call.reason
    dialog.head += 1
    dialog.num -= 1
    confirm(dialog)
    if version != call.version:
        write_anomaly(context, dialog.connection, call.id, &frame.first, 1, frame.offset,
                      ANOMALY_API_VERSIONS_FALLBACK, call.version)
    program = find_program(context, call.key, version, RESPONSE)
    if context.keeps_messages:
        keep_message(context, dialog, frame, MESSAGE_RESPONSE, RESPONSE, call, version, call.correlation_id)
    if program == NULL:
        finish_call(context, dialog, call, STATUS_ANSWERED, reason, frame, NULL)
        note_answer(dialog, frame, NULL)
        return
    status = run_program(program.ops, program.num_ops, message.at, message.num, &context.tape,
                         <size_t>context.limits.cells, &stop)
    gather_facts(&context.facts, program.ops, &context.tape, message, &context.topic_ids)
    context.facts.broken = status != ENGINE_OK and status != ENGINE_BYTES_LEFT_OVER
    if frame.torn:
        if reason == REASON_NONE:
            reason = why_torn(frame)
    elif status != ENGINE_OK:
        reason = REASON_UNDECODABLE
        write_anomaly(context, dialog.connection, call.id, &frame.first, 1, frame.offset,
                      ANOMALY_UNDECODABLE_RESPONSE, status)
    if call.key == SASL_HANDSHAKE and call.version == 0 and context.facts.first_error == 0:
        dialog.tokens = True
    finish_call(context, dialog, call, STATUS_ANSWERED, reason, frame, &context.facts)
    note_answer(dialog, frame, &context.facts)
    if context.facts.batch_hits.len:
        write_batches(context, dialog, call, &context.facts, frame.first.time)
    if context.facts.num_errors:
        if <size_t>context.facts.num_errors > context.facts.most_hits:
            write_anomaly(context, dialog.connection, call.id, &frame.first, 1, frame.offset, ANOMALY_CALL_FACTS_LIMIT,
                          context.facts.num_errors)
        write_errors(context, dialog, call, frame, &context.facts, program)


cdef void explain_silence(Dialog* dialog, Call* call, int* status, int* reason) noexcept nogil:
    """Why a call has no response when its connection ends: not sent, or not seen."""
    cdef int broker = 1 - dialog.client
    cdef int end = dialog.connection.end
    if dialog.connection.direction[broker].packets == 0:
        status[0] = STATUS_RESPONSE_NOT_CAPTURED
        reason[0] = REASON_ONE_DIRECTION
    elif dialog.framing[broker].gaps != call.broker_gaps or dialog.framing[broker].torn:
        status[0] = STATUS_RESPONSE_NOT_CAPTURED
        reason[0] = why_missing(dialog.framing[broker].gap_cause)
    else:
        status[0] = STATUS_UNANSWERED
        reason[0] = REASON_OPEN_AT_END
        if end == END_FIN: reason[0] = REASON_CONNECTION_CLOSED
        elif end == END_RESET: reason[0] = REASON_CONNECTION_RESET
        elif end == END_REUSED: reason[0] = REASON_CONNECTION_REUSED
        elif end == END_EVICTED: reason[0] = REASON_CONNECTION_EVICTED


# -- responses before their requests ----------------------------------------------------------------------------

cdef bint park(Context* context, Dialog* dialog, Frame* frame, int32_t correlation_id) noexcept nogil:
    """Keeps a response for a request that may still come. False: it is not believed to be one."""
    cdef Parked* parked
    cdef int32_t step = <int32_t>(<uint32_t>correlation_id - <uint32_t>dialog.last_unexpected)
    dialog.num_unexpected = dialog.num_unexpected + 1 if dialog.num_unexpected and 1 <= step <= 16 else 1
    dialog.last_unexpected = correlation_id
    if dialog.num_unexpected >= MIN_UNEXPECTED and dialog.connection.direction[dialog.client].packets == 0:
        confirm(dialog)         # nothing but answers was captured, and they count up
    while dialog.num_parked and (dialog.num_parked >= context.limits.parked_responses
                                 or dialog.parked_bytes + <int64_t>frame.bytes.num > context.limits.parked_bytes
                                 or context.waiting_total + <int64_t>frame.bytes.num > context.limits.waiting_bytes_total):
        write_anomaly(context, dialog.connection, -1, &frame.first, 1, frame.offset, ANOMALY_PARKED_LIMIT,
                      dialog.num_parked)
        give_up_parked(context, dialog, 0)
    if dialog.parked == NULL:
        dialog.parked = <Parked*>calloc(<size_t>context.limits.parked_responses, sizeof(Parked))
        if dialog.parked == NULL:
            count_bytes(context, frame.capture, BIN_MEMORY_REFUSED, frame.captured)
            return True
    parked = &dialog.parked[dialog.num_parked]
    memset(parked, 0, sizeof(Parked))
    parked.frame = frame[0]
    parked.correlation_id = correlation_id
    if not append(&parked.bytes, keep(frame.bytes, <size_t>context.limits.parked_bytes)):
        release(&parked.bytes)
        count_bytes(context, frame.capture, BIN_MEMORY_REFUSED, frame.captured)
        return True
    if parked.bytes.len < frame.bytes.num:
        parked.frame.torn = True
        parked.frame.cause = -1
    dialog.parked_bytes += <int64_t>parked.bytes.len
    context.waiting_total += <int64_t>parked.bytes.cap
    dialog.num_parked += 1
    return True


cdef void unpark(Context* context, Dialog* dialog, int number, Parked* parked) noexcept nogil:
    cdef int i
    parked[0] = dialog.parked[number]
    parked.frame.bytes = make_octets(parked.bytes.data, parked.bytes.len)
    dialog.parked_bytes -= <int64_t>parked.bytes.len
    context.waiting_total -= <int64_t>parked.bytes.cap
    dialog.num_parked -= 1
    for i in range(number, dialog.num_parked):
        dialog.parked[i] = dialog.parked[i + 1]


cdef int why_unexpected(Dialog* dialog) noexcept nogil:
    """Why the request of a response was not seen."""
    cdef Framing* asks = &dialog.framing[dialog.client]
    if dialog.connection.direction[dialog.client].packets == 0:
        return REASON_ONE_DIRECTION
    if asks.gaps:
        return why_missing(asks.gap_cause)
    return REASON_CAPTURE_BEGAN_LATER if dialog.connection.opener < 0 else REASON_NONE


cdef void give_up_parked(Context* context, Dialog* dialog, int number) noexcept nogil:
    cdef Parked parked
    cdef int reason = why_unexpected(dialog)
    unpark(context, dialog, number, &parked)
    count_bytes(context, parked.frame.capture, BIN_RESPONSE_ONLY if dialog.confirmed else lost_bin(dialog),
                parked.frame.captured)
    if dialog.confirmed:
        if reason == REASON_NONE:
            write_anomaly(context, dialog.connection, -1, &parked.frame.first, 1, parked.frame.offset,
                          ANOMALY_UNEXPECTED_RESPONSE, parked.correlation_id)
        write_response_only(context, dialog, &parked.frame, parked.correlation_id, reason)
        if context.keeps_messages:
            keep_message(context, dialog, &parked.frame, MESSAGE_UNEXPECTED, RESPONSE, NULL, -1,
                         parked.correlation_id)
    release(&parked.bytes)


cdef void answer_from_parked(Context* context, Dialog* dialog, Call* call) noexcept nogil:
    """The newest call may have been answered already, by packets that the capture recorded before its own or that did
    not wait for a hole. Calls before it that still wait were passed over then."""
    cdef Parked parked
    cdef int i
    for i in range(dialog.num_parked):
        if dialog.parked[i].correlation_id == call.correlation_id and had_arrived(&dialog.parked[i].frame, call):
            unpark(context, dialog, i, &parked)
            while dialog.num > 1:
                pass_over(context, dialog, &parked.frame)
            answer(context, dialog, &parked.frame)
            release(&parked.bytes)
            return


cdef inline bint had_arrived(Frame* response, Call* call) noexcept nogil:
    """Whether the broker had acknowledged the whole request when it sent this."""
    return response.first.acked < 0 or response.first.acked >= call.end_offset
