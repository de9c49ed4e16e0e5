"""Differences as lines: how many, and their figures."""

from __future__ import annotations

import pytest

from kwsniff.cli.compare import _MOST, _figure, _interval, _lines
from kwsniff.findings.compare import Difference


def difference(number: int) -> Difference:
    return Difference(
        "client",
        f"shop-{number}",
        "broker_ms",
        1.5,
        250.4,
        166.9,
        (7, 8),
        (1.0, 2.0),
        (240.0, 260.6),
        0.5,
        0.5,
    )


@pytest.mark.parametrize("more", [0, 1, 3])
def test_the_first_are_shown_and_the_rest_is_counted(more: int) -> None:
    found = [*_lines([difference(number) for number in range(_MOST + more)], [10, 20], 120)]
    assert sum("client shop-" in line for line in found) == _MOST
    assert [line for line in found if line.startswith("and ")] == (
        [f"and {more} more; --json has all"] if more else []
    )
    assert "Calls of the first difference: 7, 8." in found


@pytest.mark.parametrize(
    ("value", "shown"), [(None, ""), (0.01234, "0.0123"), (99.94, "99.9"), (100.4, "100"), (999.6, "1000")]
)
def test_figures_have_three_digits(value: float | None, shown: str) -> None:
    assert _figure(value) == shown


def test_means_alone_have_bounds() -> None:
    assert _interval((0.1, 0.1)) == ""
    assert _interval((0.1, 250.0)) == "0.1 to 250"
