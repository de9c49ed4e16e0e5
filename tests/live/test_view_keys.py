"""Edges of the live view's keys: the first and last row and page."""

from __future__ import annotations

import pytest

from kwsniff.cli.live.model import PAGES, ViewState


def pressed(*keys: str, **given: object) -> ViewState:
    state = ViewState(**given)  # type: ignore[arg-type]
    for key in keys:
        state.press(key)
    return state


@pytest.mark.parametrize(
    ("keys", "rows", "selected"),
    [
        (["up"], 3, 0),
        (["down"], 3, 1),
        (["down"] * 2, 3, 2),
        (["down"] * 3, 3, 2),
        (["down"] * 9 + ["up"], 3, 1),
        (["down"], 0, 0),
        (["j", "j", "k"], 3, 1),
    ],
)
def test_one_cannot_leave_the_rows(keys: list[str], rows: int, selected: int) -> None:
    assert pressed(*keys, rows=[str(each) for each in range(rows)]).selected == selected


@pytest.mark.parametrize(
    ("key", "page"),
    [("1", PAGES[1]), ("8", PAGES[8]), ("9", "topics"), ("0", "overview"), ("o", "overview")],
)
def test_numbers_are_pages(key: str, page: str) -> None:
    """There is no ninth."""
    assert len(PAGES) == 9
    assert pressed(key, page="topics").page == page


@pytest.mark.parametrize(
    ("keys", "page"),
    [
        (["tab"], PAGES[1]),
        (["right", "right"], PAGES[2]),
        (["backtab"], PAGES[-1]),
        (["left", "left"], PAGES[-2]),
        (["tab", "backtab"], PAGES[0]),
        (["tab"] * 9, PAGES[0]),
    ],
)
def test_tab_goes_round_both_ways(keys: list[str], page: str) -> None:
    assert pressed(*keys).page == page


def test_backspace_takes_the_last_character_of_a_filter() -> None:
    state = pressed("/", "a", "b", "space", "c", "backspace", "backspace", "enter")
    assert (state.filter, state.typing) == ("ab", False)
