"""Percentiles in bounded memory."""

import random

import numpy as np
import pytest

from kwsniff.analysis.rollups.percentiles import LatencySketch


def nearest_rank(values: list[int], percent: int) -> int:
    ordered = sorted(values)
    return ordered[max(-(-len(ordered) * percent // 100), 1) - 1]


def filled(values: list[int], pieces: int = 1) -> LatencySketch:
    sketch = LatencySketch()
    for piece in np.array_split(np.array(values, np.int64), pieces):
        sketch.add(piece)
    return sketch


@pytest.mark.parametrize("percent", [1, 50, 95, 99, 100])
@pytest.mark.parametrize("count", [1, 2, 3, 100, 4096])
def test_percentiles_of_few_latencies_are_exact(count: int, percent: int) -> None:
    dice = random.Random(count)
    values = [dice.randrange(1 << 40) for _ in range(count)]
    assert filled(values, pieces=min(3, count)).percentile(percent) == nearest_rank(values, percent)


@pytest.mark.parametrize("percent", [1, 50, 95, 99, 100])
@pytest.mark.parametrize("spread", [0.1, 1.0, 3.0])
def test_percentiles_of_many_latencies_are_within_the_stated_error(spread: float, percent: int) -> None:
    dice = random.Random(7)
    values = [int(dice.lognormvariate(14, spread)) for _ in range(50_000)]
    sketch = filled(values, pieces=9)
    truth = nearest_rank(values, percent)
    got = sketch.percentile(percent)
    assert got is not None
    assert abs(got - truth) <= 0.004 * truth + 1
    assert sketch.greatest == max(values)
    assert sketch.count == len(values)


def test_no_percentile_is_above_the_greatest_latency() -> None:
    """Whose bucket goes on behind it."""
    sketch = filled([1 << 20] * 9000)
    assert [sketch.percentile(percent) for percent in (50, 99, 100)] == [1 << 20] * 3


def test_small_and_enormous_latencies_find_a_bucket() -> None:
    sketch = filled([0, 1, -5, (1 << 63) - 1] * 2000)
    assert sketch.percentile(50) in (0, 1)
    assert sketch.percentile(99) == pytest.approx((1 << 63) - 1, rel=0.004)
    assert sketch.greatest == (1 << 63) - 1


def test_without_latencies_there_is_no_percentile() -> None:
    assert LatencySketch().percentile(50) is None
    assert filled([]).percentile(99) is None


@pytest.mark.parametrize("count", [4095, 4096, 4097])
def test_up_to_the_bound_every_latency_is_kept(count: int) -> None:
    """Up to 4096 the median is exact; from then on it is the middle of a bucket of 1/128 octave."""
    values = [1_000_000 + 2 * number for number in range(count)]
    got = filled(values).percentile(50)
    assert got is not None
    middle = nearest_rank(values, 50)
    if count <= 4096:
        assert got == middle
    else:
        # 2^19 + 116 * 2^12 begins the bucket of 999,424 to 1,003,520; the next one goes on to 1,007,616.
        assert got in (1_001_472, 1_005_568)
        assert abs(got - middle) <= 2048


def test_a_clock_that_was_set_back_gives_no_negative_percentile() -> None:
    assert filled([-5, -7, -9]).percentile(50) == 0


def test_a_rank_at_the_last_value_of_a_bucket_is_of_that_bucket() -> None:
    """Half of all are short, and half a thousand times as long: the median is a short one."""
    sketch = filled([1_000_000] * 3000 + [1_000_000_000] * 3000)
    got = sketch.percentile(50)
    assert got == pytest.approx(1_000_000, rel=0.004)
    assert sketch.percentile(51) == pytest.approx(1_000_000_000, rel=0.004)
    assert sketch.count == 6000


def test_short_latencies_are_not_rounded_up() -> None:
    sketch = filled([3_000] * 9000)
    assert sketch.percentile(50) == pytest.approx(3_000, rel=0.004)


def test_latencies_that_came_before_the_bound_count_beyond_it() -> None:
    sketch = LatencySketch()
    sketch.add(np.full(4096, 1_000_000))
    sketch.add(np.full(4000, 1_000_000_000))
    assert sketch.percentile(50) == pytest.approx(1_000_000, rel=0.004)
    assert sketch.percentile(100) == 1_000_000_000
