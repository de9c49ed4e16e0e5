"""Every rule of check.py: one layout that breaks it, and the line that is named."""

import pytest

from kwsniff.errors import LayoutError
from kwsniff.layout.check import check_layout, check_versions
from kwsniff.layout.grammar import parse_layout

_HEAD = "api 9 Sample 0-8 flexible 6+\nresponse\n    error_code int16 error\nrequest\n"


def _check(body: str) -> None:
    layout = parse_layout(_HEAD + body, "09_sample.layout")
    check_layout(layout)
    for message in layout.messages:
        check_versions(message)


_DEEP = "".join(f"{'  ' * level}a{level} []\n" for level in range(1, 9)) + "  " * 9 + "last int8\n"


@pytest.mark.parametrize(
    ("body", "line", "word"),
    [
        ("    a int8\n    a int16\n", 6, "a"),
        ("    a int8 0-3\n    a int16 3+\n", 6, "a"),
        ("    a int8 tag 1\n", 5, "tag 1"),
        ("    a int8 5+ tag 1\n", 5, "tag 1"),
        ("    a int8 6+ tag 1\n    b int8 7+ tag 1\n", 6, "tag 1"),
        ("    a [] 2-4\n        b int8 3-5\n", 6, "3-5"),
        ("    a [] 2-4\n        b int8 5+\n", 6, "5-4"),
        ("    a int8 9\n", 5, "a"),
        ("    a string?4+ 5+\n", 5, "4-8"),
        ("    a []\n", 5, "a"),
        ("    a [] 0-5\n        b int8 3-4\n", 5, "no bytes in version 0"),
        ("    a [] 0-5\n        b {}\n            c [int8] 4\n", 5, "no bytes in version 0"),
        ("    a []\n        b rest\n", 5, "no bytes"),
        ("    a int32 error\n", 5, "error"),
        ("    a string records\n", 5, "records"),
        ("    a uuid topic\n", 5, "topic"),
        ("    a [string] partition\n", 5, "partition"),
        (_DEEP, 13, "last"),
        ("    a int8\nrequest\n    a int8\n", 1, "request"),
    ],
)
def test_a_broken_rule_is_named_with_its_line(body: str, line: int, word: str) -> None:
    with pytest.raises(LayoutError, match=rf"^09_sample\.layout:{line}: .*{word}"):
        _check(body)


@pytest.mark.parametrize(
    "body",
    [
        "    a int8 0-3\n    a int16 4+\n",
        "    a int8 6-7 tag 1\n    b int8 8 tag 1\n",
        "    a [] 6+\n        b int8 7\n",
        "    a [string] topic\n    b [int32] partition\n",
        _DEEP.replace("a8 []", "a8 int8").rsplit("\n", 2)[0] + "\n",
    ],
)
def test_what_keeps_the_rules_passes(body: str) -> None:
    _check(body)


def test_an_api_needs_both_directions() -> None:
    with pytest.raises(LayoutError, match=r"^a\.layout:1: "):
        check_layout(parse_layout("api 9 Sample 0\nrequest\n    a int8\n", "a.layout"))
