"""What a capture cannot show, in sentences; and which part of the slowest calls took most."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.findings import context
from kwsniff.findings.context import list_not_seen, list_slowest

NOTHING = {
    "sealed": 0,
    "one_sided": 0,
    "not_captured": 0,
    "begun_before": 0,
    "no_capture_point": 0,
    "connections": 4,
    "seconds": 3600.0,
}


def said(**changed: Any) -> list[str]:
    *found, always = list_not_seen({**NOTHING, **changed})
    assert always == list_not_seen(NOTHING)[0]
    return found


@pytest.mark.parametrize(("seconds", "is_short"), [(59.9, True), (60.0, False), (None, False)])
def test_less_than_a_minute_is_short(seconds: float | None, is_short: bool) -> None:
    assert bool(said(seconds=seconds)) == is_short


@pytest.mark.parametrize(("unknown", "is_said"), [(0, False), (3, False), (4, True)])
def test_the_capture_point_is_unknown_where_no_connection_tells_it(unknown: int, is_said: bool) -> None:
    assert bool(said(no_capture_point=unknown)) == is_said


@pytest.mark.parametrize("name", ["sealed", "one_sided", "not_captured", "begun_before"])
def test_each_gap_is_a_sentence_with_its_number(name: str) -> None:
    (one,), (many,) = said(**{name: 1}), said(**{name: 1234})
    assert one.startswith("1 ")
    assert many.startswith("1,234 ")


def test_the_largest_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"broker": 5, "network": 9, "queued": 1, "transmission": 0, "replicas": 2},
        {"broker": 5, "network": 4, "queued": 1, "transmission": 0, "replicas": 20},
    ]
    monkeypatch.setattr(context, "fetch", lambda *_: rows)
    assert [row["mostly"] for row in list_slowest(None)] == ["network", "replicas"]  # type: ignore[arg-type]
