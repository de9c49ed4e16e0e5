# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""What is known of connections and of what happened to them, written as rows.

Rules
  1. A connection that carried no payload has a row, too: what bytes would show is null.
  2. The side that asks is the client; where that is unknown, a direction is null.

    opener -- SYN --> | hello, alert, PROXY header | calls | FIN, RST
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset, strlen

from kwsniff.core.columns.columns cimport *
from kwsniff.core.declared cimport *
from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.capture.tunnels cimport write_tunnels
from kwsniff.core.kafka.kafka_connection cimport (
    HASHED_MESSAGES, NO_PROTOCOL, REQUEST, RESPONSE, Context, KafkaConnection, called_client, is_forced,
)
from kwsniff.core.kafka.proxy_headers cimport CARRIER_CONNECT
from kwsniff.core.bytes.hash cimport mix
from kwsniff.core.bytes.span cimport Span, make_span
from kwsniff.core.rows.community_id cimport COMMUNITY_ID_BYTES, write_community_id
from kwsniff.core.rows.rows cimport capture_name, known_text, put_capture, put_endpoints, put_known, put_time
from kwsniff.core.rows.capture_point cimport find_capture_point
from kwsniff.core.tcp.addresses cimport format_address
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.events cimport TcpEvent
from kwsniff.core.tcp.lifecycle cimport Closing, Handshake, IcmpError, Reset, ResetMarks
from kwsniff.core.tcp.parts cimport (
    closing_of, handshake_of, icmp_error_of, reset_of, round_trips_of, sequence_of, traffic_of,
)
from kwsniff.core.tcp.segments cimport distance
from kwsniff.core.tcp.send_sequence cimport SendSequence
from kwsniff.core.tcp.traffic cimport Traffic
from kwsniff.core.tls.hello cimport Hello, cipher_text, version_text
from kwsniff.core.tls.hello_texts cimport name_alert
from kwsniff.core.tls.outcome cimport ENCRYPTED_ALERT, alert_in_handshake, client_certificate, how_far


cdef enum:
    JSON_LEAVES = 11            # of 64 bits: readers of JSON keep 53


cdef void describe_silent(Connection* connection, KafkaConnection* bare) noexcept nogil:
    memset(bare, 0, sizeof(KafkaConnection))
    bare.connection = connection
    bare.client = connection.opener
    bare.role = ROLE_SOURCE_HANDSHAKE if connection.opener >= 0 else ROLE_SOURCE_UNKNOWN
    bare.protocol = PROTOCOL_EMPTY
    bare.alert = -1
    bare.answered_in = NO_PROTOCOL
    bare.caller = CALLER_UNKNOWN
    bare.address_len[0] = format_address(connection.address[0], bare.address[0])
    bare.address_len[1] = format_address(connection.address[1], bare.address[1])


cdef void write_connection(Context* context, Connection* connection, KafkaConnection* kafka) noexcept nogil:
    """`kafka` is NULL for a connection that carried no payload."""
    cdef Table* table = &context.tables[<int>TABLE_CONNECTIONS]
    cdef KafkaConnection bare
    cdef uint8_t[COMMUNITY_ID_BYTES] community
    cdef int client
    if kafka == NULL:
        describe_silent(connection, &bare)
        kafka = &bare
    if not begin_row(table):
        return
    client = called_client(kafka)
    put_int64(table, CONNECTIONS_CONNECTION_ID, connection.id)
    put_capture(context, table, CONNECTIONS_CAPTURE, connection.capture)
    put_endpoints(context, table, kafka, CONNECTIONS_CLIENT_ADDRESS, CONNECTIONS_CLIENT_PORT, CONNECTIONS_BROKER_ADDRESS, CONNECTIONS_BROKER_PORT)
    put_enum(table, CONNECTIONS_PROTOCOL, kafka.protocol)
    put_enum(table, CONNECTIONS_ROLE_SOURCE, kafka.role)
    put_time(table, CONNECTIONS_FIRST_TIME, connection.first_time)
    put_time(table, CONNECTIONS_LAST_TIME, connection.last_time)
    put_int64(table, CONNECTIONS_FIRST_FRAME, connection.first_frame)
    put_int64(table, CONNECTIONS_LAST_FRAME, connection.last_frame)
    put_bool(table, CONNECTIONS_HANDSHAKE, connection.opener >= 0)
    put_known(table, CONNECTIONS_ROUND_TRIP_NS, handshake_of(connection).round_trip >= 0, handshake_of(connection).round_trip)
    put_traffic(table, connection, client)
    put_losses(table, connection, client)
    put_int64(table, CONNECTIONS_CALLS, kafka.num_calls)
    put_int64(table, CONNECTIONS_MAX_IN_FLIGHT, kafka.most_in_flight)
    put_string(table, CONNECTIONS_CLIENT_ID, known_text(&kafka.client_id))
    put_string(table, CONNECTIONS_CLIENT_SOFTWARE_NAME, known_text(&kafka.software_name))
    put_string(table, CONNECTIONS_CLIENT_SOFTWARE_VERSION, known_text(&kafka.software_version))
    put_string(table, CONNECTIONS_SASL_MECHANISM, known_text(&kafka.sasl_mechanism))
    put_enum(table, CONNECTIONS_ENDING, connection.end)
    put_enum(table, CONNECTIONS_CAPTURE_POINT,
              find_capture_point(round_trips_of(connection, client), round_trips_of(connection, 1 - client)))
    put_string(table, CONNECTIONS_PRINCIPAL, known_text(&kafka.principal))
    if kafka.caller == CALLER_UNKNOWN:
        put_null(table, CONNECTIONS_CALLER)
    else:
        put_enum(table, CONNECTIONS_CALLER, kafka.caller)
    put_hello(table, kafka.hello)
    put_records(table, kafka)
    put_alert(table, kafka)
    put_word(table, CONNECTIONS_ANSWERED_IN, kafka.answered_in if asks_as_kafka(kafka) else NO_PROTOCOL)
    put_word(table, CONNECTIONS_PROXY_HEADER, PROXY_HEADER_NONE + kafka.proxy_version)
    put_closing(table, connection, kafka)
    put_encapsulation(table, connection, kafka)
    put_int64(table, CONNECTIONS_DUPLICATE_PACKETS, connection.duplicates)
    put_null(table, CONNECTIONS_TWIN_OF)
    put_null(table, CONNECTIONS_TWIN_DELAY_NS)
    put_proxied(table, kafka)
    put_marks(table, kafka, sequence_of(connection, client), sequence_of(connection, 1 - client))
    put_reset(table, connection, kafka)
    put_icmp_error(table, connection)
    put_bool(table, CONNECTIONS_PORT_NAMED, is_forced(context, connection.port[1 - client]))
    write_community_id(connection, community)
    put_string(table, CONNECTIONS_COMMUNITY_ID, make_span(community, COMMUNITY_ID_BYTES))
    end_row(table)


cdef void put_losses(Table* table, Connection* connection, int client) noexcept nogil:
    """What never arrived, and what nothing proves the receipt of."""
    cdef Traffic* asks = traffic_of(connection, client)
    cdef Traffic* answers = traffic_of(connection, 1 - client)
    cdef SendSequence* asked = sequence_of(connection, client)
    cdef SendSequence* answered = sequence_of(connection, 1 - client)
    put_int64(table, CONNECTIONS_CLIENT_LOST_BYTES, asks.lost)
    put_int64(table, CONNECTIONS_BROKER_LOST_BYTES, answers.lost)
    put_int64(table, CONNECTIONS_CLIENT_LOST_BEFORE_BYTES, asks.lost_before)
    put_int64(table, CONNECTIONS_BROKER_LOST_BEFORE_BYTES, answers.lost_before)
    put_known(table, CONNECTIONS_CLIENT_UNACKNOWLEDGED_BYTES, asked.acked_known, unacknowledged(asked))
    put_known(table, CONNECTIONS_BROKER_UNACKNOWLEDGED_BYTES, answered.acked_known, unacknowledged(answered))
    put_int64(table, CONNECTIONS_CLIENT_LARGEST_ACKNOWLEDGED, asks.largest)
    put_int64(table, CONNECTIONS_BROKER_LARGEST_ACKNOWLEDGED, answers.largest)


cdef inline int64_t unacknowledged(SendSequence* own) noexcept nogil:
    cdef int32_t left = distance(own.next_seq, own.acked) if own.known else 0
    return left if left > 0 else 0


cdef void put_traffic(Table* table, Connection* connection, int client) noexcept nogil:
    """What both directions carried, and how."""
    cdef Traffic* asks = traffic_of(connection, client)
    cdef Traffic* answers = traffic_of(connection, 1 - client)
    cdef int64_t to_client = round_trips_of(connection, 1 - client).smallest
    cdef int64_t to_broker = round_trips_of(connection, client).smallest
    put_int64(table, CONNECTIONS_CLIENT_BYTES, asks.bytes)
    put_int64(table, CONNECTIONS_BROKER_BYTES, answers.bytes)
    put_int64(table, CONNECTIONS_CLIENT_PACKETS, asks.packets)
    put_int64(table, CONNECTIONS_BROKER_PACKETS, answers.packets)
    put_int64(table, CONNECTIONS_CLIENT_RETRANSMITTED_BYTES, asks.retransmitted)
    put_int64(table, CONNECTIONS_BROKER_RETRANSMITTED_BYTES, answers.retransmitted)
    put_int64(table, CONNECTIONS_CLIENT_OUT_OF_ORDER, asks.out_of_order)
    put_int64(table, CONNECTIONS_BROKER_OUT_OF_ORDER, answers.out_of_order)
    put_int64(table, CONNECTIONS_CLIENT_MISSING_BYTES, asks.missing)
    put_int64(table, CONNECTIONS_BROKER_MISSING_BYTES, answers.missing)
    # The broker's segments are acknowledged by the client: their time is the way to the client and back.
    put_known(table, CONNECTIONS_CLIENT_ROUND_TRIP_NS, to_client >= 0, to_client)
    put_known(table, CONNECTIONS_BROKER_ROUND_TRIP_NS, to_broker >= 0, to_broker)
    put_int64(table, CONNECTIONS_CLIENT_ZERO_WINDOW_NS, asks.zero_window)
    put_int64(table, CONNECTIONS_BROKER_ZERO_WINDOW_NS, answers.zero_window)


cdef inline int64_t first_number(SendSequence* own) noexcept nogil:
    """The SYN's, or the one that a SYN just before the capture would have had."""
    return own.isn if own.syn else <int64_t><uint32_t>(own.next_seq - <uint32_t>own.offset - 1)


cdef inline bint is_hashed(KafkaConnection* kafka) noexcept nogil:
    """Whether the hash has as many messages as it takes, or all of a connection that was closed."""
    cdef int asked = kafka.num_hashed[REQUEST], answered = kafka.num_hashed[RESPONSE]
    cdef int end = kafka.connection.end
    if asked == HASHED_MESSAGES and answered == HASHED_MESSAGES:
        return True
    return asked > 0 and answered > 0 and (end == ENDING_FIN or end == ENDING_RESET)


cdef void put_marks(Table* table, KafkaConnection* kafka, SendSequence* asks, SendSequence* answers) noexcept nogil:
    """What twins have in common."""
    put_known(table, CONNECTIONS_CLIENT_ISN, kafka.client >= 0 and (asks.syn or asks.known), first_number(asks))
    put_known(table, CONNECTIONS_BROKER_ISN, kafka.client >= 0 and (answers.syn or answers.known),
              first_number(answers))
    put_known(table, CONNECTIONS_MESSAGES_HASH, kafka.confirmed and is_hashed(kafka),
              <int64_t>(mix(kafka.messages_hash[REQUEST], kafka.messages_hash[RESPONSE]) >> JSON_LEAVES))


cdef void put_reset(Table* table, Connection* connection, KafkaConnection* kafka) noexcept nogil:
    """What tells whether the side sent it that it names."""
    cdef Reset* reset = reset_of(connection)
    cdef ResetMarks* marks = &reset.marks
    cdef bint known = connection.end == ENDING_RESET and reset.sender >= 0
    if not known or kafka.client < 0:
        put_null(table, CONNECTIONS_RESET_BY)
    else:
        put_enum(table, CONNECTIONS_RESET_BY, 0 if reset.sender == kafka.client else 1)
    put_known(table, CONNECTIONS_RESET_FRAME, known, reset.frame)
    if known:
        put_bool(table, CONNECTIONS_RESET_ACKNOWLEDGES, marks.acknowledges)
    else:
        put_null(table, CONNECTIONS_RESET_ACKNOWLEDGES)
    put_known(table, CONNECTIONS_RESET_TTL_STEP, known and marks.compared, marks.ttl_step)
    put_known(table, CONNECTIONS_RESET_IDENT_STEP, known and marks.ident_step >= 0, marks.ident_step)
    put_known(table, CONNECTIONS_RESET_WINDOW, known, marks.window)
    if known and marks.others_stamped:
        put_bool(table, CONNECTIONS_RESET_STAMPED, marks.stamped)
    else:
        put_null(table, CONNECTIONS_RESET_STAMPED)


cdef void put_icmp_error(Table* table, Connection* connection) noexcept nogil:
    cdef uint8_t[48] text
    cdef IcmpError* error = icmp_error_of(connection)
    cdef bint known = error.kind >= 0
    if known:
        put_enum(table, CONNECTIONS_ICMP_ERROR, error.kind)
    else:
        put_null(table, CONNECTIONS_ICMP_ERROR)
    put_string(table, CONNECTIONS_ICMP_FROM,
               make_span(text, <size_t>format_address(error.source, text)) if known else make_span(NULL, 0))
    put_known(table, CONNECTIONS_ICMP_FRAME, known, error.frame)


cdef void put_encapsulation(Table* table, Connection* connection, KafkaConnection* kafka) noexcept nogil:
    """Tunnels of packets, then the connection itself, if it is one."""
    cdef uint8_t[48] text
    cdef const char* carrier = b"connect" if kafka.carrier == CARRIER_CONNECT else b"socks5"
    cdef size_t num = 0
    if connection.encapsulation:
        num = <size_t>write_tunnels(connection.encapsulation, text)
    if kafka.carrier:
        if num:
            text[num] = 0x2F
            num += 1
        memcpy(&text[num], carrier, strlen(carrier))
        num += strlen(carrier)
    put_string(table, CONNECTIONS_ENCAPSULATION, make_span(text if num else NULL, num))


cdef inline bint asks_as_kafka(KafkaConnection* kafka) noexcept nogil:
    return kafka.protocol == PROTOCOL_KAFKA or kafka.protocol == PROTOCOL_TLS


cdef inline void put_word(Table* table, int column, int number) noexcept nogil:
    """Null where there is none."""
    if number < 0:
        put_null(table, column)
    else:
        put_enum(table, column, number)


cdef void put_closing(Table* table, Connection* connection, KafkaConnection* kafka) noexcept nogil:
    cdef Closing* closing = closing_of(connection)
    cdef Handshake* handshake = handshake_of(connection)
    if closing.closer < 0 or kafka.client < 0:
        put_null(table, CONNECTIONS_CLOSED_BY)
    else:
        put_enum(table, CONNECTIONS_CLOSED_BY, 0 if closing.closer == kafka.client else 1)
    put_known(table, CONNECTIONS_CLOSE_FRAME, closing.closer >= 0, closing.close_frame)
    put_time(table, CONNECTIONS_CLOSE_TIME, closing.close_time if closing.closer >= 0 else NO_TIME)
    put_bool(table, CONNECTIONS_REFUSED, connection.refused)
    put_known(table, CONNECTIONS_SYN_RETRIES, connection.opener >= 0 and sequence_of(connection, connection.opener).syn,
              handshake.syn_retries)
    put_known(table, CONNECTIONS_CONNECT_NS, handshake.connect_time >= 0, handshake.connect_time)


cdef void put_hello(Table* table, Hello* hello) noexcept nogil:
    cdef uint8_t[8] room
    cdef Span nothing = make_span(NULL, 0)
    put_string(table, CONNECTIONS_TLS_VERSION, version_text(hello, room) if hello != NULL else nothing)
    put_string(table, CONNECTIONS_TLS_SERVER_NAME, known_text(&hello.server_name) if hello != NULL else nothing)
    put_string(table, CONNECTIONS_TLS_CIPHER, cipher_text(hello, room) if hello != NULL else nothing)


cdef void put_records(Table* table, KafkaConnection* kafka) noexcept nogil:
    """How many with data went by, in each direction."""
    cdef int client = called_client(kafka)
    cdef Hello* hello = kafka.hello
    put_known(table, CONNECTIONS_CLIENT_TLS_RECORDS, hello != NULL, hello.side[client].records.num if hello != NULL else 0)
    put_known(table, CONNECTIONS_BROKER_TLS_RECORDS, hello != NULL,
              hello.side[1 - client].records.num if hello != NULL else 0)


cdef inline Span alert_text(int alert, uint8_t* room) noexcept nogil:
    if alert == ENCRYPTED_ALERT:
        return make_span(<const uint8_t*>b"encrypted", 9)
    return name_alert(alert, room) if alert >= 0 else make_span(NULL, 0)


cdef void put_alert(Table* table, KafkaConnection* kafka) noexcept nogil:
    """What became of a handshake; an alert in it, or instead of a response, and who sent it."""
    cdef uint8_t[8] room
    cdef int alert = kafka.alert, by = 1 - kafka.client
    cdef int far = TLS_HANDSHAKE_UNSEEN, certificate = TLS_CLIENT_CERTIFICATE_UNSEEN
    if kafka.hello != NULL:
        if alert < 0:
            alert = alert_in_handshake(kafka.hello, &by)
        far = how_far(kafka.hello)
        certificate = client_certificate(kafka.hello)
        put_bool(table, CONNECTIONS_TLS_HELLO, kafka.hello.greeted)
    else:
        put_null(table, CONNECTIONS_TLS_HELLO)
    put_word(table, CONNECTIONS_TLS_HANDSHAKE, far)
    put_word(table, CONNECTIONS_TLS_CLIENT_CERTIFICATE, certificate)
    put_string(table, CONNECTIONS_TLS_ALERT, alert_text(alert, room))
    if alert < 0 or kafka.client < 0:
        put_null(table, CONNECTIONS_TLS_ALERT_BY)
    else:
        put_enum(table, CONNECTIONS_TLS_ALERT_BY, 0 if by == kafka.client else 1)


cdef void put_proxied(Table* table, KafkaConnection* kafka) noexcept nogil:
    if kafka.proxied_len == 0:
        put_null(table, CONNECTIONS_PROXIED_ADDRESS)
        put_null(table, CONNECTIONS_PROXIED_PORT)
        return
    put_string(table, CONNECTIONS_PROXIED_ADDRESS, make_span(kafka.proxied_address, <size_t>kafka.proxied_len))
    put_int32(table, CONNECTIONS_PROXIED_PORT, kafka.proxied_port)


cdef void write_event(Context* context, Connection* connection, KafkaConnection* kafka, TcpEvent* event,
                      int64_t call_id) noexcept nogil:
    """`kafka` is NULL for a connection that carried no payload; call_id is -1 where no call was delayed."""
    cdef Table* table = &context.tables[<int>TABLE_TCP_EVENTS]
    cdef int client = kafka.client if kafka != NULL else connection.opener
    if not begin_row(table):
        return
    put_string(table, TCP_EVENTS_CAPTURE, capture_name(context, event.capture))
    put_int64(table, TCP_EVENTS_CONNECTION_ID, connection.id)
    put_time(table, TCP_EVENTS_TIME, event.time)
    put_int64(table, TCP_EVENTS_FRAME, event.frame)
    put_enum(table, TCP_EVENTS_KIND, event.kind)
    if client < 0:
        put_null(table, TCP_EVENTS_SENDER)
    else:
        put_enum(table, TCP_EVENTS_SENDER, 0 if event.sender == client else 1)
    put_known(table, TCP_EVENTS_STREAM_OFFSET, event.offset >= 0, event.offset)
    put_known(table, TCP_EVENTS_BYTES, event.bytes >= 0, event.bytes)
    put_known(table, TCP_EVENTS_COUNT, event.count >= 0, event.count)
    if event.kind == TCP_EVENT_RETRANSMISSION:
        put_bool(table, TCP_EVENTS_LOST_BEFORE, event.lost_before)
    else:
        put_null(table, TCP_EVENTS_LOST_BEFORE)
    put_known(table, TCP_EVENTS_CALL_ID, call_id >= 0, call_id)
    end_row(table)
