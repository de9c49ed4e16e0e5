"""Which of several connections that fit is chosen, by hand."""

from __future__ import annotations

import pytest

from kwsniff.analysis.connection_fits import Fit, choose_fits

ALL = (4, 4)


@pytest.mark.parametrize(
    ("fits", "chosen"),
    [
        ([Fit(1, 10, ALL, 500)], {1: 10}),
        ([Fit(1, 10, ALL, 500), Fit(1, 20, ALL, 999)], {}),  # nearly as good
        ([Fit(1, 10, ALL, 500), Fit(1, 20, ALL, 1000)], {1: 10}),
        ([Fit(1, 10, (4, 3), 1), Fit(1, 20, ALL, 900)], {1: 20}),  # more calls have the same size
        # Of two upstream connections the better one has the client's.
        ([Fit(1, 10, ALL, 500), Fit(2, 10, ALL, 400)], {2: 10}),
        # What one has, the other cannot have.
        ([Fit(1, 10, ALL, 400), Fit(2, 10, ALL, 500), Fit(2, 20, ALL, 600)], {1: 10, 2: 20}),
        # One that fits a connection of which another is the better one waits for that.
        ([Fit(1, 10, ALL, 900), Fit(2, 10, ALL, 400), Fit(2, 20, ALL, 500)], {}),
        ([], {}),
    ],
)
def test_a_connection_is_chosen_that_is_the_only_one_or_far_better(
    fits: list[Fit], chosen: dict[int, int]
) -> None:
    assert choose_fits(fits) == chosen
    assert choose_fits(fits[::-1]) == chosen
