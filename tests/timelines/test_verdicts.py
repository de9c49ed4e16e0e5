"""Which waits are known to the calls behind them, by call, time and number."""

from __future__ import annotations

import numpy as np
import pytest

from kwsniff.timelines.waits import evidence
from kwsniff.timelines.waits.verdicts import LINE_US, Verdicts

START = 1_000_000_000


def known(*rows: tuple[int, int, int, int]) -> Verdicts:
    """Rows of call id, wait, end, number."""
    verdicts = Verdicts()
    verdicts.add(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))
    return verdicts


def found(verdicts: Verdicts, *asked: tuple[int, int, int]) -> dict[int, int]:
    """Row -> wait; asked for by call id, end and number."""
    rows, waits = verdicts.find_waits(*(np.array(column, np.int64) for column in zip(*asked, strict=True)))
    return dict(zip(rows.tolist(), waits.tolist(), strict=True))


def test_each_call_finds_the_wait_of_the_one_before_it() -> None:
    """In any order; the first kind of wait is 0."""
    verdicts = known((9, 0, START, 1), (3, 2, START, 2), (7, 5, START, 3))
    asked = [(7, START, 10), (4, START, 10), (9, START, 10), (3, START, 10), (99, START, 10)]
    assert found(verdicts, *asked) == {0: 5, 2: 0, 3: 2}


@pytest.mark.parametrize(("after", "is_known"), [(LINE_US, True), (LINE_US + 1, False)])
def test_a_wait_is_known_for_a_minute(after: int, is_known: bool) -> None:
    assert LINE_US == 60 * 1_000_000
    assert bool(found(known((1, 1, START, 1)), (1, START + after, 2))) == is_known


@pytest.mark.parametrize(
    ("number", "is_known"),
    [(5, False), (6, True), (5 + evidence.MOST_EVENTS, True), (6 + evidence.MOST_EVENTS, False)],
)
def test_a_wait_is_known_to_later_calls_up_to_the_bound(number: int, is_known: bool) -> None:
    """The call itself has the number 5."""
    assert bool(found(known((1, 1, START, 5)), (1, START, number))) == is_known


def test_parts_are_put_together_and_all_is_found() -> None:
    verdicts = Verdicts()
    for number in range(40):
        each = np.array([100 - number])
        verdicts.add(each, np.array([number % 7]), np.array([START]), np.array([number]))
    assert found(verdicts, *((100 - number, START, 50) for number in range(40))) == {
        number: number % 7 for number in range(40)
    }


def test_what_is_forgotten_ended_a_minute_earlier_or_has_a_lower_number() -> None:
    verdicts = known((1, 1, START, 1), (2, 1, START + 10, 2), (3, 1, START + 20, 3))
    asked = [(1, START + 30, 9), (2, START + 30, 9), (3, START + 30, 9)]
    verdicts.forget(START + LINE_US, 1)
    assert set(found(verdicts, *asked)) == {0, 1, 2}
    verdicts.forget(START + LINE_US + 11, 1)
    assert set(found(verdicts, *asked)) == {2}
    verdicts.forget(START, 3)
    assert set(found(verdicts, *asked)) == {2}
    verdicts.forget(START, 4)
    assert found(verdicts, *asked) == {}
