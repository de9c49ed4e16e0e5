"""Which columns a width has room for: by counting characters."""

from __future__ import annotations

import pytest

from kwsniff.cli.text_tables import Grid, fit, plain, shorten, without, wrap

GRID = Grid(
    "All of it", ("name", "calls", "max", "reason"),
    [("shop", "1,234", "12 ms", "a b"), ("billing", "5", "900 ms", "several words")],
    ("name", "max", "reason"), "Some of it",
)  # fmt: skip
# name 7, calls 5, max 6, reason 13 at the most; 6 ("several" is 7) where it wraps; two between, two before.


def test_numbers_are_at_the_right_and_texts_at_the_left() -> None:
    assert [*plain(GRID)] == [
        "  name     calls     max  reason",
        "  shop     1,234   12 ms  a b",
        "  billing      5  900 ms  several words",
    ]


@pytest.mark.parametrize(
    ("width", "left_out", "title"),
    [
        (2 + 7 + 2 + 5 + 2 + 6 + 2 + 13, [], "All of it"),
        (2 + 7 + 2 + 5 + 2 + 6 + 2 + 13 - 1, ["calls"], "Some of it"),  # the least important one
        (2 + 7 + 2 + 6 + 2 + 13, ["calls"], "Some of it"),
    ],
)
def test_the_least_important_columns_go_first(width: int, left_out: list[str], title: str) -> None:
    found = fit(GRID, width)
    assert (found.left_out, found.title) == (left_out, title)
    assert max(map(len, found.lines)) <= width


def test_no_line_is_longer_than_the_width() -> None:
    for width in range(12, 60):
        found = fit(GRID, width)
        assert max(map(len, found.lines)) <= width, width
        assert "name" in found.lines[0] or width < 2 + 7


def test_sentences_share_the_room_that_is_left() -> None:
    """Of two, the more important one gets what it needs first."""
    grid = Grid("", ("name", "reason", "mostly"), [("n", "aaaa bbbb", "cccc dddd")], ("name", "reason"))
    # name 4, 9 and 9 with gaps: 26 with the indent. One less wraps the second, then both.
    assert len(fit(grid, 2 + 4 + 2 + 9 + 2 + 9).lines) == 2
    one_less = fit(grid, 2 + 4 + 2 + 9 + 2 + 8).lines
    assert one_less == ["  name  reason     mostly", "  n     aaaa bbbb  cccc", "                   dddd"]
    for width in range(20, 30):
        assert max(map(len, fit(grid, width).lines)) <= width


@pytest.mark.parametrize(("width", "shows_calls"), [(2 + 16 + 2 + 5, True), (2 + 16 + 2 + 5 - 1, False)])
def test_a_long_name_keeps_sixteen_characters_before_its_figure_goes(width: int, shows_calls: bool) -> None:
    grid = Grid("", ("name", "calls"), [("payments-consumer-eu-17", "1,234")], ("name",))
    found = fit(grid, width)
    assert ("calls" not in found.left_out) == shows_calls
    assert max(map(len, found.lines)) <= width


def test_one_column_can_be_left_out() -> None:
    found = without(GRID, "max")
    assert found.names == ("name", "calls", "reason")
    assert found.rows == [("shop", "1,234", "a b"), ("billing", "5", "several words")]
    assert found.importance == ("name", "reason")


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (13, ["several words"]),
        (12, ["several", "words"]),
        (7, ["several", "words"]),
        (6, ["sev…al", "words"]),
    ],
)
def test_texts_break_at_spaces(width: int, lines: list[str]) -> None:
    assert wrap("several words", width) == lines


@pytest.mark.parametrize(
    ("width", "shown"), [(8, "12345678"), (7, "123…678"), (6, "123…78"), (2, "1…"), (1, "…"), (0, "")]
)
def test_shortened_texts_keep_both_ends_and_fill_the_width(width: int, shown: str) -> None:
    assert shorten("12345678", width) == shown
