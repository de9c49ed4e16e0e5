# cython: language_level=3
# The two byte formats on which the rest of kwsniff depends: programs in, tapes out.
#
#   op   (16 bytes):  kind u8 | flags u8 | meaning u8 | width u8 | a u32 | b u32 | c u32
#   cell (16 bytes):  node u32 | offset u32 | value i64          node = index of the op that read it
#
# Rule: grow_tape doubles, up to a limit that its caller sets, and never looks at the wire.
#
# kwsniff/layout/program.py writes programs, core/wire/engine.pyx runs them; a contract test compares the numbers.

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport realloc
from libc.string cimport memcmp, memcpy

from kwsniff.core.bytes.cursor cimport bytes_at

cdef struct Op:
    uint8_t kind
    uint8_t flags
    uint8_t meaning
    uint8_t width
    uint32_t a
    uint32_t b
    uint32_t c

cdef struct Cell:
    uint32_t node
    uint32_t offset
    int64_t value

cdef struct Tape:
    Cell* cells
    size_t num
    size_t cap

cdef struct EngineStop:
    uint32_t offset
    uint32_t node

cdef enum Kind:
    KIND_END = 0
    KIND_BOOL = 1
    KIND_INT8 = 2
    KIND_INT16 = 3
    KIND_INT32 = 4
    KIND_INT64 = 5
    KIND_UINT16 = 6
    KIND_UINT32 = 7
    KIND_FLOAT64 = 8
    KIND_UUID = 9
    KIND_STRING = 10
    KIND_BYTES = 11
    KIND_ARRAY = 12
    KIND_ARRAY_SCALAR = 13
    KIND_ARRAY_STRING = 14
    KIND_STRUCT = 15
    KIND_TAGS = 16
    KIND_TAG = 17
    KIND_VARINT = 18
    KIND_VARLONG = 19
    KIND_UVARINT = 20

cdef enum Flag:
    FLAG_NULLABLE = 1
    FLAG_COMPACT = 2
    FLAG_ZIGZAG = 4
    FLAG_RECORDS = 8
    FLAG_REST = 16
    FLAG_TAG_NULLABLE = 32

cdef enum EngineStatus:
    ENGINE_OK = 0
    ENGINE_UNEXPECTED_END = 1
    ENGINE_NULL_NOT_ALLOWED = 2
    ENGINE_NEGATIVE_LENGTH = 3
    ENGINE_ARRAY_LONGER_THAN_FRAME = 4
    ENGINE_VARINT_TOO_LONG = 5
    ENGINE_STRING_TOO_LONG = 6
    ENGINE_DEPTH_LIMIT = 7
    ENGINE_CELLS_LIMIT = 8
    ENGINE_BYTES_LEFT_OVER = 9
    ENGINE_BAD_PROGRAM = 10


cdef inline const Op* find_ops(const uint8_t* code, size_t size, uint32_t* num_ops) noexcept nogil:
    # The ops inside a program's bytes (16-byte header: magic, number of ops); NULL: wrong magic or size.
    cdef uint32_t count = 0
    if size < 16 or memcmp(code, b"KWP1", 4) != 0:
        return NULL
    memcpy(&count, bytes_at(code, 4), 4)
    if count != (size - 16) // sizeof(Op) or (size - 16) % sizeof(Op) != 0:
        return NULL
    num_ops[0] = count
    return <const Op*>bytes_at(code, 16)


cdef inline const Op* op_at(const Op* ops, uint32_t index) noexcept nogil:
    return ops + index


cdef inline bint grow_tape(Tape* tape, size_t max_cells) noexcept nogil:
    # Doubles the tape: 256 cells first, never past max_cells. 0: the limit is reached or memory is out.
    cdef size_t cap = tape.cap * 2 if tape.cap >= 128 else 256
    cdef Cell* cells
    if cap > max_cells:
        cap = max_cells
    if cap <= tape.cap:
        return 0
    cells = <Cell*>realloc(tape.cells, cap * sizeof(Cell))
    if cells == NULL:
        return 0
    tape.cells = cells
    tape.cap = cap
    return 1


cdef inline void put_cell(Tape* tape, uint32_t node, uint32_t offset, int64_t value) noexcept nogil:
    # The caller has made room: tape.num < tape.cap.
    cdef Cell* cell = tape.cells + tape.num
    cell.node = node
    cell.offset = offset
    cell.value = value
    tape.num += 1
