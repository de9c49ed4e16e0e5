"""Layout text to model, and the one-line errors for text that is wrong."""

import re

import pytest

from kwsniff.errors import LayoutError
from kwsniff.layout.grammar import parse_api_line, parse_layout
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import OPEN, Versions

_API = "api 9 Sample 0-8 flexible 6+\n"


def test_a_field_has_name_type_meaning_versions_and_tag() -> None:
    layout = parse_layout(
        _API + "\nrequest\n    cluster_id  string?7+  cluster_id  6+  tag 2 = null\n", "a.layout"
    )
    (field,) = layout.messages[0].fields
    assert (field.name, field.type, field.array, field.meaning) == (
        "cluster_id",
        "string",
        False,
        Meaning.CLUSTER_ID,
    )
    assert field.versions == Versions(6, 8)
    assert field.nullable == Versions(7, 8)
    assert (field.tag, field.default, field.line) == (2, "null", 4)


def test_children_have_the_versions_of_their_parent_unless_they_say_otherwise() -> None:
    text = _API + "request\n    groups [] 3-6\n        name string\n        epoch int32 5+\n    last int8\n"
    groups, last = parse_layout(text, "a.layout").messages[0].fields
    assert [(child.name, child.versions) for child in groups.children] == [
        ("name", Versions(3, 6)),
        ("epoch", Versions(5, 6)),
    ]
    assert last.versions == Versions(0, 8)


def test_dedent_returns_to_the_struct_at_that_column() -> None:
    text = _API + "request\n  a []\n    b {}\n      c int8\n    d int8\n  e int8\nresponse\n  f int8\n"
    request, response = parse_layout(text, "a.layout").messages
    assert [field.name for field in request.fields] == ["a", "e"]
    assert [field.name for field in request.fields[0].children] == ["b", "d"]
    assert [field.name for field in response.fields] == ["f"]


def test_comments_and_empty_lines_say_nothing() -> None:
    layout = parse_layout(_API + "# words\n\nrequest   # more\n    a int8   # words\n", "a.layout")
    assert [field.name for field in layout.messages[0].fields] == ["a"]


def test_the_api_line_gives_key_name_and_versions() -> None:
    api = parse_api_line("api 17 SaslHandshake 0-1", "17_sasl_handshake.layout")
    assert (api.key, api.name, api.min_version, api.max_version) == (17, "SaslHandshake", 0, 1)
    assert api.flexible_from == OPEN
    assert parse_api_line("api 9 OffsetFetch 0-10 flexible 6+", "x").flexible_from == 6


def test_a_schema_may_skip_versions() -> None:
    (schema,) = parse_layout("schema Key 0,2-3 type 7\n    group string\n", "a.layout").messages
    assert schema.versions == (0, 2, 3)
    assert schema.number == 7


def test_coded_values_carry_the_name_of_their_enum() -> None:
    text = (
        _API + "request\n    a int8 enum.acl_operation\n    b int8 isolation\n    c [int8] enum.compression\n"
    )
    fields = parse_layout(text, "a.layout").messages[0].fields
    assert [field.enum for field in fields] == ["acl_operation", "isolation_level", "compression"]


@pytest.mark.parametrize(
    ("body", "line", "word"),
    [
        ("request\n    a strng", 3, "strng"),
        ("request\n    a int32?", 3, "int32?"),
        ("request\n    a [varint]", 3, "[varint]"),
        ("request\n    a [int24]", 3, "[int24]"),
        ("request\n    a", 3, "a"),
        ("request\n    BadName int8", 3, "BadName"),
        ("request\n    a string topik", 3, "topik"),
        ("request\n    a int8 enum", 3, "enum"),
        ("request\n    a string topic.x", 3, "topic.x"),
        ("request\n    a int8 3~5", 3, "3~5"),
        ("request\n    a int8 7-3", 3, "7-3"),
        ("request\n    a int8 3+ tagg 4", 3, "tagg"),
        ("request\n    a int8 3+ tag x", 3, "x"),
        ("request\n    a int8 tag 4 =", 3, "="),
        ("request\n    a int8 tag 4 = 1 2", 3, "="),
        ("request\n    a int8\n        b int8", 4, "b"),
        ("request\n    a []\n        b int8\n      c int8", 5, "c"),
        ("request\n    a int8\n   b int8", 4, "b"),
        ("    a int8", 2, "a"),
        ("answer\n    a int8", 2, "answer"),
        ("request\n\ta int8", 3, "tab"),
        ("\napi 3 Twice 0-1", 3, "api"),
        ("schema Thing 0+", 2, "0+"),
        ("schema Thing 0-1 flexible", 2, ""),
        ("schema Thing 0-1 flexibel 1+", 2, "flexibel"),
        ("alternate schema Thing 0", 2, "Thing"),
        ("use request 2 sometimes", 2, "use"),
    ],
)
def test_errors_name_file_line_and_word(body: str, line: int, word: str) -> None:
    with pytest.raises(LayoutError, match=rf"^09_sample\.layout:{line}: .*{re.escape(word)}") as caught:
        parse_layout(_API + body + "\n", "09_sample.layout")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "internal", "rendezvous"),
    [
        ("", False, False),
        (" internal", True, False),
        (" rendezvous", False, True),
        (" rendezvous internal", True, True),
    ],
)
def test_the_first_line_says_how_an_api_is_used(words: str, internal: bool, rendezvous: bool) -> None:
    api = parse_api_line(f"api 11 JoinGroup 0-9 flexible 6+{words}", "11_join_group.layout")
    assert (api.flexible_from, api.traits.internal, api.traits.rendezvous) == (6, internal, rendezvous)


def test_the_first_line_says_what_findings_ask() -> None:
    line = "api 78 ShareFetch 0-2 records acquired sasl controller topics created describe share acl read"
    traits = parse_api_line(line, "78_share_fetch.layout").traits
    assert (traits.records, traits.sasl, traits.controller) == ("acquired", True, True)
    assert (traits.topics, traits.describe, traits.acl) == ("created", "share", "read")
    assert parse_api_line("api 78 ShareFetch 0-2", "78_share_fetch.layout").traits.acl == ""


@pytest.mark.parametrize(
    "line",
    [
        "api 1 Fetch 0-1 acl",
        "api 1 Fetch 0-1 acl consume",
        "api 1 Fetch 0-1 describe everything",
        "api 1 Fetch 0-1 topics created topics deleted",
        "",
        "request",
        "api 1",
        "api 1 Fetch 0-1 meeting",
        "api x Fetch 0-1",
        "api 1 Fetch 0+",
        "api 1 Fetch 4-3",
        "api 1 Fetch 0-1 flex 1+",
    ],
)
def test_a_wrong_first_line_is_an_error_of_line_one(line: str) -> None:
    with pytest.raises(LayoutError, match=r"^01_fetch\.layout:1: "):
        parse_api_line(line, "01_fetch.layout")


def test_a_typing_slip_gets_a_suggestion() -> None:
    with pytest.raises(LayoutError, match="did you mean int32"):
        parse_layout(_API + "request\n    a int23\n", "a.layout")
    with pytest.raises(LayoutError, match="did you mean throttle"):
        parse_layout(_API + "request\n    a int32 throtle\n", "a.layout")
