# cython: language_level=3
"""Whether bytes that come again are the same ones.

Rules
  1. The latest eight segments of a direction are remembered by a hash of their payload.
  2. What comes again is compared with those that lie in it whole; of others nothing is said.
"""

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from kwsniff.core.octets.octets cimport Octets, drop, has, keep
from kwsniff.core.tcp.connections cimport Direction, Recent
from kwsniff.core.tcp.segments cimport distance

cdef enum:
    REMEMBERED_BYTES = 2048     # payload of an ordinary segment, and some


cdef inline uint64_t hash_payload(Octets payload) noexcept nogil:
    """Four lanes of eight bytes, so that the multiplications overlap."""
    cdef uint64_t[4] lanes = [1, 2, 3, payload.num]
    cdef uint64_t[4] words
    cdef int i
    while payload.num >= 32:
        memcpy(words, payload.at, 32)
        for i in range(4):
            lanes[i] = (lanes[i] ^ words[i]) * <uint64_t>0x9E3779B97F4A7C15
            lanes[i] ^= lanes[i] >> 32
        payload = drop(payload, 32)
    memset(words, 0, 32)
    memcpy(words, payload.at, payload.num)
    for i in range(4):
        lanes[i] = (lanes[i] ^ words[i]) * <uint64_t>0xD6E8FEB86659FD93
    return lanes[0] ^ (lanes[1] << 1) ^ (lanes[2] << 2) ^ (lanes[3] << 3)


cdef inline void remember(Direction* own, uint32_t seq, uint32_t length, Octets payload) noexcept nogil:
    cdef Recent* recent
    # Long segments come from offloading cards, which retransmit in other pieces: there is nothing to compare.
    if payload.num < length or length > REMEMBERED_BYTES:
        return
    recent = &own.recent[own.num_recent & 7]
    own.num_recent += 1
    recent.seq = seq
    recent.length = length
    recent.hash = hash_payload(payload)


cdef inline bint differs(Direction* own, uint32_t seq, Octets payload) noexcept nogil:
    """Whether `payload`, which was sent before, has other bytes than those of the latest segments that lie in it."""
    cdef Recent* recent
    cdef int32_t ahead
    cdef uint32_t i
    for i in range(8 if own.num_recent > 8 else own.num_recent):
        recent = &own.recent[i]
        ahead = distance(recent.seq, seq)
        if (ahead >= 0 and has(payload, <size_t>ahead, recent.length)
                and recent.hash != hash_payload(keep(drop(payload, <size_t>ahead), recent.length))):
            return True
    return False
