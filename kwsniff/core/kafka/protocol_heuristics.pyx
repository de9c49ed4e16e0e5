# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""What the first bytes of a direction are: a Kafka request, TLS, something else.

Rules
  1. A request is believed in only with every field of its header in range: size, key, version of that key, and a
     client id that fits. Random bytes pass once in millions where it is printable; a decoded body or a paired response
     must still confirm it (dispatch.pyx). Kafka allows control characters there: then nothing but the body tells.
  2. What is not known is called other, never guessed. What other protocols begin with is text: dissectors/protocols.txt.

    | size u32 | key i16 | version i16 | correlation id i32 | client id length i16 | client id ...
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memset

from kwsniff.core.declared cimport (
    PROTOCOL_EMPTY, PROTOCOL_HTTP, PROTOCOL_OTHER, PROTOCOL_PROXY, PROTOCOL_SSH, PROTOCOL_TLS,
)
from kwsniff.core.kafka.apis cimport ApiRange, find_api, in_span
from kwsniff.core.kafka.frames cimport LOOK_MORE, LOOK_NO, LOOK_ODD, LOOK_YES
from kwsniff.core.kafka.protocols cimport NUM_BEGINNINGS, Beginning, beginnings
from kwsniff.core.bytes.span cimport Span, be16, be32, copy_out, drop, has, keep, u8
from kwsniff.core.tcp.addresses cimport format_address

cdef enum:
    HEADER_BYTES = 14           # prefix, key, version, correlation id, length of the client id
    CLIENT_ID_LOOKED_AT = 64
    MAX_TOKEN = 524288          # brokers take no more before a client is known (sasl.server.max.receive.size)
    MAX_VERSION = 999           # of a connection that is in step and Kafka's: far above what any release speaks
    FIRST_LINE = 8192           # of HTTP, at most
    LONGEST_RECORD = 18432      # of TLS, encrypted (RFC 5246 6.2.3)
    NEWER_VERSIONS = 4          # a client newer than kwsniff may use this number of versions above the known ones


cdef int look_at_request(Apis* apis, Span data, int64_t frame_bytes) noexcept nogil:
    """`data` from the size prefix on; it may hold less or more than the frame."""
    cdef uint32_t size, key, i, num
    cdef int version, client_len
    cdef ApiRange* known
    if data.num < 4:
        return LOOK_MORE
    size = be32(data, 0)
    if size < 8 or size > frame_bytes:
        return LOOK_NO
    if data.num < 6:
        return LOOK_MORE
    key = be16(data, 4)
    known = find_api(apis, <int16_t>key)
    if known == NULL:
        return LOOK_NO
    if data.num < 8:
        return LOOK_MORE
    version = <int16_t>be16(data, 6)
    if version < 0 or version > known.last + NEWER_VERSIONS:
        return LOOK_NO
    if in_span(&known.anonymous, version):
        return LOOK_YES if data.num >= 12 else LOOK_MORE
    if size < 10:
        return LOOK_NO
    if data.num < HEADER_BYTES:
        return LOOK_MORE
    client_len = <int16_t>be16(data, 12)
    if client_len < -1 or client_len > <int64_t>size - 10:
        return LOOK_NO
    num = client_len if client_len > 0 else 0
    if num > CLIENT_ID_LOOKED_AT:
        num = CLIENT_ID_LOOKED_AT
    for i in range(num):
        if HEADER_BYTES + i >= data.num:
            return LOOK_MORE
        if u8(data, HEADER_BYTES + i) < 0x20 or u8(data, HEADER_BYTES + i) == 0x7F:
            return LOOK_ODD
    return LOOK_YES


cdef inline bint begins(Span data, const char* text, size_t num) noexcept nogil:
    return data.num >= num and memcmp(data.at, text, num) == 0


cdef bint is_tls(Span data) noexcept nogil:
    """A TLS record: content type, then version 3.x (RFC 8446 5.1)."""
    return 0x14 <= u8(data, 0) <= 0x17 and u8(data, 1) == 3 and u8(data, 2) <= 4


cdef inline size_t agreement(const Beginning* begin, Span data) noexcept nogil:
    """Bytes that agree, from the first one on."""
    cdef size_t i, num = <size_t>begin.num if <size_t>begin.num < data.num else data.num
    for i in range(num):
        if (data.at[i] ^ begin.bytes[i]) & begin.mask[i]:
            return i
    return num


cdef int name_protocol(Span data, int side) noexcept nogil:
    """A value of Protocol for the first bytes of a stream that are not Kafka's: that of the longest beginning that they have.
    `side`: ASKS, ANSWERS or NEITHER."""
    cdef int i, longest = 0, protocol = PROTOCOL_OTHER
    if data.num == 0:
        return PROTOCOL_EMPTY
    if is_tls(data):
        return PROTOCOL_TLS
    for i in range(NUM_BEGINNINGS):
        if (beginnings[i].side + side != 1 and longest < beginnings[i].num <= <int>data.num
                and agreement(&beginnings[i], data) == <size_t>beginnings[i].num):
            longest = beginnings[i].num
            protocol = beginnings[i].protocol
    return protocol


cdef bint may_become(Span data, int side) noexcept nogil:
    """Whether more bytes could make a beginning of it."""
    cdef int i
    for i in range(NUM_BEGINNINGS):
        if (beginnings[i].side + side != 1 and <int>data.num < beginnings[i].num
                and agreement(&beginnings[i], data) == data.num):
            return True
    return False


cdef int name_midway(Span data) noexcept nogil:
    """The same of bytes from the middle of a stream, where what is inside of messages begins like many a protocol."""
    cdef int protocol = name_protocol(data, NEITHER)
    return protocol if protocol in (PROTOCOL_EMPTY, PROTOCOL_TLS, PROTOCOL_HTTP, PROTOCOL_SSH, PROTOCOL_PROXY) else PROTOCOL_OTHER


cdef bint is_surely(Span data, int protocol) noexcept nogil:
    """Whether bytes from the middle of a stream that begin like `protocol` are nothing else: a TLS record with a length
    that fits and another one behind it, or HTTP's version in the first line."""
    cdef size_t i
    cdef uint32_t num
    if protocol == PROTOCOL_TLS:
        num = be16(data, 3)
        if num == 0 or num > LONGEST_RECORD:
            return False
        return data.num <= 5 + num or 0x14 <= u8(data, 5 + num) <= 0x17 and (data.num == 6 + num or u8(data, 6 + num) == 3)
    if protocol == PROTOCOL_HTTP:
        for i in range(FIRST_LINE if data.num > FIRST_LINE else data.num):
            if data.at[i] == 10:
                break
            if begins(drop(data, i), b"HTTP/", 5):
                return True
    return False


cdef bint may_be_foreign(Span data) noexcept nogil:
    """A request of an API that Kafka does not have: vendors use keys from 500 on, with Kafka's own header."""
    cdef uint32_t i, num
    cdef int client_len = <int16_t>be16(data, 12)
    cdef uint32_t size = be32(data, 0)
    if data.num < 14 or <int16_t>be16(data, 4) < 0 or be16(data, 6) > MAX_VERSION or size < 10:
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


cdef int64_t measure_proxy_header(Span data) noexcept nogil:
    """Bytes of the PROXY protocol header that `data` begins with: 0 when there is none, -1 when it is not whole yet
    (The PROXY protocol, versions 1 and 2, HAProxy)."""
    cdef size_t i
    if begins(data, b"\r\n\r\n\x00\r\nQUIT\n", 12):
        if data.num < 16:
            return -1
        return 16 + <int64_t>be16(data, 14) if data.num >= 16 + be16(data, 14) else -1
    if not begins(data, b"PROXY ", 6):
        return 0
    for i in range(107 if data.num > 107 else data.num):
        if i and data.at[i] == 10 and data.at[i - 1] == 13:
            return <int64_t>i + 1
    return -1 if data.num < 107 else 0


cdef int32_t read_proxy_header(Span data, uint8_t* address, int32_t* port) noexcept nogil:
    """Writes the client's address (`address` has 48 bytes) and port; its length as text, 0 where the header names none."""
    cdef size_t at, num
    cdef int32_t number = 0
    cdef uint8_t[16] raw
    if u8(data, 0) == 13:
        memset(raw, 0, 16)
        if u8(data, 12) != 0x21:            # LOCAL: the proxy's own
            return 0
        if u8(data, 13) == 0x11 and be16(data, 14) >= 12:
            raw[10] = raw[11] = 0xFF
            copy_out(keep(drop(data, 16), 4), 0, &raw[12], 4)
            port[0] = <int32_t>be16(data, 24)
        elif u8(data, 13) == 0x21 and be16(data, 14) >= 36:
            copy_out(keep(drop(data, 16), 16), 0, raw, 16)
            port[0] = <int32_t>be16(data, 48)
        else:
            return 0
        return format_address(raw, address)
    if not begins(data, b"PROXY TCP4 ", 11) and not begins(data, b"PROXY TCP6 ", 11):
        return 0
    num = word_end(data, 11) - 11           # source, target, source's port
    if num == 0 or num > 45:
        return 0
    at = word_end(data, word_end(data, 11) + 1) + 1
    while at < data.num and 0x30 <= u8(data, at) <= 0x39 and number < 65536:
        number = 10 * number + <int32_t>u8(data, at) - 0x30
        at += 1
    if u8(data, at) != 0x20 or number > 65535:
        return 0
    copy_out(keep(drop(data, 11), num), 0, address, num)
    port[0] = number
    return <int32_t>num


cdef inline size_t word_end(Span data, size_t at) noexcept nogil:
    while at < data.num and u8(data, at) > 0x20:
        at += 1
    return at


cdef bint is_gssapi_token(Span data) noexcept nogil:
    """A frame that holds a GSS-API initial token and nothing else: clients of 0.9 send it without a handshake. After the
    tag 0x60 come its length (DER), then the mechanism: that of Kerberos 5 or of SPNEGO, or any other where the length
    agrees with the frame's (RFC 2743 3.1, RFC 4121 4.1, RFC 4178 4.2)."""
    cdef uint32_t size = be32(data, 0)
    cdef size_t at = 6
    cdef uint32_t length = u8(data, 5)
    if size < 16 or size > MAX_TOKEN or u8(data, 4) != 0x60:
        return False
    if length == 0x81:
        length, at = u8(data, 6), 7
    elif length == 0x82:
        length, at = be16(data, 6), 8
    elif length >= 0x80:
        return False
    if begins(drop(data, at), b"\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02", 11) or begins(drop(data, at), b"\x06\x06\x2b\x06\x01\x05\x05\x02", 8):
        return True
    return length + at - 4 == size
