# cython: language_level=3
# What the header of a batch says of its records; records.pyx has read it. batches.pyx has the rules.

from libc.stdint cimport int32_t, int64_t, uint32_t

from kwsniff.core.bytes.known cimport Known
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.wire.records cimport Batch

cdef enum FirstKey:
    FIRST_KEY_UNKNOWN = 0
    FIRST_KEY_NONE = 1
    FIRST_KEY_SET = 2

# A batch (format 2) or message (0 and 1) of a record set. Spans point into the message around it.
cdef struct BatchHit:
    Span topic
    Span topic_id
    Known partition
    int64_t base_offset
    int64_t bytes           # with the 12 bytes before its length counts
    Known uncompressed
    int32_t magic
    int32_t attributes
    Known records
    Known last_offset
    Known producer_id
    int32_t producer_epoch
    int32_t base_sequence
    uint32_t crc
    FirstKey key            # of its first record
    Known first_timestamp   # milliseconds since the epoch
    Known max_timestamp

cdef void describe_batch(Span records, Batch* batch, BatchHit* hit) noexcept nogil
