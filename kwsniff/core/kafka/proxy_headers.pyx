# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""PROXY headers and other preambles of proxies and load balancers, skipped piece by piece.

Rules
  1. One piece at a time, wherever segments cut it: what is there of it is kept until it is whole, up to MOST_PIECE.
     What begins like none of these is left as it is.
  2. A tunnel is believed in only while both sides say what its protocol asks for. Where they do not, or the proxy refuses,
     nothing behind it is looked at.
  3. Its bytes count as not Kafka's.

    client | PROXY header | 05 n methods | 01 name password | 05 01 00 address port | Kafka
    broker                | 05 method    | 01 00            | 05 00 00 address port | Kafka

    client | PROXY header | CONNECT host:port HTTP/1.1 ... CR LF CR LF | Kafka
    broker                | HTTP/1.1 200 ...               CR LF CR LF | Kafka
                            or HTTP/1.1 407 ... CR LF CR LF content, and the client asks once more

Sources: The PROXY protocol, versions 1 and 2 (HAProxy); RFC 1928 3 to 6, RFC 1929 2; RFC 9110 9.3.6, 15.5.8, 8.6.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcmp

from kwsniff.core.declared cimport BIN_NOT_KAFKA
from kwsniff.core.kafka.kafka_connection cimport Context, KafkaConnection, count_bytes
from kwsniff.core.kafka.frames cimport EARLY, FRAMING_START, Framing
from kwsniff.core.kafka.protocol_heuristics cimport measure_proxy_header, read_proxy_header
from kwsniff.core.bytes.buffer cimport append, contents
from kwsniff.core.bytes.span cimport Span, be16, drop, keep, make_span, u8
from kwsniff.core.tcp.arrivals cimport Arrival

cdef enum:
    MORE = 0                # lengths of a piece that is not whole,
    NONE = -1               # and of what is none
    MOST_PIECE = 8192       # the header of a CONNECT and of its answer
    PROXY_LOOKED_AT = 52    # of a PROXY header: up to its addresses
    PASSWORD_METHOD = 2


cdef Span peel(Context* context, KafkaConnection* kafka, int direction, Arrival* arrival, int64_t* offset,
                 Span data) noexcept nogil:
    """What is behind the preamble in `data`; nothing while it is incomplete. `offset` moves along."""
    cdef Framing* framing = &kafka.framing[direction]
    cdef size_t before, num
    cdef int64_t length
    cdef int phase
    while data.num and kafka.phase[direction] < PHASE_PASSED:
        if kafka.preamble_left[direction]:
            num = keep(data, <size_t>kafka.preamble_left[direction]).num
            kafka.preamble_left[direction] -= <int64_t>num
            count_bytes(context, arrival.capture, BIN_NOT_KAFKA, <int64_t>num)
            offset[0] += <int64_t>num
            data = drop(data, num)
            continue
        before = framing.kept.len
        if before == 0:
            framing.first = arrival[0]
            framing.offset = offset[0]
            length = measure(kafka, direction, data, 0)
        else:
            if not keep_more(context, framing, keep(data, MOST_PIECE)):
                kafka.phase[direction] = PHASE_BROKEN
                return data
            length = measure(kafka, direction, contents(&framing.kept), before)
        if length == MORE:
            if before == 0 and not keep_more(context, framing, data):
                kafka.phase[direction] = PHASE_BROKEN
                return data
            note_early(framing, arrival.capture, <int64_t>data.num)
            return make_span(NULL, 0)
        if length == NONE:
            framing.kept.len = before
            kafka.phase[direction] = PHASE_PASSED if kafka.phase[direction] == PHASE_START else PHASE_BROKEN
            return data
        phase = take_piece(kafka, direction, contents(&framing.kept) if before else data)
        num = <size_t>length - before
        framing.kept.len = 0
        count_early(context, framing, BIN_NOT_KAFKA)
        count_bytes(context, arrival.capture, BIN_NOT_KAFKA, <int64_t>num)
        offset[0] += <int64_t>num
        data = drop(data, num)
        kafka.phase[direction] = phase
    return data


cdef void note_early(Framing* framing, int64_t capture, int64_t num) noexcept nogil:
    """`num` more bytes are kept, of this capture; of more than EARLY captures the last ones count as one."""
    cdef int last = framing.num_early - 1
    if last < 0 or framing.early_capture[last] != capture and last + 1 < <int>EARLY:
        last += 1
        framing.num_early += 1
        framing.early[last] = 0
        framing.early_capture[last] = capture
    framing.early[last] += num


cdef void count_early(Context* context, Framing* framing, int bin) noexcept nogil:
    """What was kept is part of nothing else."""
    cdef int i
    for i in range(framing.num_early):
        count_bytes(context, framing.early_capture[i], bin, framing.early[i])
    framing.num_early = 0


cdef bint keep_more(Context* context, Framing* framing, Span data) noexcept nogil:
    cdef bint ok
    context.kept_total -= <int64_t>framing.kept.cap
    ok = append(&framing.kept, data)
    context.kept_total += <int64_t>framing.kept.cap
    return ok


cdef inline bint agrees(Span data, const char* text, size_t num) noexcept nogil:
    """As far as both go."""
    return memcmp(data.at, text, num if num < data.num else data.num) == 0


cdef int64_t measure(KafkaConnection* kafka, int direction, Span data, size_t before) noexcept nogil:
    """Bytes of the next piece, MORE or NONE; `before` of `data` were not enough."""
    cdef int phase = kafka.phase[direction]
    cdef int64_t length
    if phase == PHASE_START:
        length = measure_start(kafka, direction, data, before)
    elif phase == PHASE_SOCKS_METHOD:
        length = 2 if u8(data, 0) == 5 else NONE
    elif phase == PHASE_SOCKS_STATUS:
        length = 2 if u8(data, 0) == 1 else NONE
    elif phase == PHASE_HTTP_ANSWER:
        length = measure_head(data, before) if agrees(data, b"HTTP/1.", 7) else NONE
    elif phase == PHASE_HTTP_AGAIN:
        length = measure_head(data, before) if agrees(data, b"CONNECT ", 8) else NONE
    elif phase == PHASE_SOCKS_ASKS and u8(data, 0) == 1:
        # Version, length and name, length and password: none of them is empty (RFC 1929 2).
        length = 3 + <int64_t>u8(data, 1)
        if <int64_t>data.num >= length:
            length += u8(data, <size_t>length - 1)
    else:
        length = measure_address(data)
    return MORE if <int64_t>data.num < length else length


cdef int64_t measure_start(KafkaConnection* kafka, int direction, Span data, size_t before) noexcept nogil:
    cdef int64_t length
    if not kafka.proxied and (agrees(data, b"\r\n\r\n\x00\r\nQUIT\n", 12) or agrees(data, b"PROXY ", 6)):
        if u8(data, 0) == 13:
            if data.num < 16:
                return MORE
            length = 16 + <int64_t>be16(data, 14)
            return length if length < PROXY_LOOKED_AT else PROXY_LOOKED_AT
        if data.num < 6:
            return MORE
        length = measure_proxy_header(data)
        return MORE if length < 0 else length if length else NONE
    if kafka.framing[1 - direction].state != FRAMING_START or kafka.phase[1 - direction] != PHASE_START:
        return NONE                     # the other side has spoken: no tunnel begins like this
    if agrees(data, b"CONNECT ", 8):
        return measure_head(data, before)
    if u8(data, 0) == 5:
        return measure_greeting(data)
    return NONE


cdef int64_t measure_greeting(Span data) noexcept nogil:
    """Version, and methods that there are (RFC 1928 3); a client that does not wait continues with a password or a request."""
    cdef size_t i, num = u8(data, 1)
    if data.num < 2:
        return MORE
    if num == 0:
        return NONE
    for i in range(keep(drop(data, 2), num).num):
        if 9 < u8(data, 2 + i) < 0x80 or u8(data, 2 + i) == 0xFF:
            return NONE
    if data.num > 2 + num and u8(data, 2 + num) not in (1, 5):
        return NONE
    return <int64_t>(2 + num)


cdef int64_t measure_address(Span data) noexcept nogil:
    """A request or a reply: version, command or reply, 0, kind of address, address, port (RFC 1928 4 to 6)."""
    cdef uint32_t kind = u8(data, 3)
    if u8(data, 0) != 5 or u8(data, 2) != 0:
        return NONE
    if data.num < 5:
        return MORE
    if kind == 1:
        return 10
    if kind == 4:
        return 22
    return 7 + <int64_t>u8(data, 4) if kind == 3 else NONE


cdef int64_t measure_head(Span data, size_t before) noexcept nogil:
    """HTTP's first line and fields, up to the empty line, which does not end in what was there before."""
    cdef size_t i
    for i in range(before if before > 3 else 3, keep(data, MOST_PIECE).num):
        if data.at[i] == 10 and data.at[i - 1] == 13 and data.at[i - 2] == 10 and data.at[i - 3] == 13:
            return <int64_t>i + 1
    return MORE if data.num < MOST_PIECE else NONE


cdef int take_piece(KafkaConnection* kafka, int direction, Span data) noexcept nogil:
    """Reads a piece that is whole. Returns what comes next."""
    cdef int phase = kafka.phase[direction]
    if phase == PHASE_START and u8(data, 0) == 5:
        kafka.carrier = CARRIER_SOCKS5
        kafka.phase[1 - direction] = PHASE_SOCKS_METHOD
        return PHASE_SOCKS_ASKS
    if phase == PHASE_START and u8(data, 0) == 0x43:
        kafka.carrier = CARRIER_CONNECT
        kafka.phase[1 - direction] = PHASE_HTTP_ANSWER
        return PHASE_PASSED
    if phase == PHASE_START:
        take_proxy_header(kafka, direction, data)
        return PHASE_START
    if phase == PHASE_HTTP_AGAIN:
        return PHASE_PASSED
    if phase == PHASE_SOCKS_ASKS:
        if u8(data, 0) == 1:
            return PHASE_SOCKS_ASKS
        return PHASE_PASSED if u8(data, 1) == 1 else PHASE_BROKEN       # CONNECT
    if phase == PHASE_SOCKS_METHOD:
        if u8(data, 1) == PASSWORD_METHOD:
            return PHASE_SOCKS_STATUS
        return PHASE_SOCKS_REPLY if u8(data, 1) == 0 else PHASE_BROKEN
    if phase == PHASE_SOCKS_STATUS:
        return PHASE_SOCKS_REPLY if u8(data, 1) == 0 else PHASE_BROKEN
    if phase == PHASE_SOCKS_REPLY:
        return PHASE_PASSED if u8(data, 1) == 0 else PHASE_BROKEN
    return PHASE_PASSED if u8(data, 8) == 0x20 and u8(data, 9) == 0x32 else take_refusal(kafka, direction, data)   # 2xx


cdef int take_refusal(KafkaConnection* kafka, int direction, Span data) noexcept nogil:
    """A proxy that wants a password keeps the connection for a client that asks again (RFC 9110 15.5.8)."""
    cdef Framing* asking = &kafka.framing[1 - direction]
    cdef int64_t content = measure_content(data)
    if (not agrees(drop(data, 8), b" 407", 4) or content < 0 or kafka.phase[1 - direction] != PHASE_PASSED
            or asking.state != FRAMING_START or asking.kept.len):
        return PHASE_BROKEN
    kafka.preamble_left[direction] = content
    kafka.phase[1 - direction] = PHASE_HTTP_AGAIN
    return PHASE_HTTP_ANSWER


cdef int64_t measure_content(Span head) noexcept nogil:
    """Bytes behind the fields, as they say; -1 where they do not."""
    cdef int64_t content = 0
    cdef size_t i
    while head.num > 1 and u8(head, 0) != 13:
        if begins_field(head, b"transfer-encoding:", 18):
            return -1
        if begins_field(head, b"content-length:", 15):
            content = read_length(drop(head, 15))
            if content < 0:
                return -1
        i = 0
        while i < head.num and head.at[i] != 10:
            i += 1
        head = drop(head, i + 1)
    return content


cdef inline bint begins_field(Span data, const char* name, size_t num) noexcept nogil:
    """Names of fields are the same in capitals."""
    cdef size_t i
    for i in range(num):
        if u8(data, i) | 0x20 != <uint32_t>name[i]:
            return False
    return True


cdef int64_t read_length(Span data) noexcept nogil:
    """Up to nine digits, blanks around them; -1 if there is anything else."""
    cdef int64_t number = 0
    cdef size_t i = 0, digits = 0
    while u8(data, i) == 32 or u8(data, i) == 9:
        i += 1
    while 48 <= u8(data, i) <= 57 and digits < 9:
        number = number * 10 + u8(data, i) - 48
        i += 1
        digits += 1
    while u8(data, i) == 32 or u8(data, i) == 9:
        i += 1
    return number if digits and u8(data, i) == 13 else -1


cdef void take_proxy_header(KafkaConnection* kafka, int direction, Span data) noexcept nogil:
    cdef int64_t length = 16 + <int64_t>be16(data, 14)
    kafka.proxied = True
    kafka.proxy_version = 2 if u8(data, 0) == 13 else 1
    kafka.proxied_len = read_proxy_header(data, kafka.proxied_address, &kafka.proxied_port)
    if u8(data, 0) == 13 and length > PROXY_LOOKED_AT:
        kafka.preamble_left[direction] = length - PROXY_LOOKED_AT
