"""Values of a query on the screen."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from kwsniff.cli.sql import _MOST_ROWS, _is_number, _write_table
from kwsniff.zones import UTC_ZONE, parse_zone


def shown(rows: list[list[Any]], zone: Any = UTC_ZONE) -> list[str]:
    out = io.StringIO()
    _write_table(["a"], iter(rows), out, zone)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("more", [0, 1])
def test_a_screen_has_so_many_rows_and_a_note_says_so(more: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(shown([[number] for number in range(_MOST_ROWS + more)])) == 1 + _MOST_ROWS
    assert ("shows the first" in capsys.readouterr().err) == bool(more)


@pytest.mark.parametrize(
    ("value", "is_number"),
    [(1, True), (1.5, True), (Decimal(1), True), (None, True), (True, False), ("1", False)],
)
def test_numbers_are_at_the_right(value: Any, is_number: bool) -> None:
    assert _is_number(value) == is_number


def test_times_are_in_the_zone_that_was_asked_for() -> None:
    rows: list[list[Any]] = [[datetime(2026, 11, 20, 12, 0, 0, 5, UTC)], [None]]
    assert shown(rows)[1] == "2026-11-20 12:00:00.000005 UTC"
    assert shown(rows, parse_zone("+02:00"))[1].startswith("2026-11-20 14:00:00.000005 ")
