"""A line of figures per interval, from a window made by hand."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kwsniff.cli.live.lines import in_words, interval_line, overdue_words, pressing
from kwsniff.live.overdue_responses import Overdue, OverdueResponses
from kwsniff.live.rebalances import UnderWay
from kwsniff.live.session import Progress
from kwsniff.live.window import Figures, Window

S = 1_000_000_000


def figures(calls: int, errors: int = 0, *times: int) -> Figures:
    found = Figures(calls, errors)
    if times:
        found.times["broker"].append(np.array(times))
    return found


def test_a_line_has_rates_the_slowest_api_and_the_most_frequent_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """30 calls in 10 s. Fetch is slow at most times; Produce is slower at its 95th percentile."""
    clock = SimpleNamespace(now=100.0)
    window = Window(10.0, now=lambda: clock.now)
    clock.now += 50
    window.clock = lambda: 1_700_000_000.0
    apis = {
        "Fetch": figures(10, 0, *[5_000_000] * 10),
        "Produce": figures(10, 0, *[1_000_000] * 8, 70_000_000, 80_000_000),
    }
    brokers = {"a:9092": figures(20, 4), "b:9092": figures(10, 1)}
    monkeypatch.setattr(Window, "figures", lambda _, name: {"apis": apis, "brokers": brokers}[name])
    counts: dict[Any, int] = {("RARE", "Fetch", ""): 1, ("OFTEN", "Produce", "orders"): 4}
    monkeypatch.setattr(window, "error_counts", lambda: Counter(counts))
    line = interval_line(window, Progress(1, 2, 7, None, 3, None)).split("  ")
    assert line == [
        "2023-11-14 22:13:20 UTC",
        "calls/s 3.0",
        "errors/s 0.5",
        "slowest Produce p95 80 ms",
        "4 OFTEN Produce orders",
        "waiting 7",
        "dropped 3",
    ]


def overdue(brokers: int, clients: int) -> OverdueResponses:
    found = OverdueResponses(1, total=Overdue(5, 2 * S))
    for dimension, number in (("brokers", brokers), ("clients", clients)):
        found.by_dimension[dimension] = {
            f"{dimension[0]}{each}": Overdue(1, (9 - each) * S) for each in range(number)
        }
    return found


@pytest.mark.parametrize(
    ("brokers", "words"), [(1, "b0"), (2, "b0, b1"), (3, "b0, b1, 1 more"), (5, "b0, b1, 3 more")]
)
def test_the_longest_overdue_are_named_and_the_others_counted(brokers: int, words: str) -> None:
    assert overdue_words(overdue(brokers, 1)) == f"5 responses, the oldest for 2 s: {words}; to c0"


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        (("a",), "waits for a"),
        (("a", "b", "c"), "waits for a, b, c"),
        (("a", "b", "c", "d"), "waits for a, b, c and 1 more"),
    ],
)
def test_members_that_are_missing_are_named(missing: tuple[str, ...], words: str) -> None:
    each = UnderWay("g", 90 * S, "join", ("x", "y"), missing)
    assert in_words(each, 100 * S) == f"g for 10 s, {words} (2 members there)"


@pytest.mark.parametrize(
    ("phase", "words"), [("join", "waits for further members"), ("sync", "waits for its coordinator")]
)
def test_where_nobody_is_missing_the_phase_says_what_is_waited_for(phase: str, words: str) -> None:
    assert words in in_words(UnderWay("g", 0, phase, (), ()), S)


def test_problems_and_warnings_without_a_cause_press() -> None:
    given: list[Any] = [
        SimpleNamespace(finding=SimpleNamespace(severity=severity, explained_by=cause))
        for severity in ("problem", "warning", "info")
        for cause in (None, "broker_stalled")
    ]
    assert pressing(given) == [given[0], given[2]]
