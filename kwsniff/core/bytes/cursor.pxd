# cython: language_level=3
# Bounds-checked reading of hostile bytes: the one file of the project with pointer arithmetic.
#
# Rules
#   The end pointer accompanies the position pointer; room is always `end - pos`, never `pos + n > end`.
#   A reader answers 1 and moves, or answers 0 and leaves the cursor where it was (varints: see below).
#   Nothing here allocates.
#
#   data:  | read already | pos ......... | end        left = end - pos
#
# Varints are LEB128: 7 bits per byte, low group first, bit 7 = another byte follows. Kafka's rules
# (ByteUtils): five bytes at most for 32 bits, bits above 32 dropped silently, a fifth byte with bit 7 set is an error;
# ten bytes for 64 bits. The padded form 80 00 is a legal zero.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef struct Cursor:
    const uint8_t* pos
    const uint8_t* end

cdef enum VarintResult:
    VARINT_OK = 0
    VARINT_CUT = 1       # the bytes end before the last group
    VARINT_TOO_LONG = 2  # the last allowed byte asks for another


cdef inline Cursor cursor_over(const uint8_t* data, size_t size) noexcept nogil:
    cdef Cursor cursor
    cursor.pos = data
    cursor.end = data + size
    return cursor


cdef inline size_t bytes_left(const Cursor* cursor) noexcept nogil:
    return <size_t>(cursor.end - cursor.pos)


cdef inline size_t offset_from(const Cursor* cursor, const uint8_t* start) noexcept nogil:
    return <size_t>(cursor.pos - start)


cdef inline const uint8_t* bytes_at(const uint8_t* start, size_t offset) noexcept nogil:
    # The caller has checked that offset lies in what it holds.
    return start + offset


cdef inline bint skip_bytes(Cursor* cursor, size_t count) noexcept nogil:
    if count > <size_t>(cursor.end - cursor.pos):
        return 0
    cursor.pos += count
    return 1


cdef inline bint read_slice(Cursor* cursor, size_t count, Cursor* piece) noexcept nogil:
    # A sub-cursor of exactly count bytes; the outer cursor continues after it.
    if count > <size_t>(cursor.end - cursor.pos):
        return 0
    piece.pos = cursor.pos
    piece.end = cursor.pos + count
    cursor.pos += count
    return 1


cdef inline bint read_8(Cursor* cursor, uint8_t* out) noexcept nogil:
    if cursor.end - cursor.pos < 1:
        return 0
    out[0] = cursor.pos[0]
    cursor.pos += 1
    return 1


cdef inline bint read_be16(Cursor* cursor, uint16_t* out) noexcept nogil:
    cdef const uint8_t* p = cursor.pos
    if cursor.end - p < 2:
        return 0
    out[0] = <uint16_t>((<uint32_t>p[0] << 8) | p[1])
    cursor.pos = p + 2
    return 1


cdef inline bint read_be32(Cursor* cursor, uint32_t* out) noexcept nogil:
    cdef const uint8_t* p = cursor.pos
    if cursor.end - p < 4:
        return 0
    # Compilers turn this into one load and a byte swap, whatever the alignment.
    out[0] = (<uint32_t>p[0] << 24) | (<uint32_t>p[1] << 16) | (<uint32_t>p[2] << 8) | <uint32_t>p[3]
    cursor.pos = p + 4
    return 1


cdef inline bint read_be64(Cursor* cursor, uint64_t* out) noexcept nogil:
    cdef const uint8_t* p = cursor.pos
    if cursor.end - p < 8:
        return 0
    out[0] = ((<uint64_t>p[0] << 56) | (<uint64_t>p[1] << 48)
              | (<uint64_t>p[2] << 40) | (<uint64_t>p[3] << 32)
              | (<uint64_t>p[4] << 24) | (<uint64_t>p[5] << 16) | (<uint64_t>p[6] << 8) | <uint64_t>p[7])
    cursor.pos = p + 8
    return 1


cdef inline int read_uvarint(Cursor* cursor, uint32_t* out) noexcept nogil:
    # On anything but VARINT_OK the cursor has not moved.
    cdef const uint8_t* p = cursor.pos
    cdef const uint8_t* end = cursor.end
    cdef uint32_t value
    cdef uint32_t byte
    cdef uint32_t shift
    if end - p < 1:
        return VARINT_CUT
    byte = p[0]
    p += 1
    if byte < 128:
        out[0] = byte
        cursor.pos = p
        return VARINT_OK
    value = byte & 127
    shift = 7
    while True:
        if end - p < 1:
            return VARINT_CUT
        byte = p[0]
        p += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 28:
            return VARINT_TOO_LONG
    out[0] = value
    cursor.pos = p
    return VARINT_OK


cdef inline int read_uvarlong(Cursor* cursor, uint64_t* out) noexcept nogil:
    cdef const uint8_t* p = cursor.pos
    cdef const uint8_t* end = cursor.end
    cdef uint64_t value = 0
    cdef uint64_t byte
    cdef uint32_t shift = 0
    while True:
        if end - p < 1:
            return VARINT_CUT
        byte = p[0]
        p += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 63:
            return VARINT_TOO_LONG
    out[0] = value
    cursor.pos = p
    return VARINT_OK


cdef inline int read_varint(Cursor* cursor, int32_t* out) noexcept nogil:
    # Zigzag: 0, -1, 1, -2, ... as 0, 1, 2, 3, ...
    cdef uint32_t raw = 0
    cdef int result = read_uvarint(cursor, &raw)
    out[0] = <int32_t>((raw >> 1) ^ (0 - (raw & 1)))
    return result


cdef inline int read_varlong(Cursor* cursor, int64_t* out) noexcept nogil:
    cdef uint64_t raw = 0
    cdef int result = read_uvarlong(cursor, &raw)
    out[0] = <int64_t>((raw >> 1) ^ (0 - (raw & 1)))
    return result
