# cython: language_level=3
# next_batch walks the entries of a record set without copying or allocating: rules and sketch in records.pyx. It is
# here because captures' facts walk every record set, and a call to another module costs as much as the reading.

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from kwsniff.core.bytes.cursor cimport Cursor, bytes_left, offset_from, read_8, read_be16, read_be32, read_be64, read_slice

cdef enum:
    ENTRY_START = 12       # offset and size
    LEAST_MESSAGE = 14     # of "size": crc, magic, attributes, two lengths
    LEAST_BATCH = 49       # of "size": format 2 without a record
    RECORD_CODEC_BITS = 7

cdef enum BatchStatus:
    BATCH_OK = 0
    BATCH_END = 1            # nothing is left
    BATCH_CUT = 2            # the last entry is cut off: normal in fetch responses
    BATCH_SIZE_TOO_SMALL = 3  # smaller than its own fixed part: corrupt, nothing after it can be found
    BATCH_UNKNOWN_FORMAT = 4  # magic is not 0, 1 or 2

# One entry: a batch (format 2) or a message, which may hold compressed ones (formats 0 and 1).
# Offsets count from the first byte of the record set.
cdef struct Batch:
    uint32_t offset
    uint32_t size            # all of it, the 12 bytes before "size" on the wire included
    uint32_t payload         # format 2: where the records begin; 0 and 1: the attributes byte
    uint32_t stored_crc
    int32_t leader_epoch     # format 2 only, as all that have no note: -1 otherwise
    int32_t last_offset_delta
    int32_t base_sequence
    int32_t count            # records; 1 for a bare message, -1 for a compressed one (only unpacking tells)
    int64_t base_offset      # all formats
    int64_t base_timestamp   # format 1: the message's, in both
    int64_t max_timestamp
    int64_t producer_id
    int16_t producer_epoch
    int16_t attributes       # all formats
    int8_t magic             # all formats
    uint8_t is_valid         # set by check_batch

cdef bint check_batch(const uint8_t* start, Batch* batch) noexcept nogil


cdef inline void read_batch(Cursor* entry, Batch* batch) noexcept nogil:
    # Format 2 behind the magic. The caller has checked that the fixed part is there.
    cdef uint16_t short = 0
    cdef uint32_t word = 0
    cdef uint64_t long_ = 0
    read_be32(entry, &batch.stored_crc)
    read_be16(entry, &short)
    batch.attributes = <int16_t>short
    read_be32(entry, &word)
    batch.last_offset_delta = <int32_t>word
    read_be64(entry, &long_)
    batch.base_timestamp = <int64_t>long_
    read_be64(entry, &long_)
    batch.max_timestamp = <int64_t>long_
    read_be64(entry, &long_)
    batch.producer_id = <int64_t>long_
    read_be16(entry, &short)
    batch.producer_epoch = <int16_t>short
    read_be32(entry, &word)
    batch.base_sequence = <int32_t>word
    read_be32(entry, &word)
    batch.count = <int32_t>word


cdef inline void read_message(Cursor* entry, Batch* batch) noexcept nogil:
    cdef Cursor behind = entry[0]
    cdef uint8_t attributes = 0
    cdef uint64_t timestamp = 0
    read_8(&behind, &attributes)
    batch.attributes = attributes
    batch.leader_epoch = -1
    batch.last_offset_delta = 0
    batch.base_timestamp = -1
    if batch.magic == 1 and read_be64(&behind, &timestamp):
        batch.base_timestamp = <int64_t>timestamp
    batch.max_timestamp = batch.base_timestamp
    batch.producer_id = -1
    batch.producer_epoch = -1
    batch.base_sequence = -1
    batch.count = -1 if attributes & RECORD_CODEC_BITS else 1


cdef inline int next_batch(Cursor* cursor, const uint8_t* start, Batch* batch) noexcept nogil:
    cdef Cursor entry = cursor[0]
    cdef Cursor whole
    cdef uint64_t offset = 0
    cdef uint32_t size = 0
    cdef uint32_t word = 0
    cdef uint8_t magic = 0
    cdef size_t left = bytes_left(cursor)
    if left == 0:
        return BATCH_END
    if not (read_be64(&entry, &offset) and read_be32(&entry, &size)):
        return BATCH_CUT
    if <int32_t>size < LEAST_MESSAGE:
        return BATCH_SIZE_TOO_SMALL
    if not (read_be32(&entry, &word) and read_8(&entry, &magic)):
        return BATCH_CUT
    if magic > 2:
        return BATCH_UNKNOWN_FORMAT
    if size > left - ENTRY_START:
        return BATCH_CUT
    if magic == 2 and size < LEAST_BATCH:
        return BATCH_SIZE_TOO_SMALL
    batch.offset = <uint32_t>offset_from(cursor, start)
    batch.size = size + ENTRY_START
    batch.base_offset = <int64_t>offset
    batch.magic = <int8_t>magic
    batch.is_valid = 0
    read_slice(cursor, batch.size, &whole)
    if magic == 2:
        batch.leader_epoch = <int32_t>word
        read_batch(&entry, batch)
    else:
        batch.stored_crc = word
        read_message(&entry, batch)
    batch.payload = <uint32_t>offset_from(&entry, start)
    return BATCH_OK
