"""The engine against bytes worked out by hand."""

import struct

import pytest

from kwsniff.core.wire import engine

from .programs import (
    ARRAY,
    ARRAY_SCALAR,
    ARRAY_STRING,
    BOOL,
    BYTES,
    COMPACT,
    END,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE,
    REST,
    STRING,
    STRUCT,
    TAG,
    TAG_NULLABLE,
    TAGS,
    UINT16,
    UINT32,
    UUID,
    UVARINT,
    VARINT,
    VARLONG,
    ZIGZAG,
    cells,
    one_field,
    op,
    program,
    status,
)

# {name string, items [ {id int16} ], tagged fields}, flexible lengths for the array only.
ITEMS = program(
    op(STRUCT, a=7),
    op(STRING),
    op(ARRAY, COMPACT, a=5, b=2),
    op(INT16),
    op(END),
    op(TAGS, a=6),
    op(END),
    op(END),
)
ITEMS_BYTES = b"\0\x05kafka\x02\0\x07\x01\x09\x03\xaa\xbb\xcc"


def value_of(field: bytes, data: bytes) -> tuple[int, int]:
    """Offset and value of a struct's only field."""
    tape, result, *_ = engine.run(one_field(field), data)
    assert status(result) == "ok"
    return cells(tape)[1][1:]


def failure(field: bytes, data: bytes) -> tuple[str, int, int]:
    _, result, offset, node = engine.run(one_field(field), data)
    return status(result), offset, node


def test_message_with_an_array_and_an_unknown_tag():
    tape, result, offset, node = engine.run(ITEMS, ITEMS_BYTES)
    assert (status(result), offset, node) == ("ok", 16, 7)
    assert cells(tape) == [
        (0, 0, 1),
        (1, 2, 5),
        (2, 8, 1),
        (3, 8, 7),
        (4, 10, 0),
        (5, 13, 9 << 32 | 3),
        (6, 16, 0),
        (7, 16, 0),
    ]


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        (BOOL, b"\0", 0),
        (BOOL, b"\x02", 1),
        (INT8, b"\x80", -128),
        (INT16, b"\x80\0", -32768),
        (INT32, b"\xff\xff\xff\xfe", -2),
        (INT64, b"\x7f" + b"\xff" * 7, 2**63 - 1),
        (UINT16, b"\xff\xff", 65535),
        (UINT32, b"\xff\xff\xff\xff", 2**32 - 1),
        (UUID, bytes(range(16)), 16),
        (VARINT, b"\x01", -1),
        (VARINT, b"\xfe\xff\xff\xff\x0f", 2**31 - 1),
        (VARLONG, b"\xff" * 9 + b"\x01", -(2**63)),
        (UVARINT, b"\xac\x02", 300),
        (UVARINT, b"\x80\x80\0", 0),
        (UVARINT, b"\xff\xff\xff\xff\x7f", 2**32 - 1),
    ],
)
def test_scalar(kind: int, data: bytes, value: int):
    assert value_of(op(kind), data) == (0, value)


def test_float64_is_its_raw_bits():
    _, value = value_of(op(FLOAT64), struct.pack(">d", -1.5))
    assert struct.unpack("<d", struct.pack("<q", value)) == (-1.5,)


@pytest.mark.parametrize(
    ("field", "data", "cell"),
    [
        (op(STRING), b"\0\x02hi", (2, 2)),
        (op(STRING, NULLABLE), b"\xff\xff", (2, -1)),
        (op(STRING, NULLABLE), b"\x80\0", (2, -1)),
        (op(STRING, COMPACT), b"\x03hi", (1, 2)),
        (op(STRING, COMPACT | NULLABLE), b"\0", (1, -1)),
        (op(STRING, COMPACT | NULLABLE), b"\xff\xff\xff\xff\x0f", (5, -1)),
        (op(STRING, ZIGZAG | NULLABLE), b"\x01", (1, -1)),
        (op(BYTES), b"\0\0\0\x02hi", (4, 2)),
        (op(BYTES, ZIGZAG), b"\x04hi", (1, 2)),
        (op(BYTES, REST), b"whatever", (0, 8)),
        (op(BYTES, REST), b"", (0, 0)),
        (op(ARRAY_SCALAR, b=4, c=INT32), b"\0\0\0\x02" + b"\0" * 8, (4, 2)),
        (op(ARRAY_SCALAR, COMPACT | NULLABLE, b=4, c=INT32), b"\0", (1, -1)),
        (op(ARRAY, NULLABLE, a=2, b=1), b"\xff\xff\xff\xff", (4, -1)),
    ],
)
def test_length_or_count(field: bytes, data: bytes, cell: tuple[int, int]):
    assert value_of(field, data) == cell


@pytest.mark.parametrize(
    ("field", "data", "name"),
    [
        (op(STRING), b"\xff\xff", "null_not_allowed"),
        (op(STRING), b"\xff\xfe", "negative_length"),
        (op(STRING, COMPACT), b"\0", "null_not_allowed"),
        (op(STRING, COMPACT), b"\x81\x80\x02" + b"x" * 32768, "string_too_long"),
        (op(BYTES, COMPACT), b"\x80\x80\x80\x80\x08", "unexpected_end"),  # -2**31 - 1 wraps to 2**31 - 1
        (op(BYTES), b"\x7f\xff\xff\xffabc", "unexpected_end"),
        (op(UVARINT), b"\xff\xff\xff\xff\xff\x01", "varint_too_long"),
        (op(VARLONG), b"\xff" * 10, "varint_too_long"),
        (op(UVARINT), b"\xff\xff", "unexpected_end"),
        (op(ARRAY, a=3, b=3), b"\0\0\0\x02\0\0\0\0\0", "array_longer_than_frame"),
        (op(ARRAY, a=3, b=3), b"\x7f\xff\xff\xff\0\0\0\0\0", "array_longer_than_frame"),
        (op(ARRAY, a=3, b=3), b"\xff\xff\xff\xff", "null_not_allowed"),
        (op(ARRAY_SCALAR, b=8, c=INT64), b"\x20\0\0\x01" + b"\0" * 8, "array_longer_than_frame"),
        (op(ARRAY_STRING, COMPACT, b=1, c=STRING), b"\xff\xff\xff\xff\x07ab", "array_longer_than_frame"),
    ],
)
def test_what_kafka_rejects(field: bytes, data: bytes, name: str):
    assert failure(field, data) == (name, 0, 1)


def test_array_of_strings_is_one_cell_and_one_for_each():
    tape, result, *_ = engine.run(one_field(op(ARRAY_STRING, b=2, c=STRING)), b"\0\0\0\x02\0\x01a\0\0")
    assert status(result) == "ok"
    assert cells(tape)[1:4] == [(1, 4, 2), (1, 6, 1), (1, 9, 0)]


def test_null_inside_an_array_of_strings_is_an_error_where_it_stands():
    _, result, offset, node = engine.run(
        one_field(op(ARRAY_STRING, NULLABLE, b=2, c=STRING)), b"\0\0\0\x02\0\x01a\xff\xff"
    )
    assert (status(result), offset, node) == ("null_not_allowed", 7, 1)


@pytest.mark.parametrize(
    ("marker", "present"), [(b"\xff", False), (b"\x80", False), (b"\0", True), (b"\x01", True)]
)
def test_nullable_struct_has_an_int8_marker(marker: bytes, present: bool):
    code = one_field(op(STRUCT, NULLABLE, a=4), op(INT8), op(END))
    tape, result, *_ = engine.run(code, marker + b"\x05" * present)
    assert status(result) == "ok"
    assert cells(tape)[1] == (1, 0, 1 if present else -1)
    assert [cell for cell in cells(tape) if cell[0] == 2] == [(2, 1, 5)] * present


# Known tags: 0 int16, 2 a nullable struct {int8}, 5 string.
TAGGED = program(
    op(STRUCT, a=11),
    op(TAGS, a=10, c=3),
    op(TAG, a=4, c=0),
    op(INT16),
    op(TAG, a=8, c=2),
    op(STRUCT, TAG_NULLABLE, a=8),
    op(INT8),
    op(END),
    op(TAG, a=10, c=5),
    op(STRING, COMPACT),
    op(END),
    op(END),
)


def tagged(data: bytes) -> tuple[list[tuple[int, int, int]], str]:
    tape, result, *_ = engine.run(TAGGED, data)
    return cells(tape), status(result)


def test_known_and_unknown_tags_in_any_order():
    data = (
        b"\x05"
        + b"\x05\x03\x03hi"
        + b"\x01\x01\xee"
        + b"\x00\x02\x01\x02"
        + b"\x02\x02\x01\x09"
        + b"\x07\x00"
    )
    got, name = tagged(data)
    assert name == "ok"
    assert got == [
        (0, 0, 1),
        (9, 4, 2),
        (1, 8, 1 << 32 | 1),
        (3, 11, 258),
        (5, 15, 1),
        (6, 16, 9),
        (7, 17, 0),
        (1, 19, 7 << 32),
        (10, 19, 0),
        (11, 19, 0),
    ]


def test_null_struct_in_a_tag():
    assert tagged(b"\x01\x02\x01\x00")[0][1] == (5, 3, -1)


def test_no_tags_and_a_negative_number_of_tags():
    assert tagged(b"\0") == ([(0, 0, 1), (10, 1, 0), (11, 1, 0)], "ok")
    assert tagged(b"\xff\xff\xff\xff\x0f") == ([(0, 0, 1), (10, 5, 0), (11, 5, 0)], "ok")


@pytest.mark.parametrize(("declared", "difference"), [(0, -2), (1, -1), (2, None), (9, 7)])
def test_known_tag_goes_on_where_its_payload_ended_and_tells(declared: int, difference: int | None):
    got, name = tagged(b"\x02\x00" + bytes([declared]) + b"\x01\x02" + b"\x05\x02\x02x")
    assert name == "ok"
    assert (9, 8, 1) in got
    assert [cell for cell in got if cell[0] == 2] == ([(2, 5, difference)] if difference is not None else [])


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\x01\x09\xff\xff\xff\xff\x0f", "negative_length"),
        (b"\x01\x09\x04abc", "unexpected_end"),
        (b"\xff\xff\xff\xff\x07\x09\x00", "unexpected_end"),
        (b"\x01\x80\x80\x80\x80\x80\x01", "varint_too_long"),
    ],
)
def test_broken_tagged_section(data: bytes, name: str):
    assert tagged(data)[1] == name


def test_bytes_left_over():
    tape, result, offset, node = engine.run(ITEMS, ITEMS_BYTES + b"??")
    assert (status(result), offset, node) == ("bytes_left_over", 16, 7)
    assert cells(tape) == cells(engine.run(ITEMS, ITEMS_BYTES)[0])


@pytest.mark.parametrize(
    "code, data", [(ITEMS, ITEMS_BYTES), (TAGGED, b"\x02\x00\x02\x01\x02\x05\x03\x03hi")]
)
def test_truncated_at_every_byte_keeps_the_cells_before_the_cut(code: bytes, data: bytes):
    whole = cells(engine.run(code, data)[0])
    for size in range(len(data)):
        tape, result, offset, _ = engine.run(code, data[:size])
        got = cells(tape)
        assert status(result) in ("unexpected_end", "array_longer_than_frame"), size
        assert got == whole[: len(got)], size
        assert offset <= size


def test_cells_limit_keeps_what_fits():
    code = one_field(op(ARRAY, a=4, b=1), op(INT8), op(END))
    data = struct.pack(">i", 1000) + b"\x01" * 1000
    tape, result, *_ = engine.run(code, data, max_cells=300)
    assert (status(result), len(tape)) == ("cells_limit", 300 * 16)
    assert status(engine.run(code, data, max_cells=2004)[1]) == "ok"
    assert status(engine.run(code, data, max_cells=2003)[1]) == "cells_limit"


def test_tape_grows_beyond_its_first_size():
    code = one_field(op(ARRAY, a=4, b=1), op(INT8), op(END))
    count = 100_000
    tape, result, *_ = engine.run(code, struct.pack(">i", count) + b"\x02" * count)
    got = cells(tape)
    assert status(result) == "ok"
    assert len(got) == 2 * count + 4
    assert got[2:-2:2] == [(2, 4 + i, 2) for i in range(count)]


@pytest.mark.parametrize(
    "code",
    [
        program(op(STRUCT, a=5), op(INT8)),
        program(op(99)),
        program(op(TAG)),
        program(op(STRUCT, a=0), op(INT8), op(END), op(END)),
        program(op(ARRAY, a=0, b=1), op(INT8), op(END), op(END)),
        program(op(TAGS, a=0), op(END)),
        program(op(TAGS, a=2), op(TAG, a=1, c=0), op(INT8), op(END)),
        program(),
    ],
)
def test_wrong_programs_end(code: bytes):
    data = b"\x00\x00\x00\x01\x00\x01\x00\x00"
    assert status(engine.run(code, data)[1]) in ("bad_program", "bytes_left_over")


def test_depth_has_a_limit():
    deep = [op(STRUCT, a=80)] * 40
    code = program(*deep, *[op(END)] * 41)
    assert status(engine.run(code, b"")[1]) == "depth_limit"


@pytest.mark.parametrize("code", [b"", b"KWP1", b"XXXX" + bytes(12), program(op(END)) + b"\0"])
def test_what_is_no_program_is_refused(code: bytes):
    with pytest.raises(ValueError, match="not a kwsniff program"):
        engine.run(code, b"")


def test_any_buffer_is_read():
    expected = engine.run(ITEMS, ITEMS_BYTES)
    assert engine.run(ITEMS, bytearray(ITEMS_BYTES)) == expected
    assert engine.run(ITEMS, memoryview(b"x" + ITEMS_BYTES)[1:]) == expected
