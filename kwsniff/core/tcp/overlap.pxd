# cython: language_level=3
"""Whether bytes that come again are the same ones.

Rules
  1. The latest eight segments of a direction are remembered by a hash of their payload.
  2. What comes again is compared with those that lie in it whole; of others nothing is said.
"""

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kwsniff.core.bytes.hash cimport fold
from kwsniff.core.bytes.span cimport Span, both_ends, drop, has, keep
from kwsniff.core.tcp.segments cimport distance

cdef struct Recent:
    uint32_t seq
    uint32_t length
    uint64_t hash

# The latest segments delivered.
cdef struct RecentPayload:
    uint32_t num
    Recent latest[8]

cdef enum:
    REMEMBERED_BYTES = 2048     # payload of an ordinary segment, and some


cdef inline uint64_t hash_payload(Span payload) noexcept nogil:
    """Three lanes of sixteen bytes, so that the multiplications overlap."""
    cdef uint64_t a = payload.num, b = 1, c = 2
    cdef uint64_t[6] words
    while payload.num >= 48:
        memcpy(words, payload.at, 48)
        a = fold(words[0] ^ <uint64_t>0x9E3779B97F4A7C15, words[1] ^ a)
        b = fold(words[2] ^ <uint64_t>0xD6E8FEB86659FD93, words[3] ^ b)
        c = fold(words[4] ^ <uint64_t>0xA0761D6478BD642F, words[5] ^ c)
        payload = drop(payload, 48)
    a ^= b ^ c << 1
    while payload.num > 16:
        memcpy(words, payload.at, 16)
        a = fold(words[0] ^ <uint64_t>0x9E3779B97F4A7C15, words[1] ^ a)
        payload = drop(payload, 16)
    both_ends(payload, words)
    return fold(words[0] ^ <uint64_t>0xD6E8FEB86659FD93, words[1] ^ a)


cdef inline void remember(RecentPayload* recent, uint32_t seq, uint32_t length, Span payload) noexcept nogil:
    cdef Recent* segment
    # Long segments come from offloading cards, which retransmit in other pieces: there is nothing to compare.
    if payload.num < length or length > REMEMBERED_BYTES:
        return
    segment = &recent.latest[recent.num & 7]
    recent.num += 1
    segment.seq = seq
    segment.length = length
    segment.hash = hash_payload(payload)


cdef inline bint differs(RecentPayload* recent, uint32_t seq, Span payload) noexcept nogil:
    """Whether `payload`, which was sent before, has other bytes than those of the latest segments that lie in it."""
    cdef Recent* segment
    cdef int32_t ahead
    cdef uint32_t i
    for i in range(8 if recent.num > 8 else recent.num):
        segment = &recent.latest[i]
        ahead = distance(segment.seq, seq)
        if (ahead >= 0 and has(payload, <size_t>ahead, segment.length)
                and segment.hash != hash_payload(keep(drop(payload, <size_t>ahead), segment.length))):
            return True
    return False
