# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The one decoder: runs a layout's program over the bytes of a message and writes a tape.

Rules
  - The program says what the bytes mean; nothing here knows an API or a version.
  - No pointer arithmetic (cursor.pxd has it), no Python object, no allocation sized by a number from the
    wire: the tape doubles while fields are really read. A count is checked against the bytes left before its loop.
  - Any bytes end in a status; the cells written so far stay valid, stop says where and at which op.
  - Every op reads at least one byte or writes at least one cell, and max_cells bounds the cells: a run ends.
  - A wrong program ends in bad_program, never in a read outside the program.

Kafka's reader decides what is an error (its generated readers and ByteBufferAccessor, trunk of 2026-08):
  - compact lengths are uvarint - 1 in wrapping 32-bit arithmetic; any negative length is null, or an error
    where the field is not nullable (of bytes: unless the caller says otherwise); a compact string longer than 32767
    is an error
  - a negative number of tagged fields is none; unknown tags are skipped by their size and kept
  - Kafka ignores the declared size of a known tag and continues where the parse ended. We do the same, because
    the broker has acted upon that reading; where the two differ a TAG cell reports declared - used. Parsing
    inside the declared size would only differ for bytes that no Kafka writer makes, and would then show
    something else than the receiver saw.

A message with a tagged section, and the cells it gives (offset:value):

    op 0 STRUCT     00 05 'k' ... 02 | 00 07 | 01 09 03 aa bb cc        cells
    op 1  STRING    ^^^^^^^^^^^^^                                       0 (0:1)  1 (2:5)
    op 2  ARRAY                   ^^                                    2 (8:1)
    op 3   INT16                       ^^^^^                            3 (8:7)
    op 4   END                                                          4 (10:0)
    op 5  TAGS                                 ^^^^^^^^^^^^^^^^^        5 (13:9<<32|3)
    op 6 END, op 7 END                                                  6 (16:0)  7 (16:0)
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free

from kwsniff.core.bytes.cursor cimport (
    VARINT_CUT, VARINT_OK, Cursor, bytes_left, cursor_over, offset_from, read_8, read_be16, read_be32, read_be64, read_uvarint, read_varint, read_varlong, skip_bytes,
)
from kwsniff.core.wire.tape cimport *

# Index = engine status, in the order of EngineStatus.
STATUSES = (
    "ok", "unexpected_end", "null_not_allowed", "negative_length", "array_longer_than_frame",
    "varint_too_long", "string_too_long", "depth_limit", "cells_limit", "bytes_left_over", "bad_program",
)
MAX_CELLS = 16_000_000

cdef enum:
    # Structs, arrays and open tagged sections; the deepest layout known needs 12.
    STACK_SIZE = 32

cdef struct Level:
    uint32_t body     # first op of the element; tagged sections: the TAGS op
    int32_t left      # elements (tagged fields) still to read, the current one included
    bint is_tags
    uint32_t tag      # tagged sections: the TAG op being read,
    uint32_t declared  # its size on the wire
    uint32_t payload   # and where its payload began


cdef inline int varint_status(int result) noexcept nogil:
    if result == VARINT_OK:
        return ENGINE_OK
    return ENGINE_UNEXPECTED_END if result == VARINT_CUT else ENGINE_VARINT_TOO_LONG


cdef inline int read_length(Cursor* cursor, uint8_t flags, bint is_short, int32_t* out) noexcept nogil:
    # A length or count as the flags say; out may be negative.
    cdef uint32_t raw = 0
    cdef uint16_t raw16 = 0
    cdef int result
    if flags & FLAG_COMPACT:
        result = read_uvarint(cursor, &raw)
        if result != VARINT_OK:
            return varint_status(result)
        out[0] = <int32_t>(raw - 1)
        return ENGINE_OK
    if flags & FLAG_ZIGZAG:
        result = read_varint(cursor, out)
        return varint_status(result)
    if is_short:
        if not read_be16(cursor, &raw16):
            return ENGINE_UNEXPECTED_END
        out[0] = <int16_t>raw16
        return ENGINE_OK
    if not read_be32(cursor, &raw):
        return ENGINE_UNEXPECTED_END
    out[0] = <int32_t>raw
    return ENGINE_OK


cdef inline int check_null(int32_t length, uint8_t flags) noexcept nogil:
    if length >= 0 or flags & FLAG_NULLABLE:
        return ENGINE_OK
    return ENGINE_NULL_NOT_ALLOWED if length == -1 else ENGINE_NEGATIVE_LENGTH


cdef const Op* program_ops(const uint8_t* code, size_t size, uint32_t* num_ops) noexcept nogil:
    return find_ops(code, size, num_ops)


cdef void free_tape(Tape* tape) noexcept nogil:
    free(tape.cells)
    tape.cells = NULL
    tape.num = 0
    tape.cap = 0


cdef int run_program(const Op* ops, uint32_t num_ops, const uint8_t* data, size_t size,
                     Tape* tape, size_t max_cells, bint nulls, EngineStop* stop) noexcept nogil:
    cdef Cursor cursor = cursor_over(data, size)
    # Cursor and tape stay in registers because no function that is really called sees their address; the
    # rare ones get copies. That is a third of the time per field.
    cdef Tape out = tape[0]
    cdef Tape there
    cdef Cursor behind
    cdef Level[STACK_SIZE] stack
    cdef Level* level = NULL
    cdef uint32_t depth = 0
    cdef uint32_t i = 0
    cdef uint32_t k = 0
    cdef uint32_t begin = 0         # where this op began
    cdef uint32_t at = 0            # offset that its cell carries
    cdef int64_t value = 0
    cdef int32_t length = 0
    cdef const Op* op = NULL
    cdef uint8_t byte = 0
    cdef uint16_t raw16 = 0
    cdef uint32_t raw = 0
    cdef uint64_t raw64 = 0
    cdef int status = ENGINE_OK
    cdef int result

    out.num = 0
    stop.offset = 0
    stop.node = 0
    if size > 0xffffffffU:
        tape[0] = out
        return ENGINE_CELLS_LIMIT

    while True:
        if i >= num_ops:
            status = ENGINE_BAD_PROGRAM
            break
        if out.num == out.cap:
            there = out
            result = grow_tape(&there, max_cells)
            out = there
            if not result:
                status = ENGINE_CELLS_LIMIT
                break
        op = op_at(ops, i)
        at = begin = <uint32_t>offset_from(&cursor, data)

        if op.kind == KIND_INT32:
            if not read_be32(&cursor, &raw):
                status = ENGINE_UNEXPECTED_END
                break
            value = <int32_t>raw
        elif op.kind == KIND_INT16:
            if not read_be16(&cursor, &raw16):
                status = ENGINE_UNEXPECTED_END
                break
            value = <int16_t>raw16
        elif op.kind == KIND_INT64 or op.kind == KIND_FLOAT64:
            if not read_be64(&cursor, &raw64):
                status = ENGINE_UNEXPECTED_END
                break
            value = <int64_t>raw64
        elif op.kind == KIND_STRING or op.kind == KIND_BYTES:
            if op.flags & FLAG_REST:
                length = <int32_t>bytes_left(&cursor)
                if bytes_left(&cursor) > 0x7fffffff:
                    status = ENGINE_CELLS_LIMIT
                    break
            else:
                status = read_length(&cursor, op.flags, op.kind == KIND_STRING, &length)
                if status != ENGINE_OK:
                    break
            if length < 0:
                status = ENGINE_OK if nulls and length == -1 and op.kind == KIND_BYTES else check_null(length, op.flags)
                if status != ENGINE_OK:
                    break
                value = -1
                at = <uint32_t>offset_from(&cursor, data)
            else:
                if length > 32767 and op.kind == KIND_STRING and op.flags & FLAG_COMPACT:
                    status = ENGINE_STRING_TOO_LONG
                    break
                at = <uint32_t>offset_from(&cursor, data)
                if not skip_bytes(&cursor, <size_t>length):
                    status = ENGINE_UNEXPECTED_END
                    break
                value = length
        elif op.kind == KIND_END:
            if depth == 0:
                put_cell(&out, i, at, 0)
                if bytes_left(&cursor) != 0:
                    status = ENGINE_BYTES_LEFT_OVER
                break
            level = &stack[depth - 1]
            if not level.is_tags:
                put_cell(&out, i, at, 0)
                level.left -= 1
                if level.left > 0:
                    i = level.body
                else:
                    depth -= 1
                    i += 1
                continue
            # The payload of the last known tag of the table ended.
            behind, there, k = cursor, out, i
            status = next_tag(&behind, &there, max_cells, data, ops, num_ops, level, &k)
            cursor, out, i = behind, there, k
            if status != ENGINE_OK:
                break
            if level.left == 0:
                depth -= 1
            continue
        elif op.kind == KIND_INT8:
            if not read_8(&cursor, &byte):
                status = ENGINE_UNEXPECTED_END
                break
            value = <int8_t>byte
        elif op.kind == KIND_BOOL:
            if not read_8(&cursor, &byte):
                status = ENGINE_UNEXPECTED_END
                break
            value = byte != 0
        elif op.kind == KIND_ARRAY:
            status = read_length(&cursor, op.flags, False, &length)
            if status != ENGINE_OK:
                break
            if op.a <= i:
                status = ENGINE_BAD_PROGRAM
                break
            if length <= 0:
                status = check_null(length, op.flags)
                if status != ENGINE_OK:
                    break
                put_cell(&out, i, <uint32_t>offset_from(&cursor, data), -1 if length < 0 else 0)
                i = op.a
                continue
            if <uint64_t>length * (op.b if op.b else 1) > bytes_left(&cursor):
                status = ENGINE_ARRAY_LONGER_THAN_FRAME
                break
            if depth == STACK_SIZE:
                status = ENGINE_DEPTH_LIMIT
                break
            put_cell(&out, i, <uint32_t>offset_from(&cursor, data), length)
            i += 1
            level = &stack[depth]
            level.body = i
            level.left = length
            level.is_tags = False
            depth += 1
            continue
        elif op.kind == KIND_TAGS:
            result = read_uvarint(&cursor, &raw)
            if result != VARINT_OK:
                status = varint_status(result)
                break
            if op.a <= i:
                status = ENGINE_BAD_PROGRAM
                break
            if <int32_t>raw <= 0:
                i = op.a
                continue
            if depth == STACK_SIZE:
                status = ENGINE_DEPTH_LIMIT
                break
            level = &stack[depth]
            level.body = i
            level.left = <int32_t>raw
            level.is_tags = True
            level.tag = 0
            depth += 1
            behind, there, k = cursor, out, i
            status = read_tags(&behind, &there, max_cells, data, ops, num_ops, level, &k)
            cursor, out, i = behind, there, k
            if status != ENGINE_OK:
                break
            if level.left == 0:
                depth -= 1
            continue
        elif op.kind == KIND_TAG:
            # Reached in sequence: the payload of the tag before it ended.
            if depth == 0 or not stack[depth - 1].is_tags:
                status = ENGINE_BAD_PROGRAM
                break
            level = &stack[depth - 1]
            behind, there, k = cursor, out, i
            status = next_tag(&behind, &there, max_cells, data, ops, num_ops, level, &k)
            cursor, out, i = behind, there, k
            if status != ENGINE_OK:
                break
            if level.left == 0:
                depth -= 1
            continue
        elif op.kind == KIND_STRUCT:
            if op.a <= i:
                status = ENGINE_BAD_PROGRAM
                break
            length = 1
            if op.flags & FLAG_NULLABLE:
                if not read_8(&cursor, &byte):
                    status = ENGINE_UNEXPECTED_END
                    break
                length = <int8_t>byte
            elif op.flags & FLAG_TAG_NULLABLE:
                result = read_uvarint(&cursor, &raw)
                if result != VARINT_OK:
                    status = varint_status(result)
                    break
                length = -1 if <int32_t>raw <= 0 else 1
            if length < 0:
                put_cell(&out, i, at, -1)
                i = op.a
                continue
            if depth == STACK_SIZE:
                status = ENGINE_DEPTH_LIMIT
                break
            put_cell(&out, i, at, 1)
            i += 1
            level = &stack[depth]
            level.body = i
            level.left = 1
            level.is_tags = False
            depth += 1
            continue
        elif op.kind == KIND_UUID:
            if not skip_bytes(&cursor, 16):
                status = ENGINE_UNEXPECTED_END
                break
            value = 16
        elif op.kind == KIND_ARRAY_SCALAR:
            status = read_length(&cursor, op.flags, False, &length)
            if status != ENGINE_OK:
                break
            if length < 0:
                status = check_null(length, op.flags)
                if status != ENGINE_OK:
                    break
                length = -1
            at = <uint32_t>offset_from(&cursor, data)
            if length > 0:
                if <uint64_t>length * (op.b if op.b else 1) > bytes_left(&cursor):
                    status = ENGINE_ARRAY_LONGER_THAN_FRAME
                    break
                skip_bytes(&cursor, <size_t>length * op.b)
            value = length
        elif op.kind == KIND_ARRAY_STRING:
            status = read_length(&cursor, op.flags, False, &length)
            if status != ENGINE_OK:
                break
            if length < 0:
                status = check_null(length, op.flags)
                if status != ENGINE_OK:
                    break
                length = -1
            elif <uint64_t>length * (op.b if op.b else 1) > bytes_left(&cursor):
                status = ENGINE_ARRAY_LONGER_THAN_FRAME
                break
            put_cell(&out, i, <uint32_t>offset_from(&cursor, data), length)
            behind, there, k = cursor, out, begin
            status = read_strings(&behind, &there, max_cells, data, op, i, length, &k)
            cursor, out, begin = behind, there, k
            if status != ENGINE_OK:
                break
            i += 1
            continue
        elif op.kind == KIND_UINT16:
            if not read_be16(&cursor, &raw16):
                status = ENGINE_UNEXPECTED_END
                break
            value = raw16
        elif op.kind == KIND_UINT32:
            if not read_be32(&cursor, &raw):
                status = ENGINE_UNEXPECTED_END
                break
            value = raw
        elif op.kind == KIND_VARINT:
            result = read_varint(&cursor, &length)
            if result != VARINT_OK:
                status = varint_status(result)
                break
            value = length
        elif op.kind == KIND_VARLONG:
            result = read_varlong(&cursor, &value)
            if result != VARINT_OK:
                status = varint_status(result)
                break
        elif op.kind == KIND_UVARINT:
            result = read_uvarint(&cursor, &raw)
            if result != VARINT_OK:
                status = varint_status(result)
                break
            value = raw
        else:
            status = ENGINE_BAD_PROGRAM
            break

        put_cell(&out, i, at, value)
        i += 1

    stop.node = i
    stop.offset = begin
    tape[0] = out
    return status


cdef int read_strings(Cursor* cursor, Tape* out, size_t max_cells, const uint8_t* data,
                      const Op* op, uint32_t node, int32_t count, uint32_t* begin) noexcept nogil:
    # The elements of an array of strings or bytes: never null, one cell each under the array's node.
    cdef uint8_t flags = op.flags & (FLAG_COMPACT | FLAG_ZIGZAG)
    cdef bint is_string = op.c == KIND_STRING
    cdef int32_t length = 0
    cdef uint32_t at
    cdef int status
    while count > 0:
        if out.num == out.cap and not grow_tape(out, max_cells):
            return ENGINE_CELLS_LIMIT
        begin[0] = <uint32_t>offset_from(cursor, data)
        status = read_length(cursor, flags, is_string, &length)
        if status == ENGINE_OK:
            status = check_null(length, flags)
        if status != ENGINE_OK:
            return status
        if is_string and length > 32767:
            return ENGINE_STRING_TOO_LONG
        at = <uint32_t>offset_from(cursor, data)
        if not skip_bytes(cursor, <size_t>length):
            return ENGINE_UNEXPECTED_END
        put_cell(out, node, at, length)
        count -= 1
    return ENGINE_OK


cdef int next_tag(Cursor* cursor, Tape* out, size_t max_cells, const uint8_t* data,
                  const Op* ops, uint32_t num_ops, Level* level, uint32_t* i) noexcept nogil:
    # A known tag's payload was read: report a wrong size, then continue in the section.
    cdef uint32_t here = <uint32_t>offset_from(cursor, data)
    cdef int64_t used = <int64_t>here - level.payload
    if level.tag == 0 or i[0] != op_at(ops, level.tag).a:
        return ENGINE_BAD_PROGRAM
    if used != <int32_t>level.declared:
        put_cell(out, level.tag, here, <int32_t>level.declared - used)
    level.left -= 1
    return read_tags(cursor, out, max_cells, data, ops, num_ops, level, i)


cdef int read_tags(Cursor* cursor, Tape* out, size_t max_cells, const uint8_t* data,
                   const Op* ops, uint32_t num_ops, Level* level, uint32_t* i) noexcept nogil:
    # Reads tag and size up to the next known tag, whose field's op becomes *i, or to the end of the section
    # (level.left 0, *i behind the table). An error leaves *i at the TAGS op.
    cdef const Op* section = op_at(ops, level.body)
    cdef const Op* op
    cdef uint32_t tag = 0
    cdef uint32_t declared = 0
    cdef uint32_t k
    cdef uint32_t at
    cdef int result
    i[0] = level.body
    while level.left > 0:
        result = read_uvarint(cursor, &tag)
        if result == VARINT_OK:
            result = read_uvarint(cursor, &declared)
        if result != VARINT_OK:
            return varint_status(result)
        at = <uint32_t>offset_from(cursor, data)
        k = level.body + 1
        while k < section.a and k < num_ops:
            op = op_at(ops, k)
            if op.kind != KIND_TAG or op.a <= k:
                return ENGINE_BAD_PROGRAM
            if op.c == tag:
                level.tag = k
                level.declared = declared
                level.payload = at
                i[0] = k + 1
                return ENGINE_OK
            k = op.a
        if <int32_t>declared < 0:
            return ENGINE_NEGATIVE_LENGTH
        if out.num == out.cap and not grow_tape(out, max_cells):
            return ENGINE_CELLS_LIMIT
        if not skip_bytes(cursor, <size_t>declared):
            return ENGINE_UNEXPECTED_END
        put_cell(out, level.body, at, <int64_t>((<uint64_t>tag << 32) | declared))
        level.left -= 1
    i[0] = section.a
    return ENGINE_OK


def run(bytes program not None, data, *, size_t max_cells=16_000_000, bint nulls=False):
    """Decode `data` with `program`; returns (cells, status, offset, node).

    `cells` are 16 bytes each, native: node u32, offset u32, value i64 (tape.pxd). `status` indexes STATUSES.
    `offset` is where the field that broke begins (status ok: the end), `node` its op. `nulls`: bytes of length -1 are null
    where the layout allows none, too.
    Hostile bytes never raise. TypeError/ValueError: a program that is none, data over 4 GiB.
    """
    cdef Py_buffer view
    cdef Tape tape
    cdef EngineStop stop
    cdef uint32_t num_ops = 0
    cdef int status
    cdef const uint8_t* code = program
    cdef const Op* ops = program_ops(code, len(program), &num_ops)
    if ops == NULL:
        raise ValueError("not a kwsniff program: wrong magic or size")
    tape.cells = NULL
    tape.num = 0
    tape.cap = 0
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if view.len > 0xffffffff:
            raise ValueError("a message has at most 4 GiB")
        with nogil:
            status = run_program(
                ops, num_ops, <const uint8_t*>view.buf, <size_t>view.len, &tape, max_cells, nulls, &stop)
        cells = PyBytes_FromStringAndSize(<char*>tape.cells, <Py_ssize_t>(tape.num * sizeof(Cell)))
    finally:
        PyBuffer_Release(&view)
        free_tape(&tape)
    return cells, status, stop.offset, stop.node
