"""The text formats of metrics: every edge of a histogram, and what becomes of series beyond the bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kwsniff.live import prometheus
from kwsniff.live.prometheus import EDGES_S, IDLE_S, LONGEST_LABEL, MOST_SERIES, OTHER, Series

MS = 1_000_000


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def made(clock: Clock | None = None) -> Series:
    series = Series(clock or Clock())
    series.declare("calls", "counter", "Calls.", "api", "client")
    series.declare("latency_seconds", "histogram", "Latency.", "api")
    series.declare("late", "gauge", "Late.", "broker")
    return series


def lines(series: Series, name: str, *, openmetrics: bool = False) -> dict[str, str]:
    """What stands before the value -> the value, of one metric."""
    text = series.text(openmetrics=openmetrics)
    pairs = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {key: value for key, value in pairs if key.startswith(name)}


@pytest.mark.parametrize("edge", EDGES_S)
def test_a_bucket_holds_what_takes_as_long_as_its_edge(edge: float) -> None:
    """`le` is less or equal: a nanosecond more belongs to the next one."""
    nanoseconds = round(edge * 1e9)
    series = made()
    series.time("latency_seconds", np.array([nanoseconds - 1, nanoseconds, nanoseconds + 1]), "Fetch")
    found = lines(series, "kwsniff_latency_seconds_bucket")
    counts = {
        other: found[f'kwsniff_latency_seconds_bucket{{api="Fetch",le="{other!r}"}}'] for other in EDGES_S
    }
    assert {other: int(count) for other, count in counts.items()} == {
        other: 0 if other < edge else 2 if other == edge else 3 for other in EDGES_S
    }
    assert found['kwsniff_latency_seconds_bucket{api="Fetch",le="+Inf"}'] == "3"


def test_buckets_add_up_and_the_sum_is_in_seconds() -> None:
    """3 ms, 30 ms, 300 ms and 40 s: 40.333 s together."""
    series = made()
    for taken in ([3 * MS, 30 * MS], [300 * MS, 40_000 * MS]):
        series.time("latency_seconds", np.array(taken), "Fetch")
    found = lines(series, "kwsniff_latency_seconds")
    bucket = 'kwsniff_latency_seconds_bucket{{api="Fetch",le="{}"}}'
    counts = [int(found[bucket.format(edge)]) for edge in ("0.0025", "0.005", "0.025", "0.05", "1.0", "+Inf")]
    assert counts == [0, 1, 1, 2, 3, 4]
    assert float(found['kwsniff_latency_seconds_sum{api="Fetch"}']) == pytest.approx(40.333)
    assert found['kwsniff_latency_seconds_count{api="Fetch"}'] == "4"


def test_a_gauge_has_what_was_shown_last() -> None:
    series = made()
    series.show("late", {("a:9092",): 1, ("b:9092",): 2})
    series.show("late", {("b:9092",): 3})
    assert lines(series, "kwsniff_late") == {'kwsniff_late{broker="b:9092"}': "3"}
    series.show("late", {(f"{number}:9092",): number for number in range(MOST_SERIES + 5)})
    assert len(lines(series, "kwsniff_late")) == MOST_SERIES


def test_no_name_is_an_empty_label() -> None:
    series = made()
    series.count("calls", 2, "Fetch", None)
    assert lines(series, "kwsniff_calls") == {'kwsniff_calls_total{api="Fetch",client=""}': "2"}


@pytest.mark.parametrize(("length", "is_cut"), [(LONGEST_LABEL, False), (LONGEST_LABEL + 1, True)])
def test_a_label_is_cut_beyond_its_greatest_length(length: int, is_cut: bool) -> None:
    series = made()
    series.count("calls", 1, "Fetch", "x" * length)
    series.count("calls", 1, "Fetch", "x" * (length - 1) + "y")
    (first, second) = (key.split('client="')[1].rstrip('"}') for key in lines(series, "kwsniff_calls"))
    assert (first != "x" * length) == is_cut
    assert len(first) <= LONGEST_LABEL
    assert first != second


def test_openmetrics_names_a_counter_without_its_suffix_and_has_an_end() -> None:
    series = made()
    series.count("calls", 1, "Fetch", "shop")
    text = series.text(openmetrics=True)
    assert text.endswith("# EOF\n")
    assert "# TYPE kwsniff_calls counter" in text
    assert 'kwsniff_calls_total{api="Fetch",client="shop"} 1' in text
    plain = series.text()
    assert "# EOF" not in plain
    assert "# TYPE kwsniff_calls_total counter" in plain


def counted(series: Series, *clients: str, api: str = "Fetch") -> None:
    for client in clients:
        series.count("calls", 1, api, client)


def clients(series: Series) -> list[str]:
    return [key.split('client="')[1].rstrip('"}') for key in lines(series, "kwsniff_calls")]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "MOST_SERIES", 3)


@pytest.mark.usefixtures("few")
def test_series_that_are_idle_make_room_and_those_in_use_stay() -> None:
    clock = Clock()
    series = made(clock)
    counted(series, "a", "b", "c")
    clock.now += IDLE_S - 1
    counted(series, "a")  # in use again, though it came first
    clock.now += 2
    counted(series, "d")
    assert clients(series) == ["a", "d"]
    counted(series, "e", "f")
    assert clients(series) == ["a", "d", "e", OTHER]


@pytest.mark.usefixtures("few")
def test_without_idle_series_a_new_one_is_other() -> None:
    clock = Clock()
    series = made(clock)
    counted(series, "a", "b", "c")
    clock.now += IDLE_S - 1
    counted(series, "d", "e")
    found = lines(series, "kwsniff_calls")
    assert found[f'kwsniff_calls_total{{api="Fetch",client="{OTHER}"}}'] == "2"
    assert clients(series) == ["a", "b", "c", OTHER]


@pytest.mark.usefixtures("few")
def test_an_idle_label_takes_its_own_series_alone() -> None:
    """A client may be called as an API is: its series goes, those of the API stay."""
    clock = Clock()
    series = made(clock)
    counted(series, "Fetch", "b", "c")
    clock.now += IDLE_S + 1
    counted(series, "b", "c", api="Fetch")
    counted(series, "d")
    assert clients(series) == ["b", "c", "d"]


def test_combinations_of_labels_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "MOST_PAIRS", 4)
    series = made()
    for api in ("Fetch", "Produce", "Metadata"):
        counted(series, "a", "b", api=api)
    found: dict[str, Any] = lines(series, "kwsniff_calls")
    assert len(found) == 5
    assert found[f'kwsniff_calls_total{{api="{OTHER}",client="{OTHER}"}}'] == "2"
