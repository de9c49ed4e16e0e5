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
