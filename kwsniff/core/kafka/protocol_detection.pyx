# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""How a connection begins: who asks, whether it is Kafka, where its first frame is.

Rules
  1. The user's word (a port) comes before the handshake, the handshake before what the bytes look like.
  2. The first bytes of the side that asks are collected, up to START_BYTES, until they show what they are. What cannot
     be Kafka is turned away and never looked at again.
  3. Where no handshake was captured either side may ask; then a header is not enough, the body must be one too.
  4. In the middle of a connection nothing is believed before a request, or a chain of answers.
  5. The side that answers may speak another protocol: its bytes are passed over; the other side is followed if it asks.

    | preamble | size | key version correlation client_id | body |
"""

from libc.stdint cimport int16_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc
from libc.string cimport memcpy, memset

from kwsniff.core.bytes.buffer cimport Buffer, append, contents, release
from kwsniff.core.kafka.kafka_connection cimport NO_PROTOCOL, REQUEST, Context, KafkaConnection, count_bytes, is_forced, lost_bin
from kwsniff.core.kafka.frames cimport *
from kwsniff.core.bytes.span cimport Span, be16, be32, drop, keep, make_span
from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.kafka.first_responses cimport ANSWER_BYTES, join_kept, judge_answers, wait_for_greeting
from kwsniff.core.kafka.proxy_headers cimport (
    CARRIER_CONNECT, CARRIER_SOCKS5, PHASE_BROKEN, PHASE_PASSED, PHASE_START, count_early, note_early, peel,
)
from kwsniff.core.kafka.apis cimport find_slot
from kwsniff.core.kafka.programs cimport MIN_TRIAL, has_few_behind, read_message
from kwsniff.core.kafka.protocol_heuristics cimport *
from kwsniff.core.kafka.row_sink cimport write_anomaly
from kwsniff.core.tcp.parts cimport traffic_of
from kwsniff.core.tcp.addresses cimport format_address
from kwsniff.core.tcp.arrivals cimport GAP_PASSED_OVER, Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.wire.tape cimport ENGINE_ARRAY_LONGER_THAN_FRAME, ENGINE_OK, ENGINE_UNEXPECTED_END, EngineStop
from kwsniff.core.tls.hello cimport HelloSide, end_hello, hello_bytes, make_hello, take_hello
from kwsniff.core.tls.decryption cimport make_tls, take_cipher
from kwsniff.core.tls.tls_state cimport tls_bytes
from kwsniff.core.declared cimport *

cdef enum:
    START_BYTES = 256           # enough to tell what a direction carries
    HEADER_BYTES = 14           # of a request, up to the client's name
    LEAST_NAMED = 4             # bytes that show whether a TLS record begins


cdef KafkaConnection* open_kafka(Context* context, Connection* connection) noexcept nogil:
    cdef KafkaConnection* kafka = <KafkaConnection*>calloc(1, sizeof(KafkaConnection))
    cdef int i
    if kafka == NULL:
        write_anomaly(context, connection, -1, NULL, -1, -1, ANOMALY_MEMORY_REFUSED, sizeof(KafkaConnection))
        return NULL
    context.num_kafka_connections += 1
    connection.kafka = kafka
    kafka.connection = connection
    kafka.protocol = PROTOCOL_UNDECIDED
    kafka.client = -1
    kafka.alert = -1
    kafka.answered_in = NO_PROTOCOL
    kafka.role = ROLE_SOURCE_UNKNOWN
    kafka.caller = CALLER_UNKNOWN
    kafka.answered_at = NO_TIME
    kafka.muted_until = NO_TIME
    for i in range(2):
        kafka.framing[i].gap_cause = GAP_PASSED_OVER
        kafka.address_len[i] = format_address(connection.address[i], kafka.address[i])
        if is_forced(context, connection.port[i]) and not is_forced(context, connection.port[1 - i]):
            kafka.forced = True
            set_client(kafka, 1 - i, ROLE_SOURCE_PORT)
    if kafka.client < 0 and connection.opener >= 0:
        set_client(kafka, connection.opener, ROLE_SOURCE_HANDSHAKE)
        kafka.forced = is_forced(context, connection.port[1 - connection.opener])
    return kafka


cdef void set_client(KafkaConnection* kafka, int client, int role) noexcept nogil:
    kafka.client = client
    kafka.role = role
    kafka.framing[client].direction = 0
    kafka.framing[1 - client].direction = 1


cdef void take_first_bytes(Context* context, KafkaConnection* kafka, int direction, Arrival* arrival, int64_t offset,
                           Span data) noexcept nogil:
    """Collects the first bytes of a direction until they show what the connection carries."""
    cdef Framing* framing = &kafka.framing[direction]
    if kafka.phase[direction] < PHASE_PASSED and (kafka.carrier or may_ask(kafka, direction)):
        data = peel(context, kafka, direction, arrival, &offset, data)
        if kafka.phase[direction] == PHASE_BROKEN:
            leave_tunnel(context, kafka)
            feed(context, kafka, direction, arrival, offset, data)
            return
        if data.num == 0:
            return
    if not may_ask(kafka, direction):
        if not wait_for_greeting(context, framing, arrival, offset, data):
            take_early_answers(context, kafka, direction, data)
            feed(context, kafka, direction, arrival, offset, data)
        return
    if framing.kept.len == 0:
        framing.first = arrival[0]
        framing.offset = offset
        # The usual case: the whole first request is here, nothing needs to be copied.
        if judge_start(context, kafka, direction, data, False) != LOOK_MORE:
            feed(context, kafka, direction, arrival, offset, data)
            return
    context.kept_total -= <int64_t>framing.kept.cap
    if append(&framing.kept, data):
        note_early(framing, arrival.capture, <int64_t>data.num)
    else:
        count_bytes(context, arrival.capture, BIN_MEMORY_REFUSED, <int64_t>data.num)
    context.kept_total += <int64_t>framing.kept.cap
    if judge_start(context, kafka, direction, contents(&framing.kept),
                   framing.kept.len >= START_BYTES) != LOOK_MORE:
        feed_early(context, kafka, direction)


cdef void take_early_answers(Context* context, KafkaConnection* kafka, int direction, Span data) noexcept nogil:
    """They came before it was known that the other side asks, or what they are; `data` follows them."""
    cdef uint8_t[ANSWER_BYTES] room
    start_answers(context, kafka, join_kept(&kafka.framing[direction], data, room))
    feed_early(context, kafka, direction)


cdef inline bint may_ask(KafkaConnection* kafka, int direction) noexcept nogil:
    return kafka.client < 0 or kafka.client == direction


cdef void leave_tunnel(Context* context, KafkaConnection* kafka) noexcept nogil:
    """It did not come about. Where its beginning was not seen, it may have been none."""
    cdef Framing* framing
    cdef int i
    for i in range(2):
        framing = &kafka.framing[i]
        kafka.phase[i] = PHASE_PASSED
        kafka.preamble_left[i] = 0
        if framing.state == FRAMING_START:
            count_early(context, framing, BIN_NOT_KAFKA)
            framing.kept.len = 0
    if kafka.connection.opener >= 0:
        turn_away(context, kafka, carried_in(kafka))
        return
    for i in range(2):
        if kafka.framing[i].state == FRAMING_START:
            kafka.framing[i].state = FRAMING_LOST


cdef int carried_in(KafkaConnection* kafka) noexcept nogil:
    """The protocol of a connection that shows nothing but what comes before."""
    if kafka.carrier == CARRIER_CONNECT:
        return PROTOCOL_HTTP
    if kafka.carrier == CARRIER_SOCKS5:
        return PROTOCOL_SOCKS
    return PROTOCOL_PROXY if kafka.proxied else kafka.protocol


cdef void feed_early(Context* context, KafkaConnection* kafka, int direction) noexcept nogil:
    """Feeds what was collected of a direction before it was known how to read it."""
    cdef Framing* framing = &kafka.framing[direction]
    cdef Buffer early = framing.kept
    cdef Span part, rest = contents(&early)
    cdef Arrival first = framing.first
    cdef int64_t offset = framing.offset
    cdef int64_t[4] nums
    cdef int64_t[4] captures
    cdef int i, num = framing.num_early
    if early.len == 0 or framing.state == FRAMING_START:
        return
    memcpy(nums, framing.early, sizeof(nums))
    memcpy(captures, framing.early_capture, sizeof(captures))
    framing.num_early = 0
    memset(&framing.kept, 0, sizeof(Buffer))
    context.kept_total -= <int64_t>early.cap
    framing.have = 0
    framing.need = 0
    framing.captured = 0
    for i in range(num):
        part = keep(rest, <size_t>nums[i])
        first.capture = captures[i]
        feed(context, kafka, direction, &first, offset, part)
        offset += <int64_t>part.num
        rest = drop(rest, part.num)
    release(&early)


cdef inline int what_begins(KafkaConnection* kafka, Span data) noexcept nogil:
    """The protocol of first bytes of the side that asks, as far as it is known which one does."""
    return name_protocol(data, ASKS) if kafka.connection.opener >= 0 else name_midway(data)


cdef int judge_start(Context* context, KafkaConnection* kafka, int direction, Span data, bint enough) noexcept nogil:
    """Decides by the first bytes of the side that asks (or of either side, while that is unknown)."""
    cdef int look = look_at_request(&context.apis, data, context.limits.frame_bytes)
    cdef int protocol = what_begins(kafka, data)
    cdef bint unnamed = protocol == PROTOCOL_OTHER or kafka.connection.opener < 0
    if look == LOOK_MORE and not enough and unnamed:
        return LOOK_MORE
    if look == LOOK_MORE and data.num >= HEADER_BYTES and kafka.client == direction:
        look = LOOK_YES                                     # a gap inside the client's name: all before it fits
    elif look == LOOK_MORE and protocol == PROTOCOL_OTHER:
        kafka.framing[direction].state = FRAMING_LOST      # a gap before anything could tell
        return LOOK_NO
    if unnamed and (look == LOOK_ODD or look == LOOK_YES and kafka.client < 0):
        look = look_closely(context, data) if look == LOOK_ODD else look_twice(context, data)
        if look == LOOK_MORE and not enough:
            return LOOK_MORE
    if look == LOOK_YES and unnamed:
        if kafka.client < 0:
            set_client(kafka, direction, ROLE_SOURCE_CONTENT)
        kafka.framing[direction].state = FRAMING_IN_STEP
        return LOOK_YES
    if kafka.connection.opener >= 0 and is_gssapi_token(data):
        # Old brokers take GSS-API tokens without a handshake; the first request after them tells what this is.
        if kafka.client < 0:
            set_client(kafka, direction, ROLE_SOURCE_HANDSHAKE)
        kafka.tokens = True
        kafka.framing[direction].state = FRAMING_IN_STEP
        return LOOK_YES
    if protocol == PROTOCOL_OTHER and not enough and kafka.connection.opener == direction and may_become(data, ASKS):
        return LOOK_MORE
    if protocol == PROTOCOL_OTHER and kafka.answered_in != NO_PROTOCOL:
        turn_away(context, kafka, kafka.answered_in)      # the greeting showed what it is
        return LOOK_NO
    if look == LOOK_NO and protocol == PROTOCOL_OTHER and kafka.connection.opener == direction \
            and data.num >= 14 and be32(data, 0) <= context.limits.frame_kept_bytes and may_be_foreign(data):
        # An API that Kafka does not have, before anything else: what follows will tell.
        if kafka.client < 0:               # the SYN was recorded late: the connection began without an opener
            set_client(kafka, direction, ROLE_SOURCE_HANDSHAKE)
        kafka.framing[direction].state = FRAMING_IN_STEP
        return LOOK_YES
    if protocol == PROTOCOL_TLS and (context.opening.version or kafka.connection.opener >= 0):
        turn_away(context, kafka, protocol)                # on a port that is Kafka's, too: plaintext may follow
    elif kafka.connection.opener < 0 and (
            protocol == PROTOCOL_OTHER or kafka.forced and not is_surely(data, protocol)) or (
            kafka.forced and protocol == PROTOCOL_OTHER):
        kafka.framing[direction].state = FRAMING_LOST      # in the middle of something: look on
    else:
        turn_away(context, kafka, protocol)
    return LOOK_NO


cdef int look_twice(Context* context, Span data) noexcept nogil:
    """While it is unknown which side asks, a header is not enough: a response with correlation id 11 reads as the
    header of a Produce v11. The body must be one too, and a request whose end is not here must name its client."""
    cdef uint32_t size = be32(data, 0)
    cdef EngineStop stop
    cdef Span message = drop(keep(data, 4 + <size_t>size), 4)
    cdef int status
    if read_message(context, find_slot(&context.apis, <int16_t>be16(data, 4)), <int16_t>be16(data, 6), REQUEST, message, &status, &stop) == NULL:
        return LOOK_NO
    if message.num == size:
        if 0 < <int16_t>be16(data, 12) and has_few_behind(message, status, &stop):
            return LOOK_YES
        return LOOK_YES if status == ENGINE_OK else LOOK_NO
    if status != ENGINE_UNEXPECTED_END and status != ENGINE_ARRAY_LONGER_THAN_FRAME:
        return LOOK_NO
    return LOOK_YES if 0 < <int16_t>be16(data, 12) and message.num >= MIN_TRIAL else LOOK_MORE


cdef int look_closely(Context* context, Span data) noexcept nogil:
    """The name of a client with control characters could be anything: all of it must be here, and some of the body."""
    cdef int look
    if name_midway(data) != PROTOCOL_OTHER:
        return LOOK_NO
    look = look_twice(context, data)
    if data.num >= 4 + <size_t>be32(data, 0):
        return look
    return LOOK_MORE if look == LOOK_YES and data.num < 16 + be16(data, 12) else look


cdef void start_answers(Context* context, KafkaConnection* kafka, Span data) noexcept nogil:
    cdef int protocol = judge_answers(context, kafka, data)
    if protocol != NO_PROTOCOL:
        turn_away(context, kafka, protocol)


cdef void settle_start(Context* context, KafkaConnection* kafka, int direction) noexcept nogil:
    """The first bytes end in a gap: what is there must do."""
    cdef Framing* framing = &kafka.framing[direction]
    if 0 < kafka.phase[direction] < PHASE_PASSED or kafka.preamble_left[direction]:
        leave_preamble(context, kafka)
        return
    if framing.kept.len and may_ask(kafka, direction):
        judge_start(context, kafka, direction, contents(&framing.kept), True)
        feed_early(context, kafka, direction)
    elif framing.kept.len:
        take_early_answers(context, kafka, direction, make_span(NULL, 0))


cdef void settle_rest(Context* context, KafkaConnection* kafka) noexcept nogil:
    """Nothing more comes: first bytes that might have become another protocol's stay unknown."""
    cdef int asks = kafka.client
    if (asks >= 0 and kafka.connection.opener == asks and not kafka.forced and kafka.phase[asks] in (PHASE_START, PHASE_PASSED)
            and kafka.framing[asks].state == FRAMING_START and kafka.framing[asks].kept.len
            and look_at_request(&context.apis, contents(&kafka.framing[asks].kept), context.limits.frame_bytes) == LOOK_NO):
        turn_away(context, kafka, what_begins(kafka, contents(&kafka.framing[asks].kept)))


cdef void leave_preamble(Context* context, KafkaConnection* kafka) noexcept nogil:
    """Bytes of it are missing: what it carries is looked for."""
    cdef Framing* framing
    cdef int i
    for i in range(2):
        framing = &kafka.framing[i]
        if kafka.phase[i] < PHASE_PASSED and framing.state == FRAMING_START:
            count_early(context, framing, BIN_NOT_KAFKA)
            framing.kept.len = 0
            framing.state = FRAMING_LOST
        kafka.phase[i] = PHASE_PASSED
        kafka.preamble_left[i] = 0


cdef void turn_away(Context* context, KafkaConnection* kafka, int protocol) noexcept nogil:
    """Nothing of this connection is followed any more; what it had kept is not Kafka's."""
    cdef int i
    cdef Framing* framing
    kafka.protocol = protocol
    for i in range(2):
        framing = &kafka.framing[i]
        if framing.kept.len == 0 or framing.state != FRAMING_START:
            # Collected first bytes are fed on, and counted then.
            if framing.captured:
                count_bytes(context, framing.capture, lost_bin(kafka), framing.captured)
                framing.captured = 0
            count_early(context, framing, lost_bin(kafka))
            free_framing(framing, &context.kept_total)
        framing.state = FRAMING_IGNORED
    if protocol == PROTOCOL_TLS and kafka.hello == NULL:
        kafka.hello = make_hello()
        if kafka.hello != NULL:
            context.kept_total += hello_bytes(kafka.hello)
        if kafka.hello != NULL and context.opening.keyring != NULL:
            kafka.tls = make_tls(kafka.hello)
            if kafka.tls != NULL:
                context.kept_total += tls_bytes(kafka.tls)


cdef void feed_cipher(Context* context, KafkaConnection* kafka, int direction, Arrival* arrival, int64_t offset,
                      Span data) noexcept nogil:
    """The next bytes of TLS records; what is data in them comes back as plaintext (decrypted_streams.pyx)."""
    count_bytes(context, arrival.capture, BIN_NOT_KAFKA, <int64_t>data.num)
    context.kept_total -= tls_bytes(kafka.tls)
    take_cipher(&context.opening, kafka.tls, kafka.connection, direction, arrival, offset, data)
    context.kept_total += tls_bytes(kafka.tls)


cdef void follow_hello(Context* context, KafkaConnection* kafka, int direction, Span data) noexcept nogil:
    """Reads on in what a TLS connection says before it encrypts; who greets is the client."""
    context.kept_total -= hello_bytes(kafka.hello)
    if kafka.client >= 0:
        kafka.hello.client = kafka.client
    note_foreign_hello(kafka, direction, data)
    take_hello(kafka.hello, direction, data)
    if context.kept_total + hello_bytes(kafka.hello) > context.limits.frame_kept_bytes_total:
        end_hello(kafka.hello, direction)
    context.kept_total += hello_bytes(kafka.hello)
    if kafka.client < 0 and kafka.hello.client >= 0:
        set_client(kafka, kafka.hello.client, ROLE_SOURCE_CONTENT)


cdef inline void note_foreign_hello(KafkaConnection* kafka, int direction, Span data) noexcept nogil:
    """A ClientHello may be answered in another protocol."""
    cdef HelloSide* side = &kafka.hello.side[direction]
    if (kafka.hello.greeted and direction != kafka.hello.client and data.num >= LEAST_NAMED
            and not side.head_num and not side.left and not side.message.len and not is_tls(data)):
        kafka.answered_in = name_protocol(data, ANSWERS)


cdef void cut_hello(Context* context, KafkaConnection* kafka, int direction) noexcept nogil:
    """Bytes of this direction are missing: what came before them must do."""
    context.kept_total -= hello_bytes(kafka.hello)
    end_hello(kafka.hello, direction)
    context.kept_total += hello_bytes(kafka.hello)


cdef void look_midway(Context* context, KafkaConnection* kafka, int direction, Arrival* arrival, int64_t offset,
                      Span data) noexcept nogil:
    """A connection without a handshake whose first bytes said nothing: a request may begin with a later segment."""
    cdef Framing* framing = &kafka.framing[direction]
    cdef bint alone = traffic_of(kafka.connection, 1 - direction).bytes == 0
    cdef int look = look_at_request(&context.apis, data, context.limits.frame_bytes)
    if (look == LOOK_YES and look_twice(context, data) == LOOK_YES
            or look == LOOK_ODD and look_closely(context, data) == LOOK_YES):
        set_client(kafka, direction, ROLE_SOURCE_CONTENT)
        framing.state = FRAMING_IN_STEP
        framing.found = FOUND_AT_SEGMENT
        feed(context, kafka, direction, arrival, offset, data)
        return
    if alone:
        follow_chain(framing, &context.limits, arrival, offset, data)
        if framing.chain_num == CHAIN_LENGTH:  # nothing but answers was captured: the other side is the client
            set_client(kafka, 1 - direction, ROLE_SOURCE_CONTENT)
            feed(context, kafka, direction, arrival, offset, data)
            return
    count_bytes(context, arrival.capture, BIN_UNDECIDED, <int64_t>data.num)
    framing.searched += <int64_t>data.num
    if framing.searched > context.limits.resync_bytes:
        turn_away(context, kafka, PROTOCOL_UNDECIDED)
