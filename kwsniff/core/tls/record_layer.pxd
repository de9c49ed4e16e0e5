# cython: language_level=3
# Where records begin, and how many with data went by: what TLS shows of its traffic without keys.
#
# Rule 1: a record counts once its header is there. Where bytes are missing, those of which nothing is there do not.
# Rule 2: records in the clear are looked into for the steps of a handshake (handshake.pxd).
# Rule 3: after a hole that ends inside the current record, counting continues; after others with the first packet that
#         begins like a record, and has another one behind it if there is room.
#
#     [ 23 3 3 length ][ ... ][ 23 3 3 length ][ ...        header: type, version 3.x, length of what follows
#
# Source: RFC 8446 5.1 and 5.2; RFC 5246 6.2.

from libc.stdint cimport int64_t, uint8_t, uint32_t

from kwsniff.core.bytes.span cimport Span, be16, drop, keep, make_span, u8
from kwsniff.core.tls.handshake cimport Steps, take_clear_handshake, take_data_record

cdef enum:
    RECORD_HEADER = 5
    LONGEST_RECORD = 18437  # 2^14 + 2048 and its header (RFC 5246 6.2.3)
    RECORD_CHANGE = 20      # types of records: change_cipher_spec,
    RECORD_ALERT = 21
    RECORD_HANDSHAKE = 22
    RECORD_DATA = 23
    ALERT_BYTES = 2         # of an alert in the clear: level, description

cdef struct Records:
    int64_t num             # with data, as far as their headers say
    Steps steps
    uint8_t head[5]         # of the current header,
    uint32_t head_num
    uint32_t left           # and bytes of the record that have not come
    bint lost               # it is unknown where the next one begins
    bint torn               # bytes were missing: the steps are not all there


cdef inline bint begins_record(Span data) noexcept nogil:
    """Whether five bytes of a record's header are here."""
    return (RECORD_CHANGE <= u8(data, 0) <= RECORD_DATA and u8(data, 1) == 3 and u8(data, 2) <= 4
            and 0 < be16(data, 3) <= LONGEST_RECORD - RECORD_HEADER)


cdef inline bint is_begun(Span data) noexcept nogil:
    """Whether a record seems to begin here: one that has another one, or nothing yet, behind it."""
    cdef Span rest = drop(data, RECORD_HEADER + be16(data, 3))
    return data.num >= RECORD_HEADER and begins_record(data) and (rest.num < RECORD_HEADER or begins_record(rest))


cdef inline void begin_record(Records* records, Steps* other) noexcept nogil:
    """A header is whole."""
    cdef Steps* own = &records.steps
    cdef int kind = records.head[0]
    records.num += kind == RECORD_DATA
    if kind == RECORD_DATA:
        take_data_record(own, other, records.left)
    elif kind == RECORD_CHANGE:
        own.changed = True
    elif kind == RECORD_HANDSHAKE:
        own.finished += own.changed
    elif records.left > ALERT_BYTES:
        own.sealed_alert = True
    else:
        own.alert_num = 0


cdef inline void look_into(Records* records, Span part) noexcept nogil:
    """Bytes of the current record."""
    cdef Steps* own = &records.steps
    if records.head[0] == RECORD_HANDSHAKE and not own.changed:
        take_clear_handshake(own, part)
    elif records.head[0] == RECORD_ALERT:
        while part.num and own.alert_num < ALERT_BYTES:
            own.alert[own.alert_num] = <uint8_t>u8(part, 0)
            own.alert_num += 1
            part = drop(part, 1)


cdef inline void count_records(Records* records, Steps* other, Span data) noexcept nogil:
    """The next bytes of a direction, as packets brought them; `other`: what the other one said."""
    cdef Span part
    if records.lost and not is_begun(data):
        return
    records.lost = False
    while data.num:
        if records.left:
            part = keep(data, records.left)
            if records.head[0] != RECORD_DATA:
                look_into(records, part)
            records.left -= <uint32_t>part.num
            data = drop(data, part.num)
            continue
        records.head[records.head_num] = <uint8_t>u8(data, 0)
        records.head_num += 1
        data = drop(data, 1)
        if records.head_num < RECORD_HEADER:
            continue
        records.head_num = 0
        if not begins_record(make_span(records.head, RECORD_HEADER)):
            records.lost = True
            return
        records.left = be16(make_span(records.head, RECORD_HEADER), 3)
        begin_record(records, other)


cdef inline void miss_records(Records* records, int64_t num) noexcept nogil:
    """`num` bytes are missing; -1: an unknown number."""
    records.torn = True
    if 0 <= num <= <int64_t>records.left:
        records.left -= <uint32_t>num
        return
    records.lost = True
    records.left = records.head_num = 0
