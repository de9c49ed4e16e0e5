"""Short texts of views: each edge."""

from __future__ import annotations

import pytest

from kwsniff.view.call import _in_nanoseconds
from kwsniff.view.formats import in_zone, plural, shorten
from kwsniff.zones import UTC_ZONE

LAST = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z in milliseconds."""


@pytest.mark.parametrize(("length", "is_whole"), [(119, True), (120, True), (121, False)])
def test_a_text_of_120_characters_is_whole(length: int, is_whole: bool) -> None:
    text = "x" * length
    assert shorten(text) == (text if is_whole else "x" * 120 + "...")


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "0"),
        (-1, "-1"),
        (1, "1970-01-01 00:00:00.001 UTC"),
        (1_700_000_000_123, "2023-11-14 22:13:20.123 UTC"),
        (LAST, "9999-12-31 23:59:59.999 UTC"),
        (LAST + 1, str(LAST + 1)),
    ],
)
def test_timestamps_are_times_where_they_are_some(milliseconds: int, shown: str) -> None:
    assert in_zone(milliseconds, UTC_ZONE) == shown


@pytest.mark.parametrize(
    ("number", "word", "shown"),
    [
        (1, "batch", "1 batch"),
        (2, "batch", "2 batches"),
        (0, "record", "0 records"),
        (1, "record", "1 record"),
    ],
)
def test_words_agree_with_their_number(number: int, word: str, shown: str) -> None:
    assert plural(number, word) == shown


def test_nanoseconds_have_nine_digits() -> None:
    assert _in_nanoseconds(1_700_000_000_000_000_007) == "2023-11-14T22:13:20.000000007Z"
