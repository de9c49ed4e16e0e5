"""names.txt: every field with text or bytes says whether it holds a name, and nothing else is in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kwsniff.errors import LayoutError
from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import Field, Message
from kwsniff.layout.names import UNKNOWN, parse_names

TEXTS = {"string", "string16", "bytes", "records", "rest"}
NOTHING: frozenset[str] = frozenset()


def messages() -> Iterator[Message]:
    catalog = load_catalog()
    for key in catalog.apis:
        layout = catalog.layout(key)
        assert layout is not None
        yield from layout.messages
    for name in catalog.schemas:
        message = catalog.schema_message(name)
        assert message is not None
        yield message
    yield from catalog.headers


def fields(below: tuple[Field, ...]) -> Iterator[Field]:
    for field in below:
        yield field
        yield from fields(field.children)


def test_every_field_with_text_or_bytes_is_classified() -> None:
    found = {
        (field.name, field.meaning): f"{message.file}:{field.line}"
        for message in messages()
        for field in fields(message.fields)
        if field.type in TEXTS
    }
    known = load_catalog().names.kinds
    assert {place: found[place] for place in found.keys() - known.keys()} == {}
    assert known.keys() - found.keys() == set()


@pytest.mark.parametrize(
    ("meaning", "kinds"),
    [
        (Meaning.SECRET, {"sasl", "value", "name"}),
        (Meaning.RECORDS, {"records"}),
        (Meaning.SASL_MECHANISM, {"word"}),
        *(
            (each, {"name"})
            for each in (Meaning.TOPIC, Meaning.GROUP, Meaning.HOST, Meaning.PRINCIPAL, Meaning.CONFIG_VALUE)
        ),
    ],
)
def test_what_a_meaning_says_is_what_names_txt_says(meaning: Meaning, kinds: set[str]) -> None:
    assert {kind for (_, each), kind in load_catalog().names.kinds.items() if each is meaning} <= kinds


def test_an_unknown_field_is_a_value() -> None:
    assert load_catalog().names.kind("no_such_field", Meaning.NONE) == UNKNOWN == "value"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("fields\n    topic topic nothing\n", 2),
        ("fields\n    topic no_meaning name\n", 2),
        ("fields\n    topic topic name\n    topic topic word\n", 3),
        ("other\n", 1),
        ("    early\n", 1),
    ],
)
def test_mistakes_are_refused_with_their_line(text: str, line: int) -> None:
    with pytest.raises(LayoutError, match=rf"names.txt:{line}"):
        parse_names(text, "names.txt", NOTHING)


def test_sections_may_come_twice() -> None:
    names = parse_names("words\n    a b # c\nwhole\n    __x\nwords\n    d\n", "names.txt", NOTHING)
    assert sorted(names.words) == ["a", "b", "d"]
    assert sorted(names.whole) == ["__x"]
