# cython: language_level=3
# Checked reads by position over a span of captured bytes.
#
# Rule 1: no read outside the span ever happens; a read that would be outside gives 0. Callers that must tell
#         "absent" from "zero" ask `num` first.
# Rule 2: positions are compared by subtraction, so a hostile length cannot wrap around.
# Rule 3: pointer arithmetic on captured bytes happens here and in cursor.pxd, nowhere else.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    uint16_t __builtin_bswap16(uint16_t) noexcept nogil
    uint32_t __builtin_bswap32(uint32_t) noexcept nogil
    uint64_t __builtin_bswap64(uint64_t) noexcept nogil

cdef extern from *:
    """
    #include <string.h>
    static void *(*volatile kwsniff_memset)(void *, int, size_t) = memset;
    """
    void* call_memset "kwsniff_memset"(void* at, int byte, size_t num) noexcept nogil

cdef inline void wipe(void* at, size_t num) noexcept nogil:
    """Zeroes a struct of some hundred bytes by the library: of a known size compilers make one string instruction,
    which takes several times as long."""
    call_memset(at, 0, num)

cdef struct Span:
    const uint8_t* at
    size_t num

cdef inline Span make_span(const uint8_t* at, size_t num) noexcept nogil:
    cdef Span span
    span.at = at
    span.num = num
    return span

cdef inline Span drop(Span span, size_t num) noexcept nogil:
    """The span without its first `num` bytes; empty when it has no more."""
    if num > span.num:
        num = span.num
    span.at = span.at + num
    span.num -= num
    return span

cdef inline Span keep(Span span, size_t num) noexcept nogil:
    """The first `num` bytes of the span, or all of it."""
    if num < span.num:
        span.num = num
    return span

cdef inline bint has(Span span, size_t at, size_t num) noexcept nogil:
    return at <= span.num and num <= span.num - at

cdef inline uint32_t u8(Span span, size_t at) noexcept nogil:
    return span.at[at] if at < span.num else 0

cdef inline uint32_t be16(Span span, size_t at) noexcept nogil:
    cdef uint16_t raw
    if not has(span, at, 2):
        return 0
    memcpy(&raw, span.at + at, 2)
    return __builtin_bswap16(raw)

cdef inline uint32_t be32(Span span, size_t at) noexcept nogil:
    cdef uint32_t raw
    if not has(span, at, 4):
        return 0
    memcpy(&raw, span.at + at, 4)
    return __builtin_bswap32(raw)

cdef inline uint64_t be64(Span span, size_t at) noexcept nogil:
    cdef uint64_t raw
    if not has(span, at, 8):
        return 0
    memcpy(&raw, span.at + at, 8)
    return __builtin_bswap64(raw)

# Capture files are written in the byte order of the machine that captured: `swapped` says it is not ours.
cdef inline uint32_t file16(Span span, size_t at, bint swapped) noexcept nogil:
    cdef uint16_t raw
    if not has(span, at, 2):
        return 0
    memcpy(&raw, span.at + at, 2)
    return __builtin_bswap16(raw) if swapped else raw

cdef inline uint32_t file32(Span span, size_t at, bint swapped) noexcept nogil:
    cdef uint32_t raw
    if not has(span, at, 4):
        return 0
    memcpy(&raw, span.at + at, 4)
    return __builtin_bswap32(raw) if swapped else raw

cdef inline uint64_t file64(Span span, size_t at, bint swapped) noexcept nogil:
    cdef uint64_t raw
    if not has(span, at, 8):
        return 0
    memcpy(&raw, span.at + at, 8)
    return __builtin_bswap64(raw) if swapped else raw

cdef inline void copy_out(Span span, size_t at, void* to, size_t num) noexcept nogil:
    """Copies `num` bytes to `to`; bytes outside the span are left as they were."""
    if has(span, at, num):
        memcpy(to, span.at + at, num)

cdef inline void both_ends(Span span, uint64_t* words) noexcept nogil:
    """All of a span of at most 16 bytes in two words that may overlap: reads of fixed sizes, which cost no call."""
    cdef uint32_t[2] halves
    if span.num >= 8:
        memcpy(&words[0], span.at, 8)
        memcpy(&words[1], span.at + (span.num - 8), 8)
    elif span.num >= 4:
        memcpy(&halves[0], span.at, 4)
        memcpy(&halves[1], span.at + (span.num - 4), 4)
        words[0] = halves[0]
        words[1] = halves[1]
    else:
        words[0] = u8(span, 0) | u8(span, 1) << 8 | u8(span, 2) << 16
        words[1] = 0

cdef inline bint same_bytes(Span a, Span b) noexcept nogil:
    cdef uint64_t[2] x
    cdef uint64_t[2] y
    if a.num != b.num:
        return False
    while a.num > 16:
        memcpy(x, a.at, 16)
        memcpy(y, b.at, 16)
        if x[0] != y[0] or x[1] != y[1]:
            return False
        a = drop(a, 16)
        b = drop(b, 16)
    both_ends(a, x)
    both_ends(b, y)
    return x[0] == y[0] and x[1] == y[1]
