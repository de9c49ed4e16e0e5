# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""What the header of a batch says of its records; records.pyx has read it.

Rules
  1. Nothing is decompressed: how long a batch would be is known where the codec's own frame says so.
  2. A producer without an id has no epoch and no sequence either.
  3. A message of format 0 or 1 that is compressed hides how many records it holds.

    gzip    | ... | length u32, little endian |
    snappy  | 82 "SNAPPY" 00 | versions 8 | (size u32 | block)* |, or one bare block;  block: | length varint | ... |
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from kwsniff.core.known cimport Known, know
from kwsniff.core.octets cimport Octets, be16, be32, be64, drop, keep, u8, wipe
from kwsniff.core.records cimport RECORD_CODEC_BITS, Batch

cdef enum:
    BATCH_HEADER = 61


cdef void describe_batch(Octets records, Batch* batch, BatchHit* hit) noexcept nogil:
    """`records`: the set that `batch` was read from."""
    cdef int codec = batch.attributes & RECORD_CODEC_BITS
    wipe(hit, sizeof(BatchHit))
    hit.bytes = batch.size
    hit.base_offset = batch.base_offset
    hit.magic = batch.magic
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
    elif batch.magic == 2:
        measure_compressed(keep(drop(records, batch.payload), batch.size - BATCH_HEADER), codec, &hit.uncompressed)


cdef void measure_compressed(Octets payload, int codec, Known* bytes) noexcept nogil:
    """How long the batch is once decompressed, where the codec's own frame says so; nothing is decompressed here."""
    cdef uint64_t total = 0
    cdef uint32_t size
    if codec == 1 and payload.num > 18 and be16(payload, 0) == 0x1F8B:
        # The last four bytes of a gzip member are its length (RFC 1952); Kafka writes one member.
        total = <uint64_t>u8(payload, payload.num - 4) | <uint64_t>u8(payload, payload.num - 3) << 8 \
            | <uint64_t>u8(payload, payload.num - 2) << 16 | <uint64_t>u8(payload, payload.num - 1) << 24
    elif codec == 2 and be64(payload, 0) == <uint64_t>0x82534E4150505900:
        payload = drop(payload, 16)
        while payload.num >= 5:
            size = be32(payload, 0)
            total += snappy_length(keep(drop(payload, 4), size))
            payload = drop(payload, 4 + <size_t>size)
    elif codec == 2:
        total = snappy_length(payload)
    if total:
        know(bytes, <int64_t>total + BATCH_HEADER)


cdef uint64_t snappy_length(Octets block) noexcept nogil:
    """A raw snappy block begins with its length as a varint (format description of snappy)."""
    cdef uint64_t length = 0
    cdef uint32_t i
    for i in range(5):
        length |= <uint64_t>(u8(block, i) & 0x7F) << (7 * i)
        if u8(block, i) < 0x80:
            return length if i < block.num else 0
    return 0
