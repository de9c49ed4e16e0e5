"""Drawings: where shapes and ticks are, by arithmetic, and that texts stay texts."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from kwsniff.report.drawing import Box, Drawing, Mark, draw_stack, find_numbers, find_times
from kwsniff.report.span import Span

HOUR_MS = 3_600_000
BEGIN_MS = 1_700_000_000_000  # 2023-11-14 22:13:20 UTC


def paths(drawing: Drawing) -> list[str]:
    return re.findall(r'<path fill="#000000"[^>]* d="([^"]*)"', drawing.html)


def test_a_box_is_where_its_values_are_from_the_top_left_in_thousandths_and_pixels() -> None:
    drawing = Drawing(x=(10.0, 20.0), y=(0.0, 4.0), height=200)
    drawing.marks.append(Mark(colour="#000000", kind="boxes", boxes=[Box(12.5, 15.0, 1.0, 3.0)]))
    assert paths(drawing) == ["M250 50h250v100h-250z"]


def test_what_is_outside_of_the_axes_ends_at_their_edges() -> None:
    drawing = Drawing(x=(10.0, 20.0), y=(0.0, 4.0), height=200)
    drawing.marks.append(Mark(colour="#000000", kind="boxes", boxes=[Box(-5.0, 99.0, -1.0, 9.0)]))
    assert paths(drawing) == ["M0 0h1000v200h-1000z"]


def test_a_box_without_length_can_still_be_seen() -> None:
    drawing = Drawing(x=(0.0, 10.0), y=(0.0, 1.0), height=100)
    drawing.marks.append(Mark(colour="#000000", kind="boxes", boxes=[Box(5.0, 5.0, 0.0, 1.0)]))
    assert paths(drawing) == ["M500 0h0.5v100h-0.5z"]


def test_texts_are_escaped() -> None:
    words = "</title><script>alert(1)</script>"
    drawing = Drawing(
        x=(0.0, 1.0), y=(0.0, 1.0), height=10, title=words, unit=words,
        x_ticks=[(0.0, words)], y_ticks=[(0.0, words)], right_ticks=[(0.0, words)],
    )  # fmt: skip
    drawing.marks.append(Mark(colour="#000000", kind="line", points=[(0, 0), (1, 1)], name=words))
    drawing.regions.append((Box(0, 1, 0, 1), words))
    assert "<script" not in drawing.html
    assert drawing.html.count("&lt;script&gt;") == 7


@pytest.mark.parametrize(
    ("top", "shown"),
    [
        (0, ["0"]),
        (float("inf"), ["0"]),
        (1, ["0.0", "0.5", "1.0"]),
        (4, ["0", "1", "2", "3", "4"]),
        (15.3, ["0", "5", "10", "15"]),
        (0.09, ["0.00", "0.05"]),
        (3456, ["0", "1,000", "2,000", "3,000"]),
    ],
)
def test_ticks_are_steps_of_one_two_or_five(top: float, shown: list[str]) -> None:
    ticks = find_numbers(top)
    assert [words for _, words in ticks] == shown
    assert [float(words.replace(",", "")) for _, words in ticks] == pytest.approx([at for at, _ in ticks])


@pytest.mark.parametrize("long", [0.12, 7, 900, 9_300, 61_000, HOUR_MS, 30 * HOUR_MS, 2000 * HOUR_MS])
def test_ticks_of_time_are_few_and_say_the_time_that_they_are_at(long: float) -> None:
    ticks = find_times(BEGIN_MS, BEGIN_MS + long)
    assert 1 <= len(ticks) <= 6
    for at, words in ticks:
        assert BEGIN_MS <= at <= BEGIN_MS + long
        time = datetime.fromtimestamp(at / 1000, UTC)
        assert words in f"{time:%m-%d %H:%M:%S.%f}"


def test_parts_of_a_bar_stand_on_one_another_and_have_one_tooltip() -> None:
    parts = {"broker": [1.0, 0.0], "network": [2.0, 0.5]}
    drawing = draw_stack(Span(0, 1000), [3, 7], parts, height=100, unit="calls", lines=[["a"], ["b"]])
    spans = {mark.name: [(box.bottom, box.top) for box in mark.boxes] for mark in drawing.marks}
    assert spans == {"broker": [(0.0, 1.0)], "network": [(1.0, 3.0), (0.0, 0.5)]}
    assert [box.left for mark in drawing.marks for box in mark.boxes] == [3.0, 3.0, 7.0]
    assert [words.splitlines()[1:] for _, words in drawing.regions] == [["a"], ["b"]]
    assert drawing.y[1] >= 3.0
