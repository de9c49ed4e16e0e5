"""Figures of a window at their edges, from rows made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwsniff.core.declared import ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.live import window as window_room
from kwsniff.live.calls import Times
from kwsniff.live.window import OTHERS, Figures, Window, rank_figures
from kwsniff.tables.build import Builder
from tests.tables.columns import table


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def one_each(**counts: tuple[int, int, int]) -> dict[str, Figures]:
    """Key -> calls, errors, unanswered."""
    return {key: Figures(*numbers) for key, numbers in counts.items()}


def test_trouble_is_late_responses_then_errors_and_unanswered_calls_then_calls() -> None:
    figures = one_each(
        quiet=(500, 0, 0), busy=(900, 0, 0), errors=(10, 5, 0), silent=(10, 0, 7), both=(10, 4, 4),
        late=(1, 0, 0),
        later=(1, 0, 0),
    )  # fmt: skip
    overdue = {"late": 10**9, "later": 2 * 10**9}
    ordered = rank_figures(figures, "trouble", lambda key: overdue.get(key, 0))
    assert [key for key, _, _ in ordered] == ["later", "late", "both", "silent", "errors", "busy", "quiet"]


def test_a_step_counts_until_it_is_older_than_the_window() -> None:
    clock = Clock()
    window = Window(10.0, now=clock)
    window.add({"api_calls": handed({"client_id": [b"a", b"b", b"c"]})})
    clock.now += 10.0
    assert sum(found.calls for found in window.figures("apis").values()) == 3
    clock.now += 0.001
    assert window.figures("apis") == {}


def test_figures_of_several_steps_are_added_up() -> None:
    window = Window(10.0, now=Clock())
    for step in (1, 2):
        calls = {"status": ["unanswered", "unanswered", "answered"], "error_count": [0, 0, step]}
        window.add({"api_calls": handed(calls)})
    (found,) = window.figures("brokers").values()
    assert (found.calls, found.errors, found.unanswered) == (6, 2, 4)
    assert (window.calls, window.errors, window.unanswered) == (6, 2, 4)


def handed(given: dict[str, Any]) -> pa.RecordBatch:
    """Rows of api_calls as the core hands them over."""
    rows = len(next(iter(given.values())))
    batch: pa.RecordBatch = Builder(load_catalog(), ENUMS).build(
        "api_calls", table("api_calls", rows, **given)
    )
    return batch


def test_calls_with_a_missing_packet_are_counted() -> None:
    window = Window(10.0, now=Clock())
    reasons: list[object] = ["segment_not_captured", "cut_by_snaplen", None, "open_at_end"]
    window.add({"api_calls": handed({"reason": reasons})})
    assert window.not_captured == 2


def test_a_part_that_took_no_time_is_a_part() -> None:
    """Three calls did not wait in line, and one did: its wait is the greatest, not the median."""
    nothing = np.array([-1, -1, -1, -1])
    queue = np.array([0, 0, 0, 900])
    figures = Figures()
    figures.add(4, 0, 0, Times(np.array([5, 6, 7, 8]), nothing, queue, nothing))
    assert figures.percentiles((50, 100), "queue") == [0, 900]
    assert figures.percentiles((50, 100), "network") == [None, None]  # unknown: not the whole latency
    assert figures.percentiles((50, 100), "broker") == [6, 8]


def test_errors_have_the_topic_else_the_group_and_a_code_without_a_name() -> None:
    window = Window(10.0, now=Clock())
    given: dict[str, Any] = {
        "error_code": [3, 25, 999],
        "api_key": [1, 12, 1],
        "topic": [b"orders", None, None],
        "group_id": [b"billing", b"billing", None],
    }
    batch = Builder(load_catalog(), ENUMS).build("error_codes", table("error_codes", 3, **given))
    window.add({"error_codes": batch})
    assert set(window.error_counts()) == {
        ("UNKNOWN_TOPIC_OR_PARTITION", "Fetch", "orders"),
        ("UNKNOWN_MEMBER_ID", "Heartbeat", "billing"),
        ("error 999", "Fetch", ""),
    }


def test_last_calls_are_bounded_and_newest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_room, "_LAST_ROWS", 5)
    window = Window(10.0, now=Clock())
    for step in range(4):
        window.add({"api_calls": handed({"correlation_id": [10 * step, 10 * step + 1, 10 * step + 2]})})
    found = [call["correlation_id"] for call in window.last_calls(100)]
    assert found == [32, 31, 30, 22, 21, 20]
    assert [call["correlation_id"] for call in window.last_calls(4)] == [32, 31, 30, 22]


@pytest.mark.parametrize("more", [0, 1])
def test_the_bound_of_keys_is_exact(monkeypatch: pytest.MonkeyPatch, more: int) -> None:
    monkeypatch.setattr(window_room, "MOST_KEYS", 4)
    window = Window(10.0, now=Clock())
    window.add({"api_calls": handed({"client_id": [b"c%d" % number for number in range(4 + more)]})})
    assert len(window.figures("clients")) == 4 + more
    assert (OTHERS in window.figures("clients")) == bool(more)


@pytest.mark.parametrize("order", ["p50", "p95", "p99"])
def test_the_slowest_comes_first(order: str) -> None:
    figures = {}
    for key, taken in {"slow": 900, "fast": 10, "middle": 100}.items():
        figures[key] = Figures(1)
        figures[key].times["broker"].append(np.array([taken]))
    figures["unknown"] = Figures(1)
    assert [key for key, _, _ in rank_figures(figures, order)] == ["slow", "middle", "fast", "unknown"]
