# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""What the header of a batch says of its records; records.pyx has read it.

Rules
  1. Nothing is decompressed: how long a batch would be is known where the codec's own frames say so.
  2. Frames that do not fill the batch to its last byte show nothing: a part is not a size.
  3. A producer without an id has no epoch and no sequence either.
  4. A message of format 0 or 1 that is compressed hides how many records it holds.
  5. Whether records have keys, the first one says; those of a compressed batch are not looked at.

Numbers are little-endian but for the sizes of snappy's blocks and the two magics; what is in brackets, flags announce.

    gzip    | ... | length u32 |
    snappy  | 82 "SNAPPY" 00 | versions 8 | (size u32 | block)* |, or one bare block;  block: | length varint | ... |
    lz4     | 04224D18 | flags | block size | [length u64] | [dictionary u32] | check | (size u32 | block | [check u32])*
            | 0 u32 | [check u32] |
    zstd    | 28B52FFD | flags | [window] | [dictionary 1, 2, 4] | [length 1, 2, 4, 8] | (header u24 | block)*
            | [check u32] |
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from kwsniff.core.bytes.known cimport Known, know
from kwsniff.core.bytes.span cimport Span, be16, be32, be64, drop, has, keep, u8, wipe
from kwsniff.core.wire.records cimport RECORD_CODEC_BITS, Batch

cdef enum:
    BATCH_HEADER = 61
    UNKNOWN_LENGTH = -1
    CONTROL = 0x20
    MOST_BEFORE_KEY = 21     # bytes: varints of 5, 10 and 5, and the attributes

cdef extern from *:
    """
    #define XERIAL 0x82534E4150505900ULL
    #define MOST_LENGTH (1LL << 40)
    #define NO_KEY 0xFFFFFFFFu
    """
    const uint64_t XERIAL           # how the streams of snappy-java begin
    const uint32_t NO_KEY
    const int64_t MOST_LENGTH       # what is said to be longer is not believed


cdef void describe_batch(Span records, Batch* batch, BatchHit* hit) noexcept nogil:
    """`records`: the set that `batch` was read from."""
    cdef int codec = batch.attributes & RECORD_CODEC_BITS
    wipe(hit, sizeof(BatchHit))
    hit.bytes = batch.size
    hit.base_offset = batch.base_offset
    hit.magic = batch.magic
    hit.crc = batch.stored_crc
    hit.attributes = batch.attributes & 0xFFFF
    hit.producer_epoch = -1
    hit.base_sequence = -1
    know(&hit.last_offset, batch.base_offset + batch.last_offset_delta)
    if batch.magic == 2 or codec == 0:
        know(&hit.records, batch.count)
    if batch.magic >= 1:
        know(&hit.first_timestamp, batch.base_timestamp)
        know(&hit.max_timestamp, batch.max_timestamp)
    if batch.producer_id >= 0:
        know(&hit.producer_id, batch.producer_id)
        hit.producer_epoch = batch.producer_epoch
        hit.base_sequence = batch.base_sequence
    if codec == 0:
        know(&hit.uncompressed, batch.size)
        hit.key = find_key(keep(drop(records, batch.payload), batch.size - (batch.payload - batch.offset)), batch)
    elif batch.magic == 2:
        measure_compressed(keep(drop(records, batch.payload), batch.size - BATCH_HEADER), codec, &hit.uncompressed)


cdef inline FirstKey find_key(Span payload, Batch* batch) noexcept nogil:
    """Whether the first record has a key; `payload`: what is behind the header, or a message's attributes byte on."""
    cdef size_t at = 9 if batch.magic == 1 else 1
    cdef int fields
    if batch.magic < 2:
        if not has(payload, at, 4):
            return FIRST_KEY_UNKNOWN
        if be32(payload, at) >> 31 == 0:
            return FIRST_KEY_SET
        return FIRST_KEY_NONE if be32(payload, at) == NO_KEY else FIRST_KEY_UNKNOWN
    if batch.count <= 0 or batch.attributes & CONTROL:
        return FIRST_KEY_UNKNOWN
    # length varint | attributes 8 | timestamp varint | offset varint | length of the key varint
    at = 0
    for fields in range(4):
        while fields != 1 and u8(payload, at) >= 0x80 and at < MOST_BEFORE_KEY:
            at += 1
        at += 1
    if at >= payload.num or at > MOST_BEFORE_KEY:
        return FIRST_KEY_UNKNOWN
    if u8(payload, at) & 1 == 0:
        return FIRST_KEY_SET
    return FIRST_KEY_NONE if u8(payload, at) == 1 else FIRST_KEY_UNKNOWN


cdef void measure_compressed(Span payload, int codec, Known* bytes) noexcept nogil:
    """How long the batch is once decompressed, where the codec's own frames say so; nothing is decompressed here."""
    cdef int64_t total = UNKNOWN_LENGTH
    cdef int64_t length
    if codec == 1:
        # The end of a member is its length modulo 2^32 (RFC 1952); Kafka writes one member.
        if payload.num > 18 and be16(payload, 0) == 0x1F8B:
            total = <int64_t>little(payload, payload.num - 4, 4)
    elif codec == 2 and be64(payload, 0) != <uint64_t>XERIAL:
        total = snappy_length(payload)
    elif 2 <= codec <= 4 and payload.num:
        total = 0
        while payload.num:
            if codec == 2: length = take_xerial(&payload)
            elif codec == 3: length = take_lz4(&payload)
            else: length = take_zstd(&payload)
            if length < 0 or length > MOST_LENGTH:
                return
            total += length
            if total > MOST_LENGTH:
                return
    if total > 0:
        know(bytes, total + BATCH_HEADER)


cdef inline uint64_t little(Span span, size_t at, int num) noexcept nogil:
    """A little-endian number of up to 8 bytes."""
    cdef uint64_t value = 0
    cdef int i
    for i in range(num):
        value |= <uint64_t>u8(span, at + <size_t>i) << (8 * i)
    return value


cdef bint take(Span* payload, size_t num) noexcept nogil:
    if num > payload.num:
        return False
    payload[0] = drop(payload[0], num)
    return True


cdef int64_t snappy_length(Span block) noexcept nogil:
    """A raw snappy block begins with its length as a varint (format description of snappy)."""
    cdef uint64_t length = 0
    cdef uint32_t i
    for i in range(5):
        length |= <uint64_t>(u8(block, i) & 0x7F) << (7 * i)
        if u8(block, i) < 0x80:
            return <int64_t>length if i < block.num else UNKNOWN_LENGTH
    return UNKNOWN_LENGTH


cdef int64_t take_xerial(Span* payload) noexcept nogil:
    """A block of snappy-java's stream, and the header before it."""
    cdef size_t size
    cdef Span block
    if be64(payload[0], 0) == <uint64_t>XERIAL:
        if not take(payload, 16):
            return UNKNOWN_LENGTH
        if payload.num == 0:
            return 0
    size = be32(payload[0], 0)
    block = keep(drop(payload[0], 4), size)
    if payload.num < 4 or size > payload.num - 4:
        return UNKNOWN_LENGTH
    take(payload, 4 + size)
    return snappy_length(block)


cdef int64_t take_lz4(Span* payload) noexcept nogil:
    """A frame of LZ4 (frame format 1.6); its length, or that of blocks that are all stored as they are."""
    cdef uint32_t flags = u8(payload[0], 4), size
    cdef bint says = flags & 0x08 != 0
    cdef int64_t length = <int64_t>little(payload[0], 6, 8) if says else 0
    if be32(payload[0], 0) != 0x04224D18 or flags >> 6 != 1:
        return UNKNOWN_LENGTH
    if not take(payload, <size_t>(7 + (8 if says else 0) + (4 if flags & 0x01 else 0))):
        return UNKNOWN_LENGTH
    while payload.num >= 4:
        size = <uint32_t>little(payload[0], 0, 4)
        take(payload, 4)
        if size == 0:
            return length if take(payload, 4 if flags & 0x04 else 0) else UNKNOWN_LENGTH
        if not says and length >= 0:
            length = length + (size & 0x7FFFFFFF) if size >> 31 else UNKNOWN_LENGTH
        if not take(payload, <size_t>(size & 0x7FFFFFFF) + (4 if flags & 0x10 else 0)):
            return UNKNOWN_LENGTH
    return UNKNOWN_LENGTH


cdef int64_t take_zstd(Span* payload) noexcept nogil:
    """A frame of Zstandard (RFC 8878); its length, or that of blocks that are all raw or one byte repeated."""
    cdef uint32_t flags = u8(payload[0], 4), header, size
    cdef bint single = flags & 0x20 != 0
    cdef int width = 1 << (flags >> 6) if flags >> 6 or single else 0
    cdef size_t at = 5 + (0 if single else 1) + ((1 << (flags & 3)) >> 1)
    cdef int64_t length = 0
    if be32(payload[0], 0) != 0x28B52FFD:
        return UNKNOWN_LENGTH
    if width:
        length = <int64_t>little(payload[0], at, width) + (256 if width == 2 else 0)
    if not take(payload, at + <size_t>width):
        return UNKNOWN_LENGTH
    while payload.num >= 3:
        header = <uint32_t>little(payload[0], 0, 3)
        size = header >> 3
        take(payload, 3)
        if not width and length >= 0:
            length = length + size if header & 4 == 0 else UNKNOWN_LENGTH
        if header & 6 == 6 or not take(payload, 1 if header & 6 == 2 else size):
            return UNKNOWN_LENGTH
        if header & 1:
            return length if take(payload, 4 if flags & 4 else 0) else UNKNOWN_LENGTH
    return UNKNOWN_LENGTH
