# cython: language_level=3
"""A few packets of a capture, the same ones of every capture that holds them.

Rules
  1. A packet's `mark` says whether it is taken: where more are taken than there is room for, half of them go, by one bit
     more of the mark. Captures hold the same packets where they agree in those that all of them would have taken.
  2. Only segments with more than a byte of payload count: what a stack repeats in the same words (keep-alives, probes,
     acknowledgements without a timestamp) proves nothing.

    packets   | a | b | c | d | e | f |        mask 0: all        mask 1: a, c, f        mask 3: c
    Sample    | mark, 31 bits | addresses, ports, numbers, 32 bits | direction |
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kwsniff.core.capture.reader cimport Segment
from kwsniff.core.bytes.buffer cimport Buffer, append_raw
from kwsniff.core.bytes.hash cimport mix

cdef enum:
    MARK_AT = 33            # of a packet's number

cdef struct Sample:
    uint64_t packet
    int64_t time

cdef struct Samples:
    Buffer kept             # Sample
    uint64_t mask           # of marks that are taken; 0: all are
    size_t most             # bytes that are kept

cdef void begin_samples(Samples* samples) noexcept nogil
cdef bint thin_out(Samples* samples) noexcept nogil
cdef tuple tell_samples(Samples* samples)


cdef inline uint64_t hash_end(const uint8_t* address, uint16_t port) noexcept nogil:
    cdef uint64_t[2] words
    memcpy(words, address, 16)
    return mix(mix(words[0], words[1]), port)


cdef inline void take_sample(Samples* samples, Segment* segment) noexcept nogil:
    cdef Sample sample
    cdef uint64_t mark = segment.mark >> 1, source, target, told
    if mark & samples.mask or segment.length <= 1:
        return
    if samples.kept.len >= samples.most and (not thin_out(samples) or mark & samples.mask):
        return
    source = hash_end(segment.source, segment.source_port)
    target = hash_end(segment.target, segment.target_port)
    told = mix(mix(source + target, source ^ target), <uint64_t>segment.seq << 32 | segment.ack)
    sample.packet = mark << MARK_AT | (told >> 31) & <uint64_t>0x1FFFFFFFE | (source > target)
    sample.time = segment.time
    append_raw(&samples.kept, &sample, sizeof(Sample))
