# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""What a TLS handshake shows without keys: the broker's name, the version and the cipher suite agreed on.

Rules
  1. Only the first handshake message of each side is read: what comes later is encrypted, or says the same. A second
     ServerHello must agree on what a HelloRetryRequest chose (RFC 8446 4.1.4).
  2. A message is collected over records and segments, up to MOST_BYTES. Of one that is cut short, what is whole counts;
     the version does not, unless supported_versions is there: the older field says 1.2 for 1.3 too.
  3. An alert in the place of a hello says why there is none (RFC 8446 6).
  4. What does not hold together is no hello, and nothing is said of it.

    record       | type 22 | version u16 | length u16 | part of a message ...
    message      | type u8 | length u24 | body
    ClientHello  | version u16 | random 32 | id u8+ | suites u16+ | compression u8+ | extensions u16+
    ServerHello  | version u16 | random 32 | id u8+ | suite u16 | compression u8 | extensions u16+
    extension    | type u16 | length u16 | data;  server_name: | length u16 | type 0 | length u16 | name

Source: RFC 8446 4.1 and 5.1, RFC 5246 7.4.1, RFC 6066 3; names of suites: IANA's registry.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from kwsniff.core.octets.buffer cimport Buffer, append, contents, release
from kwsniff.core.octets.octets cimport Octets, be16, be32, copy_out, drop, has, keep, make_octets, u8

cdef enum:
    RECORD_HEADER = 5
    HANDSHAKE = 22
    ALERT = 21
    LONGEST_RECORD = 16384      # plaintext in a record (RFC 8446 5.1)
    CLIENT_HELLO = 1
    SERVER_HELLO = 2
    MESSAGE_HEADER = 4
    MOST_BYTES = 16384          # of a hello; those with tickets and post-quantum keys have some thousands
    HELLO_FIXED = 34            # version and random
    SERVER_NAME = 0             # extensions
    ENCRYPT_THEN_MAC = 22
    SUPPORTED_VERSIONS = 43
    RANDOM_AT = 2               # in a hello's body; 32 bytes
    NUM_SUITES = 87

NAMES = {
    0x0001: b"TLS_RSA_WITH_NULL_MD5", 0x0002: b"TLS_RSA_WITH_NULL_SHA", 0x0004: b"TLS_RSA_WITH_RC4_128_MD5",
    0x0005: b"TLS_RSA_WITH_RC4_128_SHA", 0x000A: b"TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    0x0013: b"TLS_DHE_DSS_WITH_3DES_EDE_CBC_SHA", 0x0016: b"TLS_DHE_RSA_WITH_3DES_EDE_CBC_SHA",
    0x002F: b"TLS_RSA_WITH_AES_128_CBC_SHA", 0x0032: b"TLS_DHE_DSS_WITH_AES_128_CBC_SHA",
    0x0033: b"TLS_DHE_RSA_WITH_AES_128_CBC_SHA", 0x0034: b"TLS_DH_anon_WITH_AES_128_CBC_SHA",
    0x0035: b"TLS_RSA_WITH_AES_256_CBC_SHA", 0x0038: b"TLS_DHE_DSS_WITH_AES_256_CBC_SHA",
    0x0039: b"TLS_DHE_RSA_WITH_AES_256_CBC_SHA", 0x003A: b"TLS_DH_anon_WITH_AES_256_CBC_SHA",
    0x003B: b"TLS_RSA_WITH_NULL_SHA256", 0x003C: b"TLS_RSA_WITH_AES_128_CBC_SHA256",
    0x003D: b"TLS_RSA_WITH_AES_256_CBC_SHA256", 0x0040: b"TLS_DHE_DSS_WITH_AES_128_CBC_SHA256",
    0x0067: b"TLS_DHE_RSA_WITH_AES_128_CBC_SHA256", 0x006A: b"TLS_DHE_DSS_WITH_AES_256_CBC_SHA256",
    0x006B: b"TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", 0x009C: b"TLS_RSA_WITH_AES_128_GCM_SHA256",
    0x009D: b"TLS_RSA_WITH_AES_256_GCM_SHA384", 0x009E: b"TLS_DHE_RSA_WITH_AES_128_GCM_SHA256",
    0x009F: b"TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", 0x00A2: b"TLS_DHE_DSS_WITH_AES_128_GCM_SHA256",
    0x00A3: b"TLS_DHE_DSS_WITH_AES_256_GCM_SHA384", 0x00A6: b"TLS_DH_anon_WITH_AES_128_GCM_SHA256",
    0x00A7: b"TLS_DH_anon_WITH_AES_256_GCM_SHA384", 0x00A8: b"TLS_PSK_WITH_AES_128_GCM_SHA256",
    0x00A9: b"TLS_PSK_WITH_AES_256_GCM_SHA384", 0x00AA: b"TLS_DHE_PSK_WITH_AES_128_GCM_SHA256",
    0x00AB: b"TLS_DHE_PSK_WITH_AES_256_GCM_SHA384", 0x00C6: b"TLS_SM4_GCM_SM3", 0x00C7: b"TLS_SM4_CCM_SM3",
    0x1301: b"TLS_AES_128_GCM_SHA256", 0x1302: b"TLS_AES_256_GCM_SHA384",
    0x1303: b"TLS_CHACHA20_POLY1305_SHA256", 0x1304: b"TLS_AES_128_CCM_SHA256",
    0x1305: b"TLS_AES_128_CCM_8_SHA256",
    0xC004: b"TLS_ECDH_ECDSA_WITH_AES_128_CBC_SHA", 0xC005: b"TLS_ECDH_ECDSA_WITH_AES_256_CBC_SHA",
    0xC007: b"TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", 0xC008: b"TLS_ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA",
    0xC009: b"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", 0xC00A: b"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    0xC00E: b"TLS_ECDH_RSA_WITH_AES_128_CBC_SHA", 0xC00F: b"TLS_ECDH_RSA_WITH_AES_256_CBC_SHA",
    0xC011: b"TLS_ECDHE_RSA_WITH_RC4_128_SHA", 0xC012: b"TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    0xC013: b"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", 0xC014: b"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    0xC018: b"TLS_ECDH_anon_WITH_AES_128_CBC_SHA", 0xC019: b"TLS_ECDH_anon_WITH_AES_256_CBC_SHA",
    0xC023: b"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", 0xC024: b"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384",
    0xC025: b"TLS_ECDH_ECDSA_WITH_AES_128_CBC_SHA256", 0xC026: b"TLS_ECDH_ECDSA_WITH_AES_256_CBC_SHA384",
    0xC027: b"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", 0xC028: b"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384",
    0xC029: b"TLS_ECDH_RSA_WITH_AES_128_CBC_SHA256", 0xC02A: b"TLS_ECDH_RSA_WITH_AES_256_CBC_SHA384",
    0xC02B: b"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", 0xC02C: b"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    0xC02D: b"TLS_ECDH_ECDSA_WITH_AES_128_GCM_SHA256", 0xC02E: b"TLS_ECDH_ECDSA_WITH_AES_256_GCM_SHA384",
    0xC02F: b"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", 0xC030: b"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    0xC031: b"TLS_ECDH_RSA_WITH_AES_128_GCM_SHA256", 0xC032: b"TLS_ECDH_RSA_WITH_AES_256_GCM_SHA384",
    0xC09C: b"TLS_RSA_WITH_AES_128_CCM", 0xC09D: b"TLS_RSA_WITH_AES_256_CCM",
    0xC09E: b"TLS_DHE_RSA_WITH_AES_128_CCM", 0xC09F: b"TLS_DHE_RSA_WITH_AES_256_CCM",
    0xC0A0: b"TLS_RSA_WITH_AES_128_CCM_8", 0xC0A1: b"TLS_RSA_WITH_AES_256_CCM_8",
    0xC0A2: b"TLS_DHE_RSA_WITH_AES_128_CCM_8", 0xC0A3: b"TLS_DHE_RSA_WITH_AES_256_CCM_8",
    0xC0AC: b"TLS_ECDHE_ECDSA_WITH_AES_128_CCM", 0xC0AD: b"TLS_ECDHE_ECDSA_WITH_AES_256_CCM",
    0xC0AE: b"TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", 0xC0AF: b"TLS_ECDHE_ECDSA_WITH_AES_256_CCM_8",
    0xCCA8: b"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    0xCCA9: b"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    0xCCAA: b"TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    0xCCAC: b"TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256",
}

ALERTS = {
    0: b"close_notify", 10: b"unexpected_message", 20: b"bad_record_mac", 21: b"decryption_failed",
    22: b"record_overflow", 30: b"decompression_failure", 40: b"handshake_failure", 41: b"no_certificate",
    42: b"bad_certificate", 43: b"unsupported_certificate", 44: b"certificate_revoked", 45: b"certificate_expired",
    46: b"certificate_unknown", 47: b"illegal_parameter", 48: b"unknown_ca", 49: b"access_denied", 50: b"decode_error",
    51: b"decrypt_error", 70: b"protocol_version", 71: b"insufficient_security", 80: b"internal_error",
    86: b"inappropriate_fallback", 90: b"user_canceled", 100: b"no_renegotiation", 109: b"missing_extension",
    110: b"unsupported_extension", 112: b"unrecognized_name", 113: b"bad_certificate_status_response",
    115: b"unknown_psk_identity", 116: b"certificate_required", 120: b"no_application_protocol",
}

cdef Octets[256] alert_names

cdef struct Suite:
    uint16_t number
    Octets name

cdef Suite[NUM_SUITES] suites


cdef name_suites():
    cdef bytes name
    cdef int place
    if len(NAMES) != NUM_SUITES:
        raise AssertionError(f"{len(NAMES)} cipher suites, {<int>NUM_SUITES} places")
    for place, (number, name) in enumerate(NAMES.items()):
        suites[place].number = number
        suites[place].name = make_octets(<const uint8_t*><const char*>name, len(name))  # the dict keeps the bytes


name_suites()


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


cdef void take_hello(Hello* hello, int direction, Octets data) noexcept nogil:
    """The next bytes that endpoint `direction` sent."""
    cdef HelloSide* side = &hello.side[direction]
    cdef Octets part
    while data.num and side.state == HELLO_COMES:
        if side.left == 0:
            if side.head_num == 0 and hello.alert < 0 and read_alert(data) >= 0:
                hello.alert = read_alert(data)
                hello.alert_by = direction
            data = read_record_header(side, data)
            continue
        part = keep(data, side.left)
        if not append(&side.message, part):
            end_hello(hello, direction)
            return
        side.left -= <uint32_t>part.num
        data = drop(data, part.num)
        if not may_be_hello(contents(&side.message)):
            forget(side)
        elif is_whole(contents(&side.message)):
            end_hello(hello, direction)


cdef Octets read_record_header(HelloSide* side, Octets data) noexcept nogil:
    """What follows the header; it may come in pieces."""
    while data.num and side.head_num < RECORD_HEADER:
        side.head[side.head_num] = <uint8_t>u8(data, 0)
        side.head_num += 1
        data = drop(data, 1)
    if side.head_num == RECORD_HEADER:
        side.left = be16(make_octets(side.head, RECORD_HEADER), 3)
        side.head_num = 0
        if side.head[0] != HANDSHAKE or side.head[1] != 3 or side.left == 0 or side.left > LONGEST_RECORD:
            forget(side)
    return data


cdef inline uint32_t message_length(Octets message) noexcept nogil:
    return be32(message, 0) & 0xFFFFFF


cdef inline bint may_be_hello(Octets message) noexcept nogil:
    if u8(message, 0) != CLIENT_HELLO and u8(message, 0) != SERVER_HELLO:
        return False
    return message.num < MESSAGE_HEADER or message_length(message) <= MOST_BYTES


cdef inline bint is_whole(Octets message) noexcept nogil:
    return message.num >= MESSAGE_HEADER and message.num - MESSAGE_HEADER >= message_length(message)


cdef void forget(HelloSide* side) noexcept nogil:
    side.state = HELLO_OVER
    side.left = 0
    release(&side.message)


cdef void end_hello(Hello* hello, int direction) noexcept nogil:
    """Nothing more comes, or nothing more is needed: reads what is there."""
    cdef HelloSide* side = &hello.side[direction]
    cdef Octets message = contents(&side.message)
    if side.state == HELLO_COMES and message.num > MESSAGE_HEADER:
        if u8(message, 0) == CLIENT_HELLO:
            read_client_hello(hello, direction, message)
        else:
            read_server_hello(hello, direction, message)
    forget(side)


cdef inline Octets hello_body(Octets message) noexcept nogil:
    return keep(drop(message, MESSAGE_HEADER), message_length(message))


cdef inline bint begins_well(Octets body) noexcept nogil:
    """Version 3.x and a session id of 32 bytes at most."""
    return has(body, 0, HELLO_FIXED + 1) and u8(body, 0) == 3 and u8(body, HELLO_FIXED) <= 32


cdef void read_client_hello(Hello* hello, int direction, Octets message) noexcept nogil:
    cdef Octets rest = hello_body(message)
    cdef uint32_t num_suites
    if not begins_well(rest) or hello.client == 1 - direction:
        return
    rest = drop(rest, HELLO_FIXED + 1 + u8(rest, HELLO_FIXED))
    num_suites = be16(rest, 0)
    if num_suites < 2 or num_suites & 1:
        return
    hello.client = direction
    hello.greeted = True
    hello.num_read += 1
    copy_out(hello_body(message), RANDOM_AT, hello.client_random, 32)
    hello.client_random_known = True
    rest = drop(rest, 2 + num_suites)
    rest = drop(rest, 1 + u8(rest, 0))
    read_server_name(find_extension(rest, SERVER_NAME), &hello.server_name)


cdef void read_server_name(Octets extension, Buffer* name) noexcept nogil:
    """The one host name (RFC 6066 3: ASCII)."""
    cdef uint32_t num = be16(extension, 3)
    cdef uint32_t i
    if u8(extension, 2) != 0 or num == 0 or num > 255 or not has(extension, 5, num):
        return
    for i in range(num):
        if not 0x21 <= u8(extension, 5 + i) <= 0x7E:
            return
    append(name, keep(drop(extension, 5), num))


cdef void read_server_hello(Hello* hello, int direction, Octets message) noexcept nogil:
    cdef Octets body = hello_body(message)
    cdef Octets rest, chosen
    if not begins_well(body) or hello.client == direction:
        return
    hello.client = 1 - direction
    rest = drop(body, HELLO_FIXED + 1 + u8(body, HELLO_FIXED))
    hello.session_id_num = u8(body, HELLO_FIXED)
    copy_out(body, HELLO_FIXED + 1, hello.session_id, hello.session_id_num)
    if rest.num < 2:
        return
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


cdef Octets find_extension(Octets rest, uint32_t wanted) noexcept nogil:
    """Its data; empty when it is not there, or not whole."""
    cdef Octets found = seek_extension(rest, wanted)
    return keep(drop(found, 4), be16(found, 2))


cdef bint holds_extension(Octets rest, uint32_t wanted) noexcept nogil:
    return seek_extension(rest, wanted).num > 0


cdef Octets seek_extension(Octets rest, uint32_t wanted) noexcept nogil:
    """From its type on; empty when it is not there, or not whole."""
    rest = keep(drop(rest, 2), be16(rest, 0))
    while rest.num >= 4:
        if not has(rest, 4, be16(rest, 2)):
            break
        if be16(rest, 0) == wanted:
            return rest
        rest = drop(rest, 4 + be16(rest, 2))
    return make_octets(NULL, 0)


cdef int read_alert(Octets data) noexcept nogil:
    """Its description, where `data` begins with a record that is a whole alert: level 1 or 2. -1: it does not."""
    if (data.num < RECORD_HEADER + 2 or u8(data, 0) != ALERT or u8(data, 1) != 3 or be16(data, 3) != 2
            or not 1 <= u8(data, RECORD_HEADER) <= 2):
        return -1
    return u8(data, RECORD_HEADER + 1)


# -- texts ------------------------------------------------------------------------------------------------------

cdef Octets hex_text(uint16_t number, uint8_t* room) noexcept nogil:
    """0x and four digits; `room` has 8 bytes."""
    cdef const char* digits = b"0123456789abcdef"
    cdef int i
    memcpy(room, b"0x", 2)
    for i in range(4):
        room[2 + i] = <uint8_t>digits[number >> (12 - 4 * i) & 15]
    return make_octets(room, 6)


cdef name_alerts():
    for number, text in ALERTS.items():
        alert_names[<int>number] = make_octets(<const uint8_t*><const char*>(<bytes>text), len(text))


name_alerts()


cdef Octets alert_text(int number, uint8_t* room) noexcept nogil:
    """The alert's name (RFC 8446 6, RFC 5246 7.2), or its number. `room` has 8 bytes."""
    if alert_names[number & 0xFF].num:
        return alert_names[number & 0xFF]
    return hex_text(<uint16_t>number, room)


cdef Octets version_text(Hello* hello, uint8_t* room) noexcept nogil:
    """1.3 for 0x0304 and so on; empty when it is not known. `room` has 8 bytes."""
    if not hello.version_known:
        return make_octets(NULL, 0)
    if 0x0301 <= hello.version <= 0x0304:
        memcpy(room, b"1.0", 3)
        room[2] += <uint8_t>(hello.version - 0x0301)
        return make_octets(room, 3)
    if hello.version == 0x0300:
        memcpy(room, b"SSL 3.0", 7)
        return make_octets(room, 7)
    return hex_text(hello.version, room)


cdef Octets cipher_text(Hello* hello, uint8_t* room) noexcept nogil:
    """IANA's name of the suite, or its number; empty when it is not known. `room` has 8 bytes."""
    cdef int i
    if not hello.cipher_known:
        return make_octets(NULL, 0)
    for i in range(NUM_SUITES):
        if suites[i].number == hello.cipher:
            return suites[i].name
    return hex_text(hello.cipher, room)


def read(parts):
    """What an exchange of bytes shows: (client, version, server name, cipher suite), None where it shows nothing.
    `parts` are pairs of endpoint (0 or 1) and bytes, or None in the place of bytes that are missing."""
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
            take_hello(hello, endpoint, make_octets(&view[0] if len(view) else NULL, len(view)))
        return (
            None if hello.client < 0 else hello.client, _text(version_text(hello, room)),
            _text(contents(&hello.server_name)), _text(cipher_text(hello, room)),
        )
    finally:
        free_hello(hello)


cdef _text(Octets text):
    return (<const char*>text.at)[:text.num].decode() if text.num else None
