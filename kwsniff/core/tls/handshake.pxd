# cython: language_level=3
# How far a TLS handshake came, as kinds and lengths of records show it without keys.
#
# Rule 1: up to TLS 1.2 handshake messages are in the clear until change_cipher_spec; behind it the one that follows is
#         Finished. Of TLS 1.3 what follows the ServerHello looks like data; the first record of the client that is longer
#         than an alert ends its part.
# Rule 2: an encrypted alert of TLS 1.3 has ALERT_SEALED bytes, or ALERT_PADDED from the JDK: no handshake message's record
#         has as many.
# Rule 3: what this file keeps is raw; what it means depends on the version, which is known later (`how_far`).
#
#     client  [22 hello]                       [20][23 Finished][23 data
#     broker             [22 hello][20][23 ...]                         [23 ticket, data; or alert: refused
#
# Source: RFC 8446 2, 5.2, 6; RFC 5246 7.2, 7.3, 7.4.6.

from libc.stdint cimport int64_t, uint8_t, uint32_t

from kwsniff.core.bytes.span cimport Span, be32, drop, keep, make_span, u8

cdef enum:
    ALERT_SEALED = 19           # level, description, kind of record, tag of 16 bytes
    ALERT_PADDED = 35           # the same behind 16 bytes of padding
    CERTIFICATE = 11            # types of messages
    CLIENT_KEY_EXCHANGE = 16
    EMPTY_CERTIFICATE = 3       # length of one without any certificate (RFC 5246 7.4.2)

# What one side sent.
cdef struct Steps:
    bint changed                # change_cipher_spec
    int64_t finished            # handshake records behind it
    bint sealed_alert           # an alert behind it, which is encrypted
    int64_t num                 # records that look like data,
    int64_t num_long            # those longer than an alert,
    uint32_t first_long         # the length of the first of these
    int64_t behind              # of both, how many came after the other side's first long one
    int64_t behind_long
    uint8_t head[4]             # of the current handshake message, in the clear,
    uint32_t head_num
    uint32_t left               # and bytes of its body that have not come
    bint key_exchange           # a ClientKeyExchange message
    bint certificate            # a Certificate message,
    bint empty_certificate      # with nothing in it
    uint8_t alert[2]            # in the clear,
    uint32_t alert_num


cdef inline void take_data_record(Steps* own, Steps* other, uint32_t length) noexcept nogil:
    cdef bint is_long = length != ALERT_SEALED and length != ALERT_PADDED
    own.num += 1
    own.num_long += is_long
    if is_long and own.first_long == 0:
        own.first_long = length
    if other.num_long:
        own.behind += 1
        own.behind_long += is_long


cdef inline void take_clear_handshake(Steps* own, Span data) noexcept nogil:
    """The next bytes of handshake messages in the clear."""
    cdef size_t num
    while data.num:
        if own.left:
            num = keep(data, own.left).num
            own.left -= <uint32_t>num
            data = drop(data, num)
            continue
        own.head[own.head_num] = <uint8_t>u8(data, 0)
        own.head_num += 1
        data = drop(data, 1)
        if own.head_num < 4:
            continue
        own.head_num = 0
        own.left = be32(make_span(own.head, 4), 0) & 0xFFFFFF
        if own.head[0] == CLIENT_KEY_EXCHANGE:
            own.key_exchange = True
        elif own.head[0] == CERTIFICATE:
            own.certificate = True
            own.empty_certificate = own.left <= EMPTY_CERTIFICATE
