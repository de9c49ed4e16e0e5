"""Programs of small layouts, worked out by hand from the op format."""

import struct

import pytest

from kwsniff.layout.grammar import parse_layout
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.program import Program, compile_message, compile_schema

END, INT8, INT16, INT32, INT64, UUID = 0, 2, 3, 4, 5, 9
STRING, BYTES, ARRAY, SCALARS, STRINGS, STRUCT, TAGS, TAG = 10, 11, 12, 13, 14, 15, 16, 17
VARINT, VARLONG = 18, 19
NULLABLE, COMPACT, ZIGZAG, RECORDS, REST, TAG_NULLABLE = 1, 2, 4, 8, 16, 32

_HEADER = "header response 0-1 flexible 1+\n    correlation_id int32 correlation_id\n"
_SAMPLE = """api 200 Sample 0-1 flexible 1+

request
    name   string?1+  topic
    items  []
        id    int32     partition
        tags  [int16]?
    note   string  1+  tag 3

response
    error_code  int16  error
"""


def _ops(program: Program) -> list[tuple[int, ...]]:
    magic, count, flags, reserved = struct.unpack_from("<4sIII", program.code)
    assert (magic, flags, reserved) == (b"KWP1", 0, 0)
    assert len(program.code) == 16 + 16 * count
    assert len(program.fields) == len(program.paths) == count
    return [struct.unpack_from("<BBBBIII", program.code, 16 + 16 * index) for index in range(count)]


def _schema(text: str, version: int) -> list[tuple[int, ...]]:
    return _ops(compile_schema(parse_layout(text, "a.layout").messages[0], version))


def _sample(version: int) -> Program:
    header = parse_layout(_HEADER, "headers.layout").messages[0]
    request = parse_layout(_SAMPLE, "a.layout").messages[0]
    return compile_message(request, version, api=200, header=header, header_version=version)


def test_the_bytes_of_the_smallest_program() -> None:
    schema = parse_layout("schema One 0\n    producer_id int64 producer_id\n", "a.layout").messages[0]
    assert compile_schema(schema, 0).code == bytes.fromhex(
        "4b575031 04000000 00000000 00000000"
        "0f000000 03000000 00000000 00000000"  # STRUCT, over at 3
        "05001508 00000000 00000000 00000000"  # INT64, meaning 21, 8 bytes
        "00000000 00000000 00000000 00000000"
        "00000000 00000000 00000000 00000000"
    )


def test_a_classic_message() -> None:
    assert _ops(_sample(0)) == [
        (STRUCT, 0, 0, 0, 3, 0, 0),
        (INT32, 0, 14, 4, 0, 0, 0),
        (END, 0, 0, 0, 0, 0, 0),
        (STRUCT, 0, 0, 0, 10, 0, 0),
        (STRING, 0, 1, 0, 0, 0, 0),
        (ARRAY, 0, 0, 0, 9, 8, 0),
        (INT32, 0, 3, 4, 0, 0, 0),
        (SCALARS, NULLABLE, 0, 2, 0, 2, INT16),
        (END, 0, 0, 0, 0, 0, 0),
        (END, 0, 0, 0, 0, 0, 0),
        (END, 0, 0, 0, 0, 0, 0),
    ]


def test_a_flexible_message_has_compact_lengths_and_tags() -> None:
    assert _ops(_sample(1)) == [
        (STRUCT, 0, 0, 0, 4, 0, 0),
        (INT32, 0, 14, 4, 0, 0, 0),
        (TAGS, 0, 0, 0, 3, 0, 0),
        (END, 0, 0, 0, 0, 0, 0),
        (STRUCT, 0, 0, 0, 15, 0, 0),
        (STRING, NULLABLE | COMPACT, 1, 0, 0, 0, 0),
        (ARRAY, COMPACT, 0, 0, 11, 6, 0),
        (INT32, 0, 3, 4, 0, 0, 0),
        (SCALARS, NULLABLE | COMPACT, 0, 2, 0, 2, INT16),
        (TAGS, 0, 0, 0, 10, 0, 0),
        (END, 0, 0, 0, 0, 0, 0),
        (TAGS, 0, 0, 0, 14, 0, 1),
        (TAG, 0, 0, 0, 14, 0, 3),
        (STRING, COMPACT, 0, 0, 0, 0, 0),
        (END, 0, 0, 0, 0, 0, 0),
        (END, 0, 0, 0, 0, 0, 0),
    ]


def test_paths_and_fields_stand_at_their_op() -> None:
    program = _sample(1)
    assert program.paths == (
        "header",
        "header.correlation_id",
        "header",
        "header",
        "",
        "name",
        "items",
        "items.id",
        "items.tags",
        "items",
        "items",
        "",
        "note",
        "note",
        "",
        "",
    )
    named = {index: field.name for index, field in enumerate(program.fields) if field is not None}
    assert named == {1: "correlation_id", 5: "name", 6: "items", 7: "id", 8: "tags", 12: "note", 13: "note"}
    assert (program.api, program.name, program.version, program.direction) == (200, "Sample", 1, 0)


def test_tags_are_ascending_whatever_their_order_in_the_text() -> None:
    text = "schema S 0 flexible 0+\n  late int8 tag 7\n  inline int8\n  soon {}? tag 2\n    a uuid topic_id\n"
    assert _schema(text, 0) == [
        (STRUCT, 0, 0, 0, 11, 0, 0),
        (INT8, 0, 0, 1, 0, 0, 0),
        (TAGS, 0, 0, 0, 10, 0, 2),
        (TAG, 0, 0, 0, 8, 0, 2),
        (STRUCT, TAG_NULLABLE, 0, 0, 8, 0, 0),
        (UUID, 0, 2, 16, 0, 0, 0),
        (TAGS, 0, 0, 0, 7, 0, 0),
        (END, 0, 0, 0, 0, 0, 0),
        (TAG, 0, 0, 0, 10, 0, 7),
        (INT8, 0, 0, 1, 0, 0, 0),
        (END, 0, 0, 0, 0, 0, 0),
        (END, 0, 0, 0, 0, 0, 0),
    ]


def test_a_struct_inside_an_array_counts_as_one_byte_when_it_may_be_null() -> None:
    text = "schema S 0-1\n  list []\n    inner {}?1\n      a int64\n      b int64\n"
    assert _schema(text, 0)[1:3] == [(ARRAY, 0, 0, 0, 7, 16, 0), (STRUCT, 0, 0, 0, 6, 0, 0)]
    assert _schema(text, 1)[1:3] == [(ARRAY, 0, 0, 0, 7, 1, 0), (STRUCT, NULLABLE, 0, 0, 6, 0, 0)]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (0, [(STRINGS, 0, 1, 0, 0, 2, STRING), (STRINGS, NULLABLE, 0, 0, 0, 4, BYTES)]),
        (1, [(STRINGS, COMPACT, 1, 0, 0, 1, STRING), (STRINGS, NULLABLE | COMPACT, 0, 0, 0, 1, BYTES)]),
    ],
)
def test_arrays_of_strings_know_the_least_size_of_an_element(
    version: int, expected: list[tuple[int, ...]]
) -> None:
    text = "schema S 0-1 flexible 1+\n  topics [string] topic\n  blobs [bytes]?\n"
    assert _schema(text, version)[1:3] == expected


def test_records_rest_and_the_string_that_is_never_compact() -> None:
    text = (
        "schema S 0 flexible 0+\n  client_id string16? client_id\n  records records? records\n  tail rest\n"
    )
    assert _schema(text, 0)[1:4] == [
        (STRING, NULLABLE, 13, 0, 0, 0, 0),
        (BYTES, NULLABLE | COMPACT | RECORDS, 12, 0, 0, 0, 0),
        (BYTES, REST, 0, 0, 0, 0, 0),
    ]


def test_a_record_of_format_2_is_all_zigzag() -> None:
    fields = "  d varlong\n  o varint\n  key bytes?\n  headers []\n    key string\n    value bytes?\n"
    text = "schema R 2 zigzag\n" + fields
    assert _schema(text, 2) == [
        (STRUCT, 0, 0, 0, 9, 0, 0),
        (VARLONG, 0, 0, 0, 0, 0, 0),
        (VARINT, 0, 0, 0, 0, 0, 0),
        (BYTES, NULLABLE | ZIGZAG, 0, 0, 0, 0, 0),
        (ARRAY, ZIGZAG, 0, 0, 8, 2, 0),
        (STRING, ZIGZAG, 0, 0, 0, 0, 0),
        (BYTES, NULLABLE | ZIGZAG, 0, 0, 0, 0, 0),
        (END, 0, 0, 0, 0, 0, 0),
        (END, 0, 0, 0, 0, 0, 0),
        (END, 0, 0, 0, 0, 0, 0),
    ]


def test_a_tag_op_has_no_meaning_of_its_own() -> None:
    """The value op after it has it; a reader that goes by meaning must not see the field twice."""
    ops = _schema("schema S 0 flexible 0+\n  a string topic tag 0\n", 0)
    assert [(op[0], op[2]) for op in ops if op[0] in (TAG, STRING)] == [
        (TAG, 0),
        (STRING, int(Meaning.TOPIC)),
    ]
