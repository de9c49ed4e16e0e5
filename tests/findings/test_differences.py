"""What counts as a difference, on groups made by hand: each threshold from both sides."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.findings import compare as engine
from kwsniff.findings.call_groups import PARTS, ROUND_TRIP, STANDSTILLS, Side
from kwsniff.findings.compare import Difference, _Mean

MS = 1_000_000
Groups = dict[tuple[str, str], dict[str, dict[str, Any]]]


def row(calls: int, failed: int = 0, **means: float) -> dict[str, Any]:
    """Calls that took the same each, by part, in milliseconds; `spread`: how far they are on both sides."""
    spread = means.pop("spread", 0.0) * MS
    made: dict[str, Any] = {"calls": calls, "timed": calls, "failed": failed}
    for part in (*PARTS, ROUND_TRIP):
        mean = means.get(part, 0.0) * MS
        made[f"{part}_sum"] = calls * mean
        made[f"{part}_squares"] = calls * (mean * mean + (spread * spread if mean else 0.0))
    for part in STANDSTILLS:
        made |= {f"{part}_longest": means.get(part, 0.0) * MS, f"{part}_long": 0, f"{part}_long_sum": 0.0}
    return made


def groups(**subjects: dict[str, Any]) -> Groups:
    """Clients that make Produce calls; `all` is their sum."""
    everything = row(0)
    for each in subjects.values():
        for name, value in each.items():
            everything[name] = max(everything[name], value) if "longest" in name else everything[name] + value
    made: Groups = {("all", ""): {"Produce": everything}}
    return made | {("client", name): {"Produce": each} for name, each in subjects.items()}


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> Any:
    def compared(good: Groups, bad: Groups, **more: Any) -> list[Difference]:
        losses = more.pop("losses", ({}, {}))
        seconds = more.pop("seconds", (None, None))
        sides = ("good", Side(seconds=seconds[0])), ("bad", Side(seconds=seconds[1]))
        monkeypatch.setattr(engine, "read_groups", lambda name, _: {"good": good, "bad": bad}[name])
        monkeypatch.setattr(engine, "read_losses", lambda name: losses[name == "bad"])
        monkeypatch.setattr(engine, "read_proofs", lambda *_: [])
        return engine.compare(*sides)  # type: ignore[arg-type]

    return compared


def what(found: list[Difference]) -> set[tuple[str, str]]:
    return {(each.subject, each.what) for each in found}


def test_the_interval_of_a_mean() -> None:
    """16 calls of 10 and 20: mean 15, variance of a sample 25 * 16 / 15, standard error 1.29."""
    mean = _Mean()
    mean.add(16, 15, 25 * 16 / 15, 16)
    error = (25 * 16 / 15 / 16) ** 0.5
    assert mean.interval == pytest.approx((15 - 2.58 * error, 15 + 2.58 * error))
    # As many more calls as the sample has: the total's error grows with them, the mean's does not.
    scaled = _Mean()
    scaled.add(1600, 15, 25 * 16 / 15, 16)
    assert scaled.interval == pytest.approx(mean.interval)
    assert _Mean(calls=1, total=1, variance=100).interval[0] == 0


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        (0.2, 0.7, True),  # half a millisecond more
        (0.2, 0.699, False),
        (2.0, 3.0, True),  # half as much again
        (2.0, 2.999, False),
    ],
)
def test_means_are_half_a_millisecond_and_a_factor_of_1_5_apart(
    compare: Any, before: float, after: float, differs: bool
) -> None:
    found = compare(groups(shop=row(50, broker=before)), groups(shop=row(50, broker=after)))
    assert (("shop", "broker_ms") in what(found)) == differs
    for each in found:
        assert (each.good, each.bad) == pytest.approx((before, after))
        assert each.ratio == pytest.approx(after / before)


@pytest.mark.parametrize(("calls", "differs"), [(9, False), (10, True)])
def test_ten_calls_are_a_difference(compare: Any, calls: int, differs: bool) -> None:
    found = compare(groups(shop=row(50, broker=1)), groups(shop=row(calls, broker=9)))
    assert bool(found) == differs


@pytest.mark.parametrize(("spread", "differs"), [(1.0, True), (8.0, False)])
def test_intervals_must_not_meet(compare: Any, spread: float, differs: bool) -> None:
    """Of 12 calls each: 5 and 10 ms, 8 ms to both sides of them, are 2.4 standard errors wide."""
    given = [groups(shop=row(12, broker=mean, spread=spread)) for mean in (5, 10)]
    assert bool(compare(*given)) == differs


def test_the_variance_is_that_of_a_sample(compare: Any) -> None:
    """Ten calls, 3.9 ms to both sides: 2.58 * 3.9 * sqrt(1/9) on each side of 10 and 16.6 ms meet; by the
    variance of all, 2.58 * 3.9 * sqrt(1/10), they would not."""
    given = [groups(shop=row(10, broker=mean, spread=3.9)) for mean in (10, 16.6)]
    assert compare(*given) == []
    wider = [groups(shop=row(10, broker=mean, spread=3.9)) for mean in (10, 16.8)]
    assert what(compare(*wider)) == {("shop", "broker_ms")}


@pytest.mark.parametrize(("calls", "differs"), [(10, False), (60, True)])
def test_a_subject_has_a_twentieth_of_all_time(compare: Any, calls: int, differs: bool) -> None:
    """10 calls take 10 ms more, of 2,100 ms and more in all: less than a twentieth."""
    good = groups(shop=row(calls, broker=1), other=row(1000, broker=2))
    bad = groups(shop=row(calls, broker=11), other=row(1000, broker=2))
    assert (("shop", "broker_ms") in what(compare(good, bad))) == differs


def test_a_few_calls_before_do_not_prove_what_is_usual(compare: Any) -> None:
    """Nine calls of the subject were fast; all others were as slow as now."""
    good = groups(shop=row(9, broker=1), other=row(100, broker=11))
    assert what(compare(good, groups(shop=row(50, broker=11)))) == set()
    known = groups(shop=row(10, broker=1), other=row(100, broker=11))
    assert what(compare(known, groups(shop=row(50, broker=11)))) == {("shop", "broker_ms")}


@pytest.mark.parametrize(
    ("before", "after", "failed", "differs"),
    [
        (5000, 2, 2, False),  # two failures
        (5000, 4, 3, True),  # 0.75 - 2.58 * sqrt(2/9 / 4) = 0.14
        (10, 20, 10, False),  # 0.5 - 2.58 * sqrt(0.25 / 20) = 0.21; before 2.58 * sqrt(11/144 / 10) = 0.23
        (10, 20, 12, True),
    ],
)
def test_three_failures_that_intervals_tell_apart_are_a_difference(
    compare: Any, before: int, after: int, failed: int, differs: bool
) -> None:
    """No failure in ten calls does not prove that there are none: one in twelve is assumed."""
    found = compare(groups(shop=row(before)), groups(shop=row(after, failed)))
    assert (("shop", "errors") in what(found)) == differs
    assert [each.ratio for each in found] == [None] * len(found)


@pytest.mark.parametrize(("calls", "differs"), [(399, False), (400, True)])
def test_twice_as_many_calls_a_second_are_a_difference(compare: Any, calls: int, differs: bool) -> None:
    found = compare(groups(shop=row(200)), groups(shop=row(calls)), seconds=(10, 10))
    assert (("shop", "calls_per_second") in what(found)) == differs
    slower = compare(groups(shop=row(calls)), groups(shop=row(200)), seconds=(10, 10))
    assert (("shop", "calls_per_second") in what(slower)) == differs
    if differs:
        ((more,), (fewer,)) = found, slower
        assert (more.good, more.bad, more.ratio) == pytest.approx((20, 40, 2))
        assert more.share == pytest.approx(0.5)
        # Fewer calls follow from waits: they weigh a tenth of more.
        assert more.score == pytest.approx(10 * fewer.score)


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        ((100_000, 100), (100_000, 1_000), True),  # 0.1 % and 1 %
        ((100_000, 400), (100_000, 1_000), False),  # not three times as much
        ((100_000, 0), (100_000, 499), False),  # below half a percent
        ((10_000, 0), (10_000, 999), False),  # few bytes
        ((10_000, 0), (10_000, 1_000), True),
    ],
)
def test_losses_are_a_thousand_bytes_half_a_percent_and_three_times_as_much(
    compare: Any, before: tuple[int, int], after: tuple[int, int], differs: bool
) -> None:
    losses = ({"shop": (*before, 10)}, {"shop": (*after, 10)})
    found = compare(groups(shop=row(10)), groups(shop=row(10)), losses=losses)
    assert (("shop", "retransmitted") in what(found)) == differs
    for each in found:
        assert each.bad == pytest.approx(after[1] / after[0])


@pytest.mark.parametrize(("before", "differs"), [(400, True), (401, False)])
def test_two_long_calls_are_a_standstill_where_nothing_took_a_third(
    compare: Any, before: float, differs: bool
) -> None:
    good, bad = row(1000, broker=1), row(1000, broker=1)
    good["broker_longest"] = before * MS
    bad |= {"broker_longest": 1200 * MS, "broker_long": 2, "broker_long_sum": 2300.0 * MS}
    found = compare(groups(shop=good), groups(shop=bad))
    assert (("shop", "longest_broker_ms") in what(found)) == differs


def test_the_largest_difference_comes_first(compare: Any) -> None:
    good = groups(a=row(100, broker=1), b=row(100, broker=1), c=row(100, broker=1))
    bad = groups(a=row(100, broker=5), b=row(100, broker=30), c=row(100, broker=12))
    assert [each.subject for each in compare(good, bad)] == ["b", "c", "a"]
