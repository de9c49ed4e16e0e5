"""causes.txt: every error code has its usual cause, and names settings that exist."""

from __future__ import annotations

import pytest

from kwsniff.errors import LayoutError
from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.causes import parse_causes
from kwsniff.tables.schema import TABLES

SECRET = {"sasl.jaas.config", "delegation.token.secret.key"}
"""Of type PASSWORD, so not among those whose values may be shown."""
BLOCK = "26 INVALID_SESSION_TIMEOUT\n    cause    too short\n    do       Raise it.\n"


def test_every_error_code_has_a_cause() -> None:
    catalog = load_catalog()
    assert set(catalog.causes) == set(catalog.errors) - {0}
    assert {code: cause.name for code, cause in catalog.causes.items()} == {
        code: error.name for code, error in catalog.errors.items() if code
    }


def test_the_settings_are_kafkas_own() -> None:
    catalog = load_catalog()
    for cause in catalog.causes.values():
        for names in cause.settings.values():
            for name in names:
                assert catalog.settings.is_public(name) or name in SECRET, f"{cause.name}: {name}"


def test_what_was_asked_for_is_a_column_of_calls() -> None:
    columns = {column.name for column in TABLES["api_calls"].columns}
    asked = {cause.code: cause.asked for cause in load_catalog().causes.values() if cause.asked}
    assert {column for column, _ in asked.values()} <= columns
    assert (asked[26], asked[50]) == (
        ("timeout_ms", "session.timeout.ms"),
        ("timeout_ms", "transaction.timeout.ms"),
    )


def test_what_to_do_is_short() -> None:
    for cause in load_catalog().causes.values():
        assert not cause.cause.endswith("."), cause.name
        assert cause.do.endswith("."), cause.name
        for sentence in cause.do.split(". "):
            assert len(sentence.split()) <= 40, f"{cause.name}: {sentence}"


def test_a_block_has_lines_in_any_order() -> None:
    more = ("passes 30", "owner    broker", "client   a.b, c.d", "finding x, y", "asked acks acks")
    text = f"# causes\n\n{BLOCK}" + "".join(f"    {line}\n" for line in more)
    (cause,) = parse_causes(text, "causes.txt").values()
    assert (cause.code, cause.name, cause.cause, cause.do) == (
        26,
        "INVALID_SESSION_TIMEOUT",
        "too short",
        "Raise it.",
    )
    assert (cause.passes_s, cause.owner, cause.settings) == (30, "broker", {"client": ("a.b", "c.d")})
    assert (cause.findings, cause.asked) == (("x", "y"), ("acks", "acks"))
    (cause,) = parse_causes(BLOCK, "causes.txt").values()
    assert (cause.passes_s, cause.owner, cause.settings) == (None, "client", {})
    assert (cause.findings, cause.asked) == ((), None)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("    cause  too early\n", "causes.txt:1: 'cause  too early' is neither"),
        (f"{BLOCK}    why  x\n", "causes.txt:4: 'why  x' is neither"),
        (f"{BLOCK}26 again\n", "causes.txt:4: '26 again' is neither"),
        (f"{BLOCK}{BLOCK}", "causes.txt:4: '26' is already defined"),
        (f"{BLOCK}    owner nobody\n", "owner is one of client, broker, configuration"),
        (f"{BLOCK}    passes long\n", "passes takes seconds"),
        ("26 X\n    do   Raise it.\n", "causes.txt:1: X has no 'cause'"),
        ("26 X\n    cause  too short\n", "causes.txt:1: X has no 'do'"),
    ],
)
def test_a_wrong_line_is_named(text: str, wrong: str) -> None:
    with pytest.raises(LayoutError) as raised:
        parse_causes(text, "causes.txt")
    assert wrong in str(raised.value)
