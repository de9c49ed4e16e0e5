# cython: language_level=3
# What became of a TLS handshake: how far it came, who ended it by an alert, whether the client had a certificate.
#
# Rule 1: there is no outcome of a handshake of which bytes are missing, nor without a ClientHello.
# Rule 2: an alert in the clear, or one that was opened, has its name; of others only the length tells, and who sent it.
#         One that closes a connection whose handshake is complete is none of a handshake.
#
# Source: RFC 8446 4.4, 6; RFC 5246 7.2, 7.4.

from kwsniff.core.declared cimport (
    TLS_CLIENT_CERTIFICATE_NONE, TLS_CLIENT_CERTIFICATE_SENT, TLS_CLIENT_CERTIFICATE_UNSEEN,
    TLS_HANDSHAKE_CLIENT_FINISHED, TLS_HANDSHAKE_CLIENT_HELLO, TLS_HANDSHAKE_CLIENT_KEY, TLS_HANDSHAKE_COMPLETE,
    TLS_HANDSHAKE_SERVER_HELLO, TLS_HANDSHAKE_UNSEEN,
)
from kwsniff.core.tls.hello cimport Hello
from kwsniff.core.tls.handshake cimport Steps

cdef enum:
    NO_ALERT = -1
    ENCRYPTED_ALERT = 256       # its description is not known
    CLOSE_NOTIFY = 0
    FATAL_LEVEL = 2
    TLS_1_3 = 0x0304
    # Records of TLS 1.3 with an empty Certificate message: alone, or with Finished of SHA-256 or SHA-384 behind it. The
    # JDK adds 16 bytes of padding to each.
    EMPTY_ALONE = 25
    EMPTY_SHA256 = 61
    EMPTY_SHA384 = 77
    PADDING = 16
    LEAST_CERTIFICATE = 200     # of records that can only be a certificate


cdef inline bint is_newest(Hello* hello) noexcept nogil:
    return hello.version_known and hello.version >= TLS_1_3


cdef inline int how_far(Hello* hello) noexcept nogil:
    """TlsHandshake."""
    cdef Steps* asks
    cdef Steps* answers
    if not hello.greeted or hello.client < 0:
        return TLS_HANDSHAKE_UNSEEN
    asks = &hello.side[hello.client].records.steps
    answers = &hello.side[1 - hello.client].records.steps
    if is_newest(hello) and answers.behind_long or asks.finished and answers.finished:
        return TLS_HANDSHAKE_COMPLETE
    if hello.side[0].records.torn or hello.side[1].records.torn:
        return TLS_HANDSHAKE_UNSEEN
    if not hello.cipher_known:
        return TLS_HANDSHAKE_CLIENT_HELLO
    if is_newest(hello):
        return TLS_HANDSHAKE_CLIENT_FINISHED if asks.num_long else TLS_HANDSHAKE_SERVER_HELLO
    if asks.finished:
        return TLS_HANDSHAKE_CLIENT_FINISHED
    return TLS_HANDSHAKE_CLIENT_KEY if asks.key_exchange else TLS_HANDSHAKE_SERVER_HELLO


cdef inline bint has_sealed_alert(Hello* hello, int side) noexcept nogil:
    """Whether an encrypted alert of this endpoint is where the handshake should have continued."""
    cdef Steps* own = &hello.side[side].records.steps
    if not is_newest(hello):
        return own.sealed_alert
    if side == hello.client:
        return own.num and not own.num_long
    return own.behind and not own.behind_long


cdef inline int alert_in_handshake(Hello* hello, int* by) noexcept nogil:
    """The description of the alert that ended it, ENCRYPTED_ALERT or NO_ALERT; `by`: the endpoint that sent it."""
    cdef Steps* own
    cdef int i, far = how_far(hello)
    if hello.alert >= 0:
        by[0] = hello.alert_by
        return hello.alert
    if far == TLS_HANDSHAKE_UNSEEN or far == TLS_HANDSHAKE_COMPLETE:
        return NO_ALERT
    for i in range(2):
        own = &hello.side[i].records.steps
        if own.alert_num == 2 and (own.alert[0] == FATAL_LEVEL or own.alert[1] == CLOSE_NOTIFY):
            by[0] = i
            return own.alert[1]
    for i in range(2):
        if has_sealed_alert(hello, i):
            by[0] = i
            return ENCRYPTED_ALERT
    return NO_ALERT


cdef inline int client_certificate(Hello* hello) noexcept nogil:
    """TlsClientCertificate."""
    cdef Steps* asks
    if how_far(hello) == TLS_HANDSHAKE_UNSEEN:
        return TLS_CLIENT_CERTIFICATE_UNSEEN
    asks = &hello.side[hello.client].records.steps
    if asks.certificate:
        return TLS_CLIENT_CERTIFICATE_NONE if asks.empty_certificate else TLS_CLIENT_CERTIFICATE_SENT
    if not is_newest(hello):
        return TLS_CLIENT_CERTIFICATE_UNSEEN
    if asks.first_long in (EMPTY_ALONE, EMPTY_ALONE + PADDING, EMPTY_SHA256, EMPTY_SHA384, EMPTY_SHA384 + PADDING):
        return TLS_CLIENT_CERTIFICATE_NONE
    return TLS_CLIENT_CERTIFICATE_SENT if asks.first_long >= LEAST_CERTIFICATE else TLS_CLIENT_CERTIFICATE_UNSEEN
