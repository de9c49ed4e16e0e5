# cython: language_level=3
# Hashes of captured bytes for tables that a capture's author must not be able to overfill.
#
# Rule: every step multiplies 64 by 64 to 128 bits and folds the halves (the construction of wyhash), with a seed that no
#       capture can know: without it no two inputs can be made to collide more often than by chance.

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from kwsniff.core.bytes.span cimport Span, both_ends, drop

cdef extern from *:
    """
    static inline uint64_t kwsniff_fold(uint64_t a, uint64_t b) {
        unsigned __int128 product = (unsigned __int128)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    """
    uint64_t fold "kwsniff_fold"(uint64_t a, uint64_t b) noexcept nogil

cdef inline uint64_t mix(uint64_t hash, uint64_t word) noexcept nogil:
    return fold(hash ^ <uint64_t>0xA0761D6478BD642F, word ^ <uint64_t>0xE7037ED1A0B428DB ^ hash)

cdef inline uint64_t hash_span(Span text, uint64_t seed) noexcept nogil:
    cdef uint64_t hash = mix(seed, text.num)
    cdef uint64_t[2] words
    while text.num > 16:
        memcpy(words, text.at, 16)
        hash = fold(words[0] ^ hash ^ <uint64_t>0xA0761D6478BD642F, words[1] ^ seed ^ <uint64_t>0xE7037ED1A0B428DB)
        text = drop(text, 16)
    both_ends(text, words)
    return fold(words[0] ^ hash ^ <uint64_t>0x8EBC6AF09C88C6E3, words[1] ^ seed ^ <uint64_t>0x589965CC75374CC3)
