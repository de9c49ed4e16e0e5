# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""What a TLS handshake shows without keys: the broker's name, the version and the cipher suite agreed on.

Rules
  1. Only the first handshake message of each side is read: what comes later is encrypted, or says the same. A second
     ServerHello must agree on what a HelloRetryRequest chose (RFC 8446 4.1.4).
  2. A message is collected over records and segments, up to MOST_BYTES. Of one that is cut short, what is whole counts;
     the version does not, unless supported_versions is there: the older field says 1.2 for 1.3 too.
  3. An alert instead of a hello says why there is none (RFC 8446 6), in however many pieces it comes.
  4. What does not hold together is not a hello, and leaves no trace.
  5. Of ids and tickets that resume a session of TLS 1.2 a mark is kept: which earlier session it was tells its secret.

    record       | type 22 | version u16 | length u16 | part of a message ...
    message      | type u8 | length u24 | body
    ClientHello  | version u16 | random 32 | id u8+ | suites u16+ | compression u8+ | extensions u16+
    ServerHello  | version u16 | random 32 | id u8+ | suite u16 | compression u8 | extensions u16+
    extension    | type u16 | length u16 | data;  server_name: | length u16 | type 0 | length u16 | name

Source: RFC 8446 4.1 and 5.1, RFC 5246 7.4.1, RFC 6066 3.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from kwsniff.core.bytes.buffer cimport Buffer, append, contents, release
from kwsniff.core.bytes.hash cimport hash_span
from kwsniff.core.bytes.span cimport Span, be16, be32, copy_out, drop, has, keep, make_span, u8
from kwsniff.core.tls.record_layer cimport ALERT_BYTES, RECORD_ALERT, RECORD_HANDSHAKE, RECORD_HEADER
from kwsniff.core.tls.hello_texts cimport name_suite, name_version

cdef enum:
    FATAL = 2                   # level of an alert; 1 is a warning
    CLOSE_NOTIFY = 0            # its description
    USER_CANCELED = 90
    LONGEST_PLAIN = 16384       # plaintext in a record (RFC 8446 5.1)
    CLIENT_HELLO = 1
    SERVER_HELLO = 2
    NEW_TICKET = 4
    MESSAGE_HEADER = 4
    MOST_BYTES = 16384          # of a hello; those with tickets and post-quantum keys have some thousands
    HELLO_FIXED = 34            # version and random
    SERVER_NAME = 0             # extensions
    ENCRYPT_THEN_MAC = 22
    SESSION_TICKET = 35
    SUPPORTED_VERSIONS = 43
    RANDOM_AT = 2               # in a hello's body; 32 bytes
    LIFETIME = 4                # bytes of a new ticket's lifetime; then | length u16 | ticket (RFC 5077 3.3)
    TICKET_AT = 6

cdef Hello* make_hello() noexcept nogil:
    """NULL when memory is refused."""
    cdef Hello* hello = <Hello*>calloc(1, sizeof(Hello))
    if hello != NULL:
        hello.client = -1
        hello.alert = -1
    return hello


cdef void free_hello(Hello* hello) noexcept nogil:
    if hello != NULL:
        release(&hello.side[0].message)
        release(&hello.side[1].message)
        release(&hello.server_name)
    free(hello)


cdef void take_hello(Hello* hello, int direction, Span data) noexcept nogil:
    """The next bytes that endpoint `direction` sent."""
    cdef HelloSide* side = &hello.side[direction]
    cdef Span part
    while data.num and side.state == HELLO_COMES:
        if side.left == 0:
            data = read_record_header(side, data)
            continue
        part = keep(data, side.left)
        if not append(&side.message, part):
            end_hello(hello, direction)
            return
        side.left -= <uint32_t>part.num
        data = drop(data, part.num)
        if side.head[0] == RECORD_ALERT:
            if side.left == 0:
                take_alert(hello, direction)
        elif not may_be_hello(contents(&side.message)):
            forget(side)
        elif is_whole(contents(&side.message)):
            end_hello(hello, direction)


cdef void take_alert(Hello* hello, int direction) noexcept nogil:
    """Nothing follows one that is fatal; a hello may follow a warning (RFC 6066 3), and then that was not in its place."""
    cdef HelloSide* side = &hello.side[direction]
    cdef uint32_t level = u8(contents(&side.message), 0)
    if 1 <= level <= FATAL and (hello.alert < 0 or level == FATAL):
        hello.alert = u8(contents(&side.message), 1)
        hello.alert_by = direction
    if level == 1:
        side.message.len = 0
    else:
        forget(side)


cdef void take_opened_alert(Hello* hello, int direction, Span data) noexcept nogil:
    """The contents of an encrypted one. One that closes the connection in order says nothing (RFC 8446 6.1)."""
    if data.num == ALERT_BYTES and hello.alert < 0 and u8(data, 1) != CLOSE_NOTIFY and u8(data, 1) != USER_CANCELED:
        hello.alert = <int>u8(data, 1)
        hello.alert_by = direction


cdef Span read_record_header(HelloSide* side, Span data) noexcept nogil:
    """What follows the header; it may come in pieces."""
    while data.num and side.head_num < RECORD_HEADER:
        side.head[side.head_num] = <uint8_t>u8(data, 0)
        side.head_num += 1
        data = drop(data, 1)
    if side.head_num == RECORD_HEADER:
        side.left = be16(make_span(side.head, RECORD_HEADER), 3)
        side.head_num = 0
        if not may_go_on(side):
            forget(side)
    return data


cdef inline bint may_go_on(HelloSide* side) noexcept nogil:
    if side.head[1] != 3:
        return False
    if side.head[0] == RECORD_ALERT:
        return side.left == 2 and side.message.len == 0
    return side.head[0] == RECORD_HANDSHAKE and 0 < side.left <= LONGEST_PLAIN


cdef inline uint32_t message_length(Span message) noexcept nogil:
    return be32(message, 0) & 0xFFFFFF


cdef inline bint may_be_hello(Span message) noexcept nogil:
    if u8(message, 0) != CLIENT_HELLO and u8(message, 0) != SERVER_HELLO:
        return False
    return message.num < MESSAGE_HEADER or message_length(message) <= MOST_BYTES


cdef inline bint is_whole(Span message) noexcept nogil:
    return message.num >= MESSAGE_HEADER and message.num - MESSAGE_HEADER >= message_length(message)


cdef void forget(HelloSide* side) noexcept nogil:
    side.state = HELLO_OVER
    side.left = 0
    release(&side.message)


cdef void end_hello(Hello* hello, int direction) noexcept nogil:
    """Nothing more comes, or nothing more is needed: reads what is there."""
    cdef HelloSide* side = &hello.side[direction]
    cdef Span message = contents(&side.message)
    if side.state == HELLO_COMES and message.num > MESSAGE_HEADER:
        if u8(message, 0) == CLIENT_HELLO:
            read_client_hello(hello, direction, message)
        else:
            read_server_hello(hello, direction, message)
    forget(side)


cdef inline Span hello_body(Span message) noexcept nogil:
    return keep(drop(message, MESSAGE_HEADER), message_length(message))


cdef inline bint begins_well(Span body) noexcept nogil:
    """Version 3.x and a session id of 32 bytes at most."""
    return has(body, 0, HELLO_FIXED + 1) and u8(body, 0) == 3 and u8(body, HELLO_FIXED) <= 32


cdef void read_client_hello(Hello* hello, int direction, Span message) noexcept nogil:
    cdef Span rest = hello_body(message)
    cdef uint32_t num_suites
    if not begins_well(rest) or hello.client == 1 - direction:
        return
    hello.asked_id = mark_of(keep(drop(rest, HELLO_FIXED + 1), u8(rest, HELLO_FIXED)))
    rest = drop(rest, HELLO_FIXED + 1 + u8(rest, HELLO_FIXED))
    num_suites = be16(rest, 0)
    if num_suites < 2 or num_suites & 1:
        return
    if hello.alert_by == direction:
        hello.alert = -1
    hello.client = direction
    hello.greeted = True
    hello.num_read += 1
    copy_out(hello_body(message), RANDOM_AT, hello.client_random, 32)
    hello.client_random_known = True
    rest = drop(rest, 2 + num_suites)
    rest = drop(rest, 1 + u8(rest, 0))
    read_server_name(find_extension(rest, SERVER_NAME), &hello.server_name)
    hello.ticket_shown = mark_of(find_extension(rest, SESSION_TICKET))


cdef void read_server_name(Span extension, Buffer* name) noexcept nogil:
    """The one host name (RFC 6066 3: ASCII)."""
    cdef uint32_t num = be16(extension, 3)
    cdef uint32_t i
    if u8(extension, 2) != 0 or num == 0 or num > 255 or not has(extension, 5, num):
        return
    for i in range(num):
        if not 0x21 <= u8(extension, 5 + i) <= 0x7E:
            return
    append(name, keep(drop(extension, 5), num))


cdef void read_server_hello(Hello* hello, int direction, Span message) noexcept nogil:
    cdef Span body = hello_body(message)
    cdef Span rest, chosen
    if not begins_well(body) or hello.client == direction:
        return
    hello.client = 1 - direction
    rest = drop(body, HELLO_FIXED + 1 + u8(body, HELLO_FIXED))
    hello.session_id_num = u8(body, HELLO_FIXED)
    copy_out(body, HELLO_FIXED + 1, hello.session_id, hello.session_id_num)
    hello.resumed = hello.asked_id != 0 and hello.asked_id == mark_of(make_span(hello.session_id, hello.session_id_num))
    if rest.num < 2:
        return
    if hello.alert_by == direction:
        hello.alert = -1
    hello.num_read += 1
    copy_out(body, RANDOM_AT, hello.server_random, 32)
    hello.server_random_known = True
    hello.cipher = <uint16_t>be16(rest, 0)
    hello.cipher_known = True
    chosen = find_extension(drop(rest, 3), SUPPORTED_VERSIONS)
    if chosen.num == 2:
        hello.version = <uint16_t>be16(chosen, 0)
        hello.version_known = True
    elif is_whole(message):
        hello.version = <uint16_t>be16(body, 0)
        hello.version_known = True
    hello.encrypt_then_mac = holds_extension(drop(rest, 3), ENCRYPT_THEN_MAC)


cdef inline uint64_t mark_of(Span text) noexcept nogil:
    """Of an id or a ticket; 0 for none."""
    return hash_span(text, 0) | 1 if text.num else 0


cdef void take_clear_messages(Hello* hello, Span record) noexcept nogil:
    """A whole record of the handshake in the clear: the ticket that the broker gives, where it begins in it."""
    cdef Span rest = drop(record, RECORD_HEADER)
    while rest.num >= MESSAGE_HEADER and has(rest, MESSAGE_HEADER, message_length(rest)):
        if u8(rest, 0) == NEW_TICKET:
            hello.ticket_given = mark_of(keep(drop(rest, MESSAGE_HEADER + TICKET_AT), be16(rest, MESSAGE_HEADER + LIFETIME)))
        rest = drop(rest, MESSAGE_HEADER + message_length(rest))


cdef Span find_extension(Span rest, uint32_t wanted) noexcept nogil:
    """Its data; empty when it is not there, or not whole."""
    cdef Span found = seek_extension(rest, wanted)
    return keep(drop(found, 4), be16(found, 2))


cdef bint holds_extension(Span rest, uint32_t wanted) noexcept nogil:
    return seek_extension(rest, wanted).num > 0


cdef Span seek_extension(Span rest, uint32_t wanted) noexcept nogil:
    """From its type on; empty when it is not there, or not whole."""
    rest = keep(drop(rest, 2), be16(rest, 0))
    while rest.num >= 4:
        if not has(rest, 4, be16(rest, 2)):
            break
        if be16(rest, 0) == wanted:
            return rest
        rest = drop(rest, 4 + be16(rest, 2))
    return make_span(NULL, 0)


cdef bint may_be_alert(Span data) noexcept nogil:
    """Whether more bytes could make a whole alert of it."""
    if not 0 < data.num < RECORD_HEADER + 2 or u8(data, 0) != RECORD_ALERT or data.num > 1 and u8(data, 1) != 3:
        return False
    return (data.num < 4 or u8(data, 3) == 0) and (data.num < 5 or u8(data, 4) == 2)


cdef int read_alert(Span data) noexcept nogil:
    """Its description, where `data` begins with a record that is a whole alert: level 1 or 2. -1: it does not."""
    if (data.num < RECORD_HEADER + 2 or u8(data, 0) != RECORD_ALERT or u8(data, 1) != 3 or be16(data, 3) != 2
            or not 1 <= u8(data, RECORD_HEADER) <= FATAL):
        return -1
    return u8(data, RECORD_HEADER + 1)


cdef Span version_text(Hello* hello, uint8_t* room) noexcept nogil:
    """Empty when it is not known. `room` has 8 bytes."""
    return name_version(hello.version, room) if hello.version_known else make_span(NULL, 0)


cdef Span cipher_text(Hello* hello, uint8_t* room) noexcept nogil:
    """Empty when it is not known. `room` has 8 bytes."""
    return name_suite(hello.cipher, room) if hello.cipher_known else make_span(NULL, 0)


def read(parts):
    """What an exchange of bytes shows: (client, version, server name, cipher suite), None where it shows nothing.
    `parts` are pairs of endpoint (0 or 1) and bytes, or None instead of bytes that are missing."""
    cdef Hello* hello = make_hello()
    cdef uint8_t[8] room
    cdef const uint8_t[::1] view
    if hello == NULL:
        raise MemoryError
    try:
        for endpoint, data in parts:
            if not 0 <= endpoint <= 1:
                raise ValueError(f"endpoint {endpoint} is neither 0 nor 1")
            if data is None:
                end_hello(hello, endpoint)
                continue
            view = data
            take_hello(hello, endpoint, make_span(&view[0] if len(view) else NULL, len(view)))
        return (
            None if hello.client < 0 else hello.client, _text(version_text(hello, room)),
            _text(contents(&hello.server_name)), _text(cipher_text(hello, room)),
        )
    finally:
        free_hello(hello)


cdef _text(Span text):
    return (<const char*>text.at)[:text.num].decode() if text.num else None
