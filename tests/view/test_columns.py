"""Columns of the core as Python values, with and without nulls."""

from __future__ import annotations

from kwsniff.core.declared import ENUMS
from kwsniff.view.columns import nullable, texts, words
from tests.tables.columns import column


def test_numbers_and_texts_have_their_nulls() -> None:
    """More than eight rows: validity has a bit for each."""
    numbers = [5, None, 7, None, 9, 1, 2, 3, None, 4]
    assert nullable(column("int64", numbers)) == numbers
    assert nullable(column("int32", [1, 2])) == [1, 2]
    names = [b"a", None, b"b", b"a", None, b"", b"c", b"a", b"b", None]
    assert texts(column("string", names)) == [None if name is None else name.decode() for name in names]
    assert texts(column("string", [b"x"])) == ["x"]


def test_words_of_a_list_have_their_nulls() -> None:
    known = ENUMS["status"]
    given = [known[0], None, known[2], None, known[1], None, None, known[0], known[3], None]
    assert words(column("enum:status", given), "status", range(10)) == given
    assert words(column("enum:status", given), "status", [8, 1]) == [known[3], None]
