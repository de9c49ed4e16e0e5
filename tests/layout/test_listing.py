"""Programs back to words."""

from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.grammar import parse_layout
from kwsniff.layout.listing import Line, list_program
from kwsniff.layout.program import compile_schema

_TEXT = """schema S 0-1 flexible 1+
    name     string?  topic
    parts    []
        id   [int32]  partition
        in   {}?
            isolation  int8  isolation
    data     records  records
    late     {}?      1+  tag 4
        x    int64
    last     int64    1+  tag 9 = -1
"""


def _listed(version: int) -> list[tuple[int, str, str, bool, str, int | None]]:
    _, body = list_program(compile_schema(parse_layout(_TEXT, "a.layout").messages[0], version))
    return [(line.depth, line.name, line.encoding, line.null, line.meaning, line.tag) for line in body]


def test_a_classic_version() -> None:
    assert _listed(0) == [
        (0, "name", "string, int16 length", True, "topic", None),
        (0, "parts", "array of struct, int32 count", False, "", None),
        (1, "id", "array of int32, int32 count", False, "partition", None),
        (1, "in", "struct after an int8 mark", True, "", None),
        (2, "isolation", "int8", False, "isolation_level", None),
        (0, "data", "records, int32 length", False, "records", None),
    ]


def test_a_flexible_version_ends_every_struct_with_tags() -> None:
    assert _listed(1) == [
        (0, "name", "string, uvarint length + 1", True, "topic", None),
        (0, "parts", "array of struct, uvarint count + 1", False, "", None),
        (1, "id", "array of int32, uvarint count + 1", False, "partition", None),
        (1, "in", "struct after an int8 mark", True, "", None),
        (2, "isolation", "int8", False, "isolation_level", None),
        (2, "", "tagged section, 0 known", False, "", None),
        (1, "", "tagged section, 0 known", False, "", None),
        (0, "data", "records, uvarint length + 1", False, "records", None),
        (0, "", "tagged section, 2 known", False, "", None),
        (1, "late", "struct after a uvarint mark", True, "", 4),
        (2, "x", "int64", False, "", None),
        (2, "", "tagged section, 0 known", False, "", None),
        (1, "last", "int64", False, "", 9),
    ]


def test_the_default_of_a_tagged_field_is_said() -> None:
    _, body = list_program(compile_schema(parse_layout(_TEXT, "a.layout").messages[0], 1))
    assert body[-1] == Line(1, "last", "int64", False, "", 9, "-1")


def test_header_and_body_are_apart() -> None:
    program = load_catalog().program(18, 3, 1)
    assert program is not None
    header, body = list_program(program)
    assert [line.name for line in header] == ["correlation_id"]
    assert body[0].name == "error_code"


def test_every_program_can_be_listed() -> None:
    catalog = load_catalog()
    for api in catalog.apis.values():
        for version in range(api.min_version, api.max_version + 1):
            for direction in (0, 1):
                program = catalog.program(api.key, version, direction)
                assert program is not None
                header, body = list_program(program)
                named = [line.name for line in (*header, *body) if line.name]
                tags = sum(1 for index in range(len(program.fields)) if program.code[16 + 16 * index] == 17)
                assert len(named) == sum(field is not None for field in program.fields) - tags
