# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Which packet brought which byte of the plaintext that several packets completed together.

Rules
  1. Every byte comes with time and frame of the packet that its encrypted byte was in, the last byte of a record with
     its last packet: before that, nobody could read the record.
  2. Where records begin is known from a segment on that begins with one; what tshark says of each must lie in what was
     captured, or the plaintext comes with the packet that completed it.
  3. What other packets brought is passed to the streams as segments of its own. As packets they were passed, and
     counted, when they came.

    packets    [  1  ][  2  ][  3  ]
    records  [ a ][ b         ][ c ...
               5 bytes of header, then (about) the plaintext, then tag and padding

Source: RFC 8446 5.2, 5246 6.2.3.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memset

from kwsniff.core.octets.buffer cimport append_raw, contents
from kwsniff.core.octets.octets cimport Octets, copy_out, drop, keep, u8
from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.tcp.segments cimport distance
from kwsniff.core.tcp.streams cimport take_segment
from kwsniff.core.tls.sessions cimport Carrier, Piece, Plaintext, Record, Share, Side, TlsSession, drop_front

cdef enum:
    MOST_CARRIERS = 256         # segments that records under way are in; of what came before, the first one kept counts
    RECORD_HEADER = 5


cdef void pass_on(Plaintext* plaintext, Segment* segment) noexcept nogil:
    plaintext.reader.payload_bytes += <int64_t>segment.payload.num
    take_segment(plaintext.streams, segment)


cdef void pass_share(Plaintext* plaintext, Side* own, Segment* segment, Octets data, uint32_t lost) noexcept nogil:
    segment.seq = own.plain_end
    segment.payload = data if data.num else keep(segment.payload, 0)       # what is empty has an address, too
    segment.length = <uint32_t>data.num + lost
    own.plain_end += segment.length
    pass_on(plaintext, segment)


cdef void anchor(Side* own, Segment* segment) noexcept nogil:
    """Where records begin is found again at a segment in its order that begins as a record does."""
    if not own.anchored and distance(segment.seq, own.cipher_end) == 0 and begins_record(segment.payload):
        own.anchored = True
        own.records_at = segment.seq
        own.carriers.len = 0


cdef Record record_at(Piece* piece, size_t number) noexcept nogil:
    cdef Record record
    memset(&record, 0, sizeof(Record))
    copy_out(piece.records, number * sizeof(Record), &record, sizeof(Record))
    return record


cdef inline bint begins_record(Octets data) noexcept nogil:
    return 0x14 <= u8(data, 0) <= 0x17 and u8(data, 1) == 3 and u8(data, 2) <= 4


cdef bint is_placed(Side* own, Segment* segment, Piece* piece) noexcept nogil:
    """Whether it is known where these records lie: the last one must end in the segment that completed it."""
    cdef uint32_t end = own.records_at + piece.length
    own.anchored = own.anchored and distance(end, segment.seq) > 0 and distance(end, own.cipher_end) <= 0
    return own.anchored


cdef inline Carrier carrier_at(Side* own, size_t number) noexcept nogil:
    cdef Carrier carrier
    memset(&carrier, 0, sizeof(Carrier))
    copy_out(contents(&own.carriers), number * sizeof(Carrier), &carrier, sizeof(Carrier))
    return carrier


cdef void note_carrier(Plaintext* plaintext, Side* own, Segment* segment, uint32_t end) noexcept nogil:
    """Keeps where the segment lies, behind those that the stream has before it."""
    cdef Carrier carrier
    cdef Carrier* carriers
    cdef size_t i
    if own.carriers.len >= MOST_CARRIERS * sizeof(Carrier):
        drop_front(&own.carriers, MOST_CARRIERS // 2 * sizeof(Carrier))
    i = own.carriers.len // sizeof(Carrier)
    carrier.start = segment.seq
    carrier.end = end
    carrier.frame = segment.frame
    carrier.time = segment.time
    if not append_raw(&own.carriers, &carrier, sizeof(Carrier)):
        plaintext.streams.no_memory = True
        return
    carriers = <Carrier*>own.carriers.data
    while i and distance(carriers[i - 1].start, carrier.start) > 0:
        carriers[i] = carriers[i - 1]
        carriers[i - 1] = carrier
        i -= 1


cdef void forget_carriers(Side* own) noexcept nogil:
    """Segments whose records are all complete."""
    cdef size_t passed = 0, num = own.carriers.len // sizeof(Carrier)
    cdef uint32_t to = own.records_at if own.anchored else own.opened
    while passed < num and distance(carrier_at(own, passed).end, to) <= 0:
        passed += 1
    drop_front(&own.carriers, passed * sizeof(Carrier))


cdef void spread(Plaintext* plaintext, TlsSession* session, Side* own, Segment* segment, Piece* piece) noexcept nogil:
    """Every byte comes with the packet that brought it encrypted, the last one of a record with its last packet."""
    cdef Share share
    cdef Record record
    cdef uint32_t at = own.records_at
    cdef size_t i
    share.segment = segment
    share.rest = piece.data
    share.carrier = 0
    share.num = 0
    share.passed = False
    for i in range(piece.records.num // sizeof(Record)):
        record = record_at(piece, i)
        if record.plain:
            give(plaintext, session, own, &share, at + RECORD_HEADER, record.plain - 1)
            give(plaintext, session, own, &share, at + record.length - 1, 1)
        at += record.length
    pass_collected(plaintext, session, own, &share)
    if plaintext.current == session and not share.passed:
        pass_share(plaintext, own, segment, share.rest, 0)


cdef void give(Plaintext* plaintext, TlsSession* session, Side* own, Share* share, uint32_t at, uint32_t num) noexcept nogil:
    """Shares out the next `num` bytes, whose encrypted ones begin at `at`."""
    cdef uint32_t take
    while num and plaintext.current == session:
        take = carrier_at(own, share.carrier).end - at
        if (share.carrier + 1) * sizeof(Carrier) >= own.carriers.len:
            take = num
        elif <int32_t>take <= 0:
            pass_collected(plaintext, session, own, share)
            share.carrier += 1
            continue
        if take > num:
            take = num
        share.num += take
        at += take
        num -= take


cdef void pass_collected(Plaintext* plaintext, TlsSession* session, Side* own, Share* share) noexcept nogil:
    """Passes what one packet brought. Those that came before were passed as packets then, and are not counted again."""
    cdef Segment other
    cdef Carrier carrier
    cdef Octets data = keep(share.rest, share.num)
    if share.num == 0 or plaintext.current != session:
        return
    share.rest = drop(share.rest, share.num)
    share.num = 0
    carrier = carrier_at(own, share.carrier)
    if carrier.frame == share.segment.frame and not share.passed:
        share.passed = True
        pass_share(plaintext, own, share.segment, data, 0)
        return
    other = share.segment[0]
    other.frame = carrier.frame
    other.time = carrier.time
    other.flags = 0
    other.mark = 0              # the packet itself was taken already, but is no copy
    plaintext.extra = True
    pass_share(plaintext, own, &other, data, 0)
    plaintext.extra = False
