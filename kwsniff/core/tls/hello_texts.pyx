# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Names of what hellos and alerts have as numbers: versions, cipher suites, alerts.

Rules
  1. What has no name here is shown as its number.

Source: names of suites: IANA's registry; alerts: RFC 8446 6, RFC 5246 7.2.
"""

from libc.stdint cimport uint8_t, uint16_t
from libc.string cimport memcpy

from kwsniff.core.bytes.span cimport Span, make_span

cdef enum:
    NUM_SUITES = 139

NAMES = {
    0x0001: b"TLS_RSA_WITH_NULL_MD5", 0x0002: b"TLS_RSA_WITH_NULL_SHA", 0x0004: b"TLS_RSA_WITH_RC4_128_MD5",
    0x0005: b"TLS_RSA_WITH_RC4_128_SHA", 0x000A: b"TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    0x0013: b"TLS_DHE_DSS_WITH_3DES_EDE_CBC_SHA", 0x0016: b"TLS_DHE_RSA_WITH_3DES_EDE_CBC_SHA",
    0x002F: b"TLS_RSA_WITH_AES_128_CBC_SHA", 0x0030: b"TLS_DH_DSS_WITH_AES_128_CBC_SHA",
    0x0031: b"TLS_DH_RSA_WITH_AES_128_CBC_SHA", 0x0032: b"TLS_DHE_DSS_WITH_AES_128_CBC_SHA",
    0x0033: b"TLS_DHE_RSA_WITH_AES_128_CBC_SHA", 0x0034: b"TLS_DH_anon_WITH_AES_128_CBC_SHA",
    0x0035: b"TLS_RSA_WITH_AES_256_CBC_SHA", 0x0036: b"TLS_DH_DSS_WITH_AES_256_CBC_SHA",
    0x0037: b"TLS_DH_RSA_WITH_AES_256_CBC_SHA", 0x0038: b"TLS_DHE_DSS_WITH_AES_256_CBC_SHA",
    0x0039: b"TLS_DHE_RSA_WITH_AES_256_CBC_SHA", 0x003A: b"TLS_DH_anon_WITH_AES_256_CBC_SHA",
    0x003B: b"TLS_RSA_WITH_NULL_SHA256", 0x003C: b"TLS_RSA_WITH_AES_128_CBC_SHA256",
    0x003D: b"TLS_RSA_WITH_AES_256_CBC_SHA256", 0x003E: b"TLS_DH_DSS_WITH_AES_128_CBC_SHA256",
    0x003F: b"TLS_DH_RSA_WITH_AES_128_CBC_SHA256", 0x0040: b"TLS_DHE_DSS_WITH_AES_128_CBC_SHA256",
    0x0067: b"TLS_DHE_RSA_WITH_AES_128_CBC_SHA256", 0x0068: b"TLS_DH_DSS_WITH_AES_256_CBC_SHA256",
    0x0069: b"TLS_DH_RSA_WITH_AES_256_CBC_SHA256", 0x006A: b"TLS_DHE_DSS_WITH_AES_256_CBC_SHA256",
    0x006B: b"TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", 0x006C: b"TLS_DH_anon_WITH_AES_128_CBC_SHA256",
    0x006D: b"TLS_DH_anon_WITH_AES_256_CBC_SHA256", 0x008C: b"TLS_PSK_WITH_AES_128_CBC_SHA",
    0x008D: b"TLS_PSK_WITH_AES_256_CBC_SHA", 0x0090: b"TLS_DHE_PSK_WITH_AES_128_CBC_SHA",
    0x0091: b"TLS_DHE_PSK_WITH_AES_256_CBC_SHA", 0x0094: b"TLS_RSA_PSK_WITH_AES_128_CBC_SHA",
    0x0095: b"TLS_RSA_PSK_WITH_AES_256_CBC_SHA", 0x009C: b"TLS_RSA_WITH_AES_128_GCM_SHA256",
    0x009D: b"TLS_RSA_WITH_AES_256_GCM_SHA384", 0x009E: b"TLS_DHE_RSA_WITH_AES_128_GCM_SHA256",
    0x009F: b"TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", 0x00A0: b"TLS_DH_RSA_WITH_AES_128_GCM_SHA256",
    0x00A1: b"TLS_DH_RSA_WITH_AES_256_GCM_SHA384", 0x00A2: b"TLS_DHE_DSS_WITH_AES_128_GCM_SHA256",
    0x00A3: b"TLS_DHE_DSS_WITH_AES_256_GCM_SHA384", 0x00A4: b"TLS_DH_DSS_WITH_AES_128_GCM_SHA256",
    0x00A5: b"TLS_DH_DSS_WITH_AES_256_GCM_SHA384", 0x00A6: b"TLS_DH_anon_WITH_AES_128_GCM_SHA256",
    0x00A7: b"TLS_DH_anon_WITH_AES_256_GCM_SHA384", 0x00A8: b"TLS_PSK_WITH_AES_128_GCM_SHA256",
    0x00A9: b"TLS_PSK_WITH_AES_256_GCM_SHA384", 0x00AA: b"TLS_DHE_PSK_WITH_AES_128_GCM_SHA256",
    0x00AB: b"TLS_DHE_PSK_WITH_AES_256_GCM_SHA384", 0x00AC: b"TLS_RSA_PSK_WITH_AES_128_GCM_SHA256",
    0x00AD: b"TLS_RSA_PSK_WITH_AES_256_GCM_SHA384", 0x00AE: b"TLS_PSK_WITH_AES_128_CBC_SHA256",
    0x00AF: b"TLS_PSK_WITH_AES_256_CBC_SHA384", 0x00B2: b"TLS_DHE_PSK_WITH_AES_128_CBC_SHA256",
    0x00B3: b"TLS_DHE_PSK_WITH_AES_256_CBC_SHA384", 0x00B6: b"TLS_RSA_PSK_WITH_AES_128_CBC_SHA256",
    0x00B7: b"TLS_RSA_PSK_WITH_AES_256_CBC_SHA384", 0x00C6: b"TLS_SM4_GCM_SM3", 0x00C7: b"TLS_SM4_CCM_SM3",
    0x1301: b"TLS_AES_128_GCM_SHA256", 0x1302: b"TLS_AES_256_GCM_SHA384", 0x1303: b"TLS_CHACHA20_POLY1305_SHA256",
    0x1304: b"TLS_AES_128_CCM_SHA256", 0x1305: b"TLS_AES_128_CCM_8_SHA256",
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
    0xC035: b"TLS_ECDHE_PSK_WITH_AES_128_CBC_SHA", 0xC036: b"TLS_ECDHE_PSK_WITH_AES_256_CBC_SHA",
    0xC037: b"TLS_ECDHE_PSK_WITH_AES_128_CBC_SHA256", 0xC038: b"TLS_ECDHE_PSK_WITH_AES_256_CBC_SHA384",
    0xC09C: b"TLS_RSA_WITH_AES_128_CCM", 0xC09D: b"TLS_RSA_WITH_AES_256_CCM", 0xC09E: b"TLS_DHE_RSA_WITH_AES_128_CCM",
    0xC09F: b"TLS_DHE_RSA_WITH_AES_256_CCM", 0xC0A0: b"TLS_RSA_WITH_AES_128_CCM_8",
    0xC0A1: b"TLS_RSA_WITH_AES_256_CCM_8", 0xC0A2: b"TLS_DHE_RSA_WITH_AES_128_CCM_8",
    0xC0A3: b"TLS_DHE_RSA_WITH_AES_256_CCM_8", 0xC0A4: b"TLS_PSK_WITH_AES_128_CCM", 0xC0A5: b"TLS_PSK_WITH_AES_256_CCM",
    0xC0A6: b"TLS_DHE_PSK_WITH_AES_128_CCM", 0xC0A7: b"TLS_DHE_PSK_WITH_AES_256_CCM",
    0xC0A8: b"TLS_PSK_WITH_AES_128_CCM_8", 0xC0A9: b"TLS_PSK_WITH_AES_256_CCM_8",
    0xC0AA: b"TLS_PSK_DHE_WITH_AES_128_CCM_8", 0xC0AB: b"TLS_PSK_DHE_WITH_AES_256_CCM_8",
    0xC0AC: b"TLS_ECDHE_ECDSA_WITH_AES_128_CCM", 0xC0AD: b"TLS_ECDHE_ECDSA_WITH_AES_256_CCM",
    0xC0AE: b"TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", 0xC0AF: b"TLS_ECDHE_ECDSA_WITH_AES_256_CCM_8",
    0xC0B0: b"TLS_ECCPWD_WITH_AES_128_GCM_SHA256", 0xC0B1: b"TLS_ECCPWD_WITH_AES_256_GCM_SHA384",
    0xC0B2: b"TLS_ECCPWD_WITH_AES_128_CCM_SHA256", 0xC0B3: b"TLS_ECCPWD_WITH_AES_256_CCM_SHA384",
    0xC0FF: b"TLS_ECJPAKE_WITH_AES_128_CCM_8",
    0xCCA8: b"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", 0xCCA9: b"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    0xCCAA: b"TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256", 0xCCAB: b"TLS_PSK_WITH_CHACHA20_POLY1305_SHA256",
    0xCCAC: b"TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256", 0xCCAD: b"TLS_DHE_PSK_WITH_CHACHA20_POLY1305_SHA256",
    0xCCAE: b"TLS_RSA_PSK_WITH_CHACHA20_POLY1305_SHA256", 0xD001: b"TLS_ECDHE_PSK_WITH_AES_128_GCM_SHA256",
    0xD002: b"TLS_ECDHE_PSK_WITH_AES_256_GCM_SHA384", 0xD003: b"TLS_ECDHE_PSK_WITH_AES_128_CCM_8_SHA256",
    0xD005: b"TLS_ECDHE_PSK_WITH_AES_128_CCM_SHA256",
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

cdef Span[256] alert_names

cdef struct Suite:
    uint16_t number
    Span name

cdef Suite[NUM_SUITES] suites


cdef name_suites():
    cdef bytes name
    cdef int place
    if len(NAMES) != NUM_SUITES:
        raise AssertionError(f"{len(NAMES)} cipher suites, {<int>NUM_SUITES} places")
    for place, (number, name) in enumerate(NAMES.items()):
        suites[place].number = number
        suites[place].name = make_span(<const uint8_t*><const char*>name, len(name))  # the dict keeps the bytes


name_suites()


cdef Span hex_text(uint16_t number, uint8_t* room) noexcept nogil:
    """0x and four digits; `room` has 8 bytes."""
    cdef const char* digits = b"0123456789abcdef"
    cdef int i
    memcpy(room, b"0x", 2)
    for i in range(4):
        room[2 + i] = <uint8_t>digits[number >> (12 - 4 * i) & 15]
    return make_span(room, 6)


cdef name_alerts():
    for number, text in ALERTS.items():
        alert_names[<int>number] = make_span(<const uint8_t*><const char*>(<bytes>text), len(text))


name_alerts()


cdef Span name_alert(int number, uint8_t* room) noexcept nogil:
    """The alert's name (RFC 8446 6, RFC 5246 7.2), or its number. `room` has 8 bytes."""
    if alert_names[number & 0xFF].num:
        return alert_names[number & 0xFF]
    return hex_text(<uint16_t>number, room)


cdef Span name_version(uint16_t version, uint8_t* room) noexcept nogil:
    """1.3 for 0x0304 and so on. `room` has 8 bytes."""
    if 0x0301 <= version <= 0x0304:
        memcpy(room, b"1.0", 3)
        room[2] += <uint8_t>(version - 0x0301)
        return make_span(room, 3)
    if version == 0x0300:
        memcpy(room, b"SSL 3.0", 7)
        return make_span(room, 7)
    return hex_text(version, room)


cdef Span name_suite(uint16_t number, uint8_t* room) noexcept nogil:
    """IANA's name of the suite, or its number. `room` has 8 bytes."""
    cdef int i
    for i in range(NUM_SUITES):
        if suites[i].number == number:
            return suites[i].name
    return hex_text(number, room)
