"""Numbers and texts as people read them: each edge."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from kwsniff.texts import display_filter, in_bytes, in_percent, in_time, json_pieces, json_text, plural


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (12_240, "12.2 kB"),
        (1_000_000, "1.0 MB"),
        (1_500_000_000, "1.5 GB"),
    ],
)
def test_sizes_are_decimal(number: int, shown: str) -> None:
    assert in_bytes(number) == shown


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (None, 1, ""),
        (0, 1, "0 %"),
        (0.5, 1, "50 %"),
        (0.01, 1, "1 %"),
        (0.054, 1, "5 %"),
        (0.0099, 1, "0.99 %"),
        (0.00123, 1, "0.12 %"),
        (0.0001, 1, "0.01 %"),
        (0.0000027, 1, "< 0.01 %"),
        (2, 3, "67 %"),
        (1, 8, "12 %"),
        (9, 40, "22 %"),
        (1, 1, "100 %"),
    ],
)
def test_small_shares_are_not_nothing(part: float | None, whole: float, shown: str) -> None:
    assert in_percent(part, whole) == shown


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [
        (None, ""),
        (0, "0 ns"),
        (1, "1 ns"),
        (999, "999 ns"),
        (1_000, "1 us"),
        (84_000, "84 us"),
        (1_000_000, "1 ms"),
        (99_900_000, "99.9 ms"),
        (100_400_000, "100 ms"),
        (999_000_000, "999 ms"),
        (1_000_000_000, "1 s"),
        (1_234_000_000, "1.23 s"),
        (1_234_000_000_000, "1234 s"),
    ],
)
def test_durations_have_three_digits(nanoseconds: int | None, shown: str) -> None:
    assert in_time(nanoseconds) == shown


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0 calls"), (1, "1 call"), (2, "2 calls"), (1234, "1,234 calls")]
)
def test_one_is_singular(number: int, shown: str) -> None:
    assert plural(number, "call") == shown


@pytest.mark.parametrize(
    ("frames", "port", "shown"),
    [
        ([(5, 5), (3, None)], 9092, "frame.number in {3, 5}"),
        ([(5, 6)], 4711, "frame.number in {5..6}"),  # no packet of another lies between
        ([(5, 7)], 4711, "frame.number in {5..7} and tcp.port == 4711"),
        ([(5, 7)], None, "frame.number in {5..7}"),
        ([(9, 9), (5, 5), (9, 9), (None, None)], None, "frame.number in {5, 9}"),
    ],
)
def test_display_filters(frames: Any, port: int | None, shown: str) -> None:
    assert display_filter(frames, port) == shown


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_json_has_neither_infinity_nor_nan(value: float) -> None:
    given = {"a": [value, 1.5], "b": {"c": value}, "d": "\u202e\x7f"}
    for text in (json_text(given), "".join(json_pieces(given))):
        assert json.loads(text) == {"a": [None, 1.5], "b": {"c": None}, "d": "\u202e\x7f"}
        assert text.isprintable()
