# cython: language_level=3
# next_batch walks the entries of a record set without copying or allocating: see records.pyx.

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t

from kwsniff.core.cursor cimport Cursor

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

cdef int next_batch(Cursor* cursor, const uint8_t* start, Batch* batch) noexcept nogil
cdef bint check_batch(const uint8_t* start, Batch* batch) noexcept nogil
