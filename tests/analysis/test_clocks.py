"""Clocks from bounds that are known: the numbers are those of the sums beside them."""

from __future__ import annotations

import numpy as np
import pytest

from kwsniff.analysis.clocks import Bounds, solve_clock
from kwsniff.analysis.places import Place, Places, join_clocks

MINUTE = 60e6
HOUR = 60 * MINUTE


def bounds(times: list[float], offsets: list[float]) -> Bounds:
    return Bounds(np.array(times), np.array(offsets))


def ways(ahead: float, *, up: float, down: float, drift: float = 0.0) -> tuple[Bounds, Bounds]:
    """A packet each second and way, of a clock that is ahead by `ahead` at first. The delays are the least;
    two of three packets take longer."""
    times = np.arange(0, HOUR, 1e6)
    clock = ahead + drift * times
    late = 5_000 * (np.arange(len(times)) % 3)
    return Bounds(times, clock + up + late), Bounds(times, clock - down - late[::-1])


@pytest.mark.parametrize("ahead", [0, 3e6, -1e6, 20_000, 7_200e6])
def test_the_offset_is_the_middle_of_the_least_delays(ahead: float) -> None:
    """8 ms there, 2 ms back: the middle is off by (8 - 2) / 2 = 3 ms, the error (8 + 2) / 2 = 5 ms."""
    clock = solve_clock(*ways(ahead, up=8_000, down=2_000))
    assert clock is not None
    (line,) = clock.lines
    assert abs(line.offset - (ahead + 3_000)) < 2
    assert abs(line.error - 5_000) < 2
    assert abs(line.drift) < 1e-9


@pytest.mark.parametrize("ppm", [100, -100, 1])
def test_drift_is_found_with_its_error(ppm: float) -> None:
    """Over an hour, a round trip of 10 ms leaves the slope 10 ms / 3600 s = 2.8 ppm to either side."""
    clock = solve_clock(*ways(1e6, up=5_000, down=5_000, drift=ppm * 1e-6))
    assert clock is not None
    (line,) = clock.lines
    assert abs(line.drift * 1e6 - ppm) < 0.01
    assert line.drift_error is not None
    assert abs(line.drift_error * 1e6 - 2.8) < 0.1
    at = np.array([0.0, HOUR])
    assert np.abs(clock.at(at) - (1e6 + ppm * 1e-6 * at)).max() < 3


def test_two_packets_tell_an_offset_and_no_drift() -> None:
    clock = solve_clock(bounds([0], [1_000]), bounds([500], [600]))
    assert clock is not None
    (line,) = clock.lines
    assert (round(line.offset), round(line.error)) == (800, 200)
    assert line.drift_error is None


def test_one_direction_tells_nothing() -> None:
    assert solve_clock(bounds([0, 1], [5, 6]), bounds([], [])) is None
    assert solve_clock(bounds([], []), bounds([0, 1], [5, 6])) is None


@pytest.mark.parametrize("step", [50_000, -50_000, 3_600e6])
def test_a_step_begins_another_line(step: float) -> None:
    first, second = ways(1e6, up=1_000, down=1_000), ways(1e6 + step, up=1_000, down=1_000)
    one, other = (
        Bounds(np.append(a.times, b.times + HOUR), np.append(a.offsets, b.offsets))
        for a, b in zip(first, second, strict=True)
    )
    clock = solve_clock(one, other)
    assert clock is not None
    assert [round(line.offset, -1) for line in clock.lines] == [1e6, 1e6 + step]
    assert np.abs(clock.at(np.array([MINUTE, HOUR + MINUTE])) - [1e6, 1e6 + step]).max() < 10


def test_bounds_that_contradict_each_other_all_the_time_tell_nothing() -> None:
    chance = np.random.default_rng(1)
    times = np.arange(1_000) * 1e6
    clock = solve_clock(*(Bounds(times, chance.uniform(-1e9, 1e9, len(times))) for _ in range(2)))
    assert clock is None


def test_capture_times_of_one_machine_may_be_out_of_order_a_little() -> None:
    clock = solve_clock(bounds([0, 1e6], [-20, 5]), bounds([0, 1e6], [0, -5]))
    assert clock is not None
    assert abs(clock.lines[0].offset) <= 20
    assert clock.lines[0].error >= 1


def test_clocks_add_up_along_places() -> None:
    """2 is compared to 0 alone and 1 to 2: 1 is ahead by 30 + 4 ms, with both errors."""
    places = Places({number: Place(f"p{number}", number) for number in range(3)})
    places.found[0].is_told = True
    pairs = {
        (0, 2): solve_clock(*ways(30_000, up=1_000, down=1_000)),
        (1, 2): solve_clock(*ways(-4_000, up=500, down=500)),
    }
    join_clocks(places, pairs)
    assert [place.parent for place in places.found.values()] == [None, 2, 0]
    ahead = [float(places.ahead(number, np.array([MINUTE]))[0]) for number in range(3)]
    assert np.abs(np.array(ahead) - [0, 34_000, 30_000]).max() < 5
    assert abs(places.found[1].error - 1_500) < 3
