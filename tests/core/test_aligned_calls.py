"""Upstream calls and the calls that they belong to, beside a search in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from kwsniff.core.columns.aligned_calls import NO_END, align_calls

Row = tuple[int, int, int, int, int]
"""Conversation, API, key, begin, end."""


def _columns(rows: list[Row]) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]:
    return tuple(np.array([row[at] for row in rows], np.int64) for at in range(5))


def _align(calls: list[Row], upstream: list[Row]) -> list[int]:
    found = np.full(len(upstream), -7)
    align_calls(_columns(calls), _columns(upstream), found)
    return found.tolist()


def _search(calls: list[Row], upstream: list[Row]) -> list[int]:
    taken: set[int] = set()
    found = []
    for talk, api, key, begin, end in upstream:
        fits = [
            at
            for at, (own, own_api, own_key, own_begin, own_end) in enumerate(calls)
            if at not in taken and own == talk and own_api == api and own_begin < begin <= own_end
            and (own_key == key or 0 in (own_key, key)) and (end <= own_end or end == NO_END)
        ]  # fmt: skip
        taken |= {*fits[:1]}
        found.append(fits[0] if fits else -1)
    return found


def test_calls_belong_together_in_their_order() -> None:
    calls = [(0, 1, 0, 10, 50), (0, 1, 0, 12, 60), (0, 3, 0, 14, 70)]
    assert _align(calls, [(0, 3, 0, 15, 20), (0, 1, 0, 16, 30), (0, 1, 0, 17, 40)]) == [2, 0, 1]


@pytest.mark.parametrize(
    ("upstream", "found"),
    [
        ((0, 1, 5, 11, 49), 0),
        ((0, 1, 0, 11, 49), 0),  # nothing is known to be the same
        ((0, 1, 6, 11, 49), -1),  # another batch
        ((0, 2, 5, 11, 49), -1),  # another API
        ((1, 1, 5, 11, 49), -1),  # another conversation
        ((0, 1, 5, 10, 49), -1),  # not later
        ((0, 1, 5, 11, 50), 0),
        ((0, 1, 5, 11, 51), -1),  # ends later
        ((0, 1, 5, 11, NO_END), 0),
        ((0, 1, 5, 51, NO_END), -1),  # begins after the response
    ],
)
def test_what_belongs_together_is_the_same_and_inside(upstream: Row, found: int) -> None:
    assert _align([(0, 1, 5, 10, 50)], [upstream]) == [found]


@pytest.mark.parametrize("seed", range(20))
def test_calls_are_those_of_a_search(seed: int) -> None:
    chosen = np.random.default_rng(seed)

    def make_rows(number: int) -> list[Row]:
        begins = chosen.integers(0, 300, number)
        ends = np.where(chosen.random(number) < 0.1, NO_END, begins + chosen.integers(1, 60, number))
        parts = chosen.integers(0, 3, (number, 3)).tolist()
        return sorted(
            (
                (talk, api, key, begin, end)
                for (talk, api, key), begin, end in zip(parts, begins.tolist(), ends.tolist(), strict=True)
            ),
            key=lambda row: (row[0], row[3]),
        )

    calls, upstream = make_rows(80), make_rows(120)
    assert _align(calls, upstream) == _search(calls, upstream)


def test_columns_of_other_sizes_are_refused() -> None:
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    for place in range(5):
        columns = tuple(two if at == place else one for at in range(5))
        with pytest.raises(ValueError, match="different sizes"):
            align_calls(columns, (one,) * 5, one.copy())
        with pytest.raises(ValueError, match="different sizes"):
            align_calls((one,) * 5, columns, one.copy())
