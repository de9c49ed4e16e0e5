"""Time added up by cause in one pass over Arrow's columns, against the same in plain Python."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwsniff.core.columns.cause_sums import sum_causes
from tests.core.whole_columns import ROWS, column, numbers

WORDS = (-1, 0, 1)
"""Which column of words says the cause of each part."""
CAUSES = ((0, 0, 0, 0), (1, 2, 1, 1), (3, 4, 5, 3))
"""By part and code of a word; that of no word is last."""
GROUPS, TOPICS, WIDTH = 5, 4, 2 + 6


class Latencies:
    """Rows at random, and what `sum_causes` gets for them."""

    def __init__(self, number: int = ROWS) -> None:
        rng = random.Random(number)
        self.rows: list[tuple[Any, ...]] = [
            (
                rng.choice((None, rng.randrange(900))), rng.choice((None, rng.randrange(90))),
                rng.randrange(GROUPS), rng.choice((None, *range(3))), rng.choice((None, *range(3))),
                *(rng.choice((None, 0, rng.randrange(90))) for _ in WORDS),
            )
            for _ in range(number)
        ]  # fmt: skip
        self.topics = [[rng.randrange(TOPICS) for _ in range(rng.randrange(4))] for _ in range(number)]
        self.columns = tuple(column(each, pa.int32()) for each in zip(*self.rows, strict=True))
        self.words, self.causes = numbers(*WORDS), np.array(CAUSES, np.int64)
        self.lengths = numbers(*map(len, self.topics))
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.codes = numbers(*(each for some in self.topics for each in some))
        self.sums = np.zeros((GROUPS, WIDTH), np.int64)
        self.by_topic = np.zeros((TOPICS, WIDTH), np.int64)

    def add(self) -> None:
        sum_causes(
            self.columns, self.words, self.causes, self.starts, self.lengths, self.codes,
            self.sums, self.by_topic,
        )  # fmt: skip

    def by_hand(self, row: tuple[Any, ...]) -> list[int]:
        found = [1, (row[0] or 0) - (row[1] or 0), *[0] * 6]
        for part, took in enumerate(row[5:]):
            word = None if WORDS[part] < 0 else row[3 + WORDS[part]]
            found[2 + CAUSES[part][-1 if word is None else word]] += took or 0
        return found


def added(rows: list[list[int]]) -> list[int]:
    calls, active, *causes = zip(*rows, strict=True)
    return [sum(calls), max(0, *active), *map(sum, causes)]


def test_time_is_added_up_by_group_and_topic() -> None:
    told = Latencies()
    told.add()
    for group in range(GROUPS):
        rows = [told.by_hand(row) for row in told.rows if row[2] == group]
        assert told.sums[group].tolist() == added(rows)
    for topic in range(TOPICS):
        both = zip(told.rows, told.topics, strict=True)
        rows = [told.by_hand(row) for row, some in both for each in some if each == topic]
        assert told.by_topic[topic].tolist() == added(rows)


def test_without_topics_only_groups_are_added_up() -> None:
    told, other = Latencies(), Latencies()
    told.add()
    other.starts, other.lengths = numbers(), numbers()
    other.add()
    assert other.sums.tolist() == told.sums.tolist()
    assert not other.by_topic.any()


@pytest.mark.parametrize(
    ("wrong", "value"), [("words", 2), ("causes", 6), ("causes", -1), ("starts", -1), ("lengths", 9000)]
)
def test_what_has_no_place_is_refused(wrong: str, value: int) -> None:
    told = Latencies()
    getattr(told, wrong).flat[-1] = value
    with pytest.raises((IndexError, ValueError)):
        told.add()


@pytest.mark.parametrize("wrong", ["sums", "by_topic"])
def test_groups_and_topics_without_sums_are_refused(wrong: str) -> None:
    told = Latencies()
    setattr(told, wrong, getattr(told, wrong)[:-1].copy())
    with pytest.raises(IndexError, match="no sums"):
        told.add()


@pytest.mark.parametrize("wrong", ["words", "causes", "starts", "lengths", "columns", "by_topic"])
def test_sums_of_other_sizes_are_refused(wrong: str) -> None:
    told = Latencies()
    given = getattr(told, wrong)
    other = given[:-1] if wrong != "by_topic" else given[:, :-1].copy()
    setattr(told, wrong, other)
    with pytest.raises(ValueError, match=r"different sizes|columns than"):
        told.add()


def test_words_without_a_cause_are_refused() -> None:
    told = Latencies()
    told.causes = told.causes[:, 1:].copy()
    with pytest.raises(IndexError, match="no sums"):
        told.add()
