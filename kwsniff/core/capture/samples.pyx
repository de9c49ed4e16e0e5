# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Samples of a capture (see samples.pxd): begun, thinned out, and handed to Python.

Rules
  1. The mask only grows while a capture is read: what was let go would not be taken now.
  2. Room is given once: captures of any length take the same.
"""


from kwsniff.core.bytes.buffer cimport shrink

cdef enum:
    MOST_KEPT = 1 << 16     # bytes of memory that stay for the next capture
    MARK = 0x7FFFFFFF


cdef void begin_samples(Samples* samples) noexcept nogil:
    samples.mask = 0
    shrink(&samples.kept, MOST_KEPT)


cdef bint thin_out(Samples* samples) noexcept nogil:
    """Whether there is room for another one now: marks that are all alike leave none."""
    cdef Sample* kept = <Sample*>samples.kept.data
    cdef size_t i, num
    while samples.kept.len >= samples.most and samples.mask != MARK:
        samples.mask = samples.mask << 1 | 1
        num = 0
        for i in range(samples.kept.len // sizeof(Sample)):
            if not kept[i].packet >> MARK_AT & samples.mask:
                kept[num] = kept[i]
                num += 1
        samples.kept.len = num * sizeof(Sample)
    return samples.kept.len < samples.most


cdef tuple tell_samples(Samples* samples):
    """(the mask, two native int64 for each packet: its number and its time)."""
    return samples.mask, (<const char*>samples.kept.data)[:samples.kept.len] if samples.kept.len else b""
