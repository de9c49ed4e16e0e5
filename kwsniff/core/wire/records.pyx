# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The envelopes of a record set: where its entries are, what they say of themselves, whether their CRC holds.

Rules
  - A record set is a length in bytes, never a count. It may be empty, mix formats, end in a cut entry.
  - Nothing is decompressed or allocated here; the payload is left to the caller.
  - An entry that contradicts itself ends the walk with a status: where the next one begins cannot be known.
  - As in Kafka (ByteBufferLogInputStream) the size is judged before the magic.

            0        8       12                16      17
    0, 1    offset | size | crc32 ............ | magic | attributes [timestamp] key value
                                                 ^------- CRC-32 from here to the end
    2       offset | size | leader epoch ..... | magic | crc32c | attributes, last offset delta, timestamps,
                                                                  ^       producer, sequence, count | records
                                                                  +------ CRC-32C from here to the end

CRC-32C uses the processor's instruction where there is one (asked at run time) and a table of 8 x 256
otherwise; CRC-32 always the table. The loops over bytes are in the C block below, beside cursor.pxd the only pointer
arithmetic: an end pointer beside the position, compared by subtraction.
"""

from struct import Struct
from typing import NamedTuple

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint32_t

from kwsniff.core.bytes.cursor cimport Cursor, bytes_at, cursor_over, offset_from

cdef extern from *:
    """
    #include <stdint.h>
    #include <stddef.h>
    #include <string.h>

    static uint32_t kw_castagnoli[8][256];
    static uint32_t kw_ieee[8][256];

    static void kw_fill(uint32_t table[8][256], uint32_t polynomial) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t crc = i;
            for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (polynomial & (0u - (crc & 1u)));
            table[0][i] = crc;
        }
        for (int k = 1; k < 8; k++)
            for (uint32_t i = 0; i < 256; i++)
                table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 255u];
    }

    static void kw_fill_tables(void) {
        kw_fill(kw_castagnoli, 0x82f63b78u);
        kw_fill(kw_ieee, 0xedb88320u);
    }

    static uint32_t kw_crc_by_table(uint32_t t[8][256], const uint8_t *p, size_t size) {
        const uint8_t *end = p + size;
        uint32_t crc = 0xffffffffu;
        while (end - p >= 8) {
            crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
            crc = t[7][crc & 255u] ^ t[6][(crc >> 8) & 255u] ^ t[5][(crc >> 16) & 255u] ^ t[4][crc >> 24]
                ^ t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]];
            p += 8;
        }
        while (end - p >= 1) crc = (crc >> 8) ^ t[0][(crc ^ *p++) & 255u];
        return ~crc;
    }

    #if defined(__x86_64__) && defined(__GNUC__)
    __attribute__((target("sse4.2")))
    static uint32_t kw_crc32c_instruction(const uint8_t *p, size_t size) {
        const uint8_t *end = p + size;
        uint64_t crc = 0xffffffffu;
        while (end - p >= 8) {
            uint64_t word;
            memcpy(&word, p, 8);
            crc = __builtin_ia32_crc32di(crc, word);
            p += 8;
        }
        uint32_t rest = (uint32_t)crc;
        while (end - p >= 1) rest = __builtin_ia32_crc32qi(rest, *p++);
        return ~rest;
    }
    static int kw_has_instruction(void) { return __builtin_cpu_supports("sse4.2") != 0; }
    #else
    static uint32_t kw_crc32c_instruction(const uint8_t *p, size_t size) {
        return kw_crc_by_table(kw_castagnoli, p, size);
    }
    static int kw_has_instruction(void) { return 0; }
    #endif

    static uint32_t kw_crc32c(const uint8_t *p, size_t size) {
        if (kw_has_instruction()) return kw_crc32c_instruction(p, size);
        return kw_crc_by_table(kw_castagnoli, p, size);
    }
    static uint32_t kw_crc32c_by_table(const uint8_t *p, size_t size) {
        return kw_crc_by_table(kw_castagnoli, p, size);
    }
    static uint32_t kw_crc32(const uint8_t *p, size_t size) { return kw_crc_by_table(kw_ieee, p, size); }
    """
    void kw_fill_tables() noexcept nogil
    uint32_t kw_crc32c(const uint8_t* p, size_t size) noexcept nogil
    uint32_t kw_crc32c_by_table(const uint8_t* p, size_t size) noexcept nogil
    uint32_t kw_crc32(const uint8_t* p, size_t size) noexcept nogil

cdef enum:
    MESSAGE_CRC = 16       # where the CRC's bytes begin
    BATCH_CRC = 21

kw_fill_tables()

# Index = status of the walk, in the order of BatchStatus.
STATUSES = ("ok", "end", "cut", "record_size_too_small", "unknown_record_format")

# The bytes of the C struct Batch.
BATCH = Struct("=IIIIiiiiqqqqhhbB")


class RecordBatch(NamedTuple):
    """An entry of a record set (struct Batch in records.pxd). Offsets count from the set's first byte."""

    offset: int
    size: int
    payload: int
    stored_crc: int
    leader_epoch: int
    last_offset_delta: int
    base_sequence: int
    record_count: int
    base_offset: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    attributes: int
    magic: int
    is_valid: int


cdef bint check_batch(const uint8_t* start, Batch* batch) noexcept nogil:
    """Whether the stored CRC is that of the bytes; also kept in the batch."""
    cdef uint32_t skipped = BATCH_CRC if batch.magic == 2 else MESSAGE_CRC
    cdef const uint8_t* covered = bytes_at(start, batch.offset + skipped)
    cdef uint32_t crc
    if batch.magic == 2:
        crc = kw_crc32c(covered, batch.size - skipped)
    else:
        crc = kw_crc32(covered, batch.size - skipped)
    batch.is_valid = crc == batch.stored_crc
    return batch.is_valid


def batches(data):
    """The entries of a record set; returns (batches, status, offset).

    `status` indexes STATUSES and says how the walk ended: "end", "cut" or what is corrupt. `offset` is where:
    the bytes from there on belong to no entry. ValueError: data over 4 GiB.
    """
    cdef Py_buffer view
    cdef Cursor cursor
    cdef Batch batch
    cdef const uint8_t* start
    cdef int status
    found = []
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if view.len > 0xffffffff:
            raise ValueError("a record set has at most 4 GiB")
        start = <const uint8_t*>view.buf
        cursor = cursor_over(start, <size_t>view.len)
        while True:
            status = next_batch(&cursor, start, &batch)
            if status != BATCH_OK:
                break
            with nogil:
                check_batch(start, &batch)
            found.append(RecordBatch(*BATCH.unpack((<char*>&batch)[:BATCH.size])))
        return found, status, offset_from(&cursor, start)
    finally:
        PyBuffer_Release(&view)


def crc32c(data, *, hardware=True):
    """CRC-32C (RFC 3720) of the bytes; `hardware` False takes the table whatever the processor has."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if hardware:
            return kw_crc32c(<const uint8_t*>view.buf, <size_t>view.len)
        return kw_crc32c_by_table(<const uint8_t*>view.buf, <size_t>view.len)
    finally:
        PyBuffer_Release(&view)


def crc32(data):
    """CRC-32 (IEEE 802.3) of the bytes."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return kw_crc32(<const uint8_t*>view.buf, <size_t>view.len)
    finally:
        PyBuffer_Release(&view)
