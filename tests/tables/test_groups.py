"""Rows grouped by columns, against grouping tuples in Python."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwsniff.tables.grouping import Groups


def rows(number: int, columns: int, words: int, *, seed: int = 1) -> list[tuple[Any, ...]]:
    dice = random.Random(seed)
    choice = [None, *(f"w{each}" for each in range(words))]
    return [tuple(dice.choice(choice) for _ in range(columns)) for _ in range(number)]


def batch_of(given: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*given, strict=True)
    return pa.record_batch(
        {f"c{place}": pa.array(column, pa.string()) for place, column in enumerate(columns)}
    )


@pytest.mark.parametrize(
    ("number", "columns", "words"),
    [
        (200, 2, 3),  # a table of combinations
        (4000, 3, 60),  # more than a table has
        (4000, 4, 300),  # beyond 32 bits
        (3000, 9, 200),  # beyond 64 bits
    ],
)
def test_groups_come_in_the_order_of_their_first_rows(number: int, columns: int, words: int) -> None:
    given = rows(number, columns, words)
    given += given[::7]  # some come again
    batch = batch_of(given)
    groups = Groups(batch, batch.schema.names)
    labels = [*groups.labels()]
    assert labels == [*dict.fromkeys(given)]
    assert [labels[group] for group in groups.numbers.tolist()] == given
    counts = Counter(given)
    assert groups.counts().tolist() == [counts[label] for label in labels]
    chosen = np.arange(len(given)) % 3 == 0
    some = Counter(each for each, is_chosen in zip(given, chosen, strict=True) if is_chosen)
    assert groups.counts(chosen).tolist() == [some[label] for label in labels]
    assert [*groups.labels(["c1"])] == [(label[1],) for label in labels]


def test_values_of_groups_are_those_that_are_not_null() -> None:
    given = rows(500, 2, 3)
    dice = random.Random(2)
    values = [dice.choice([None, dice.randrange(1000)]) for _ in given]
    wanted: dict[Any, list[int]] = defaultdict(list)
    for key, value in zip(given, values, strict=True):
        wanted[key] += [] if value is None else [value]
    batch = batch_of(given)
    groups = Groups(batch, batch.schema.names)
    found = groups.split(pa.array(values, pa.int64()))
    assert {label: each.tolist() for label, each in zip(groups.labels(), found, strict=True)} == wanted


def test_null_and_the_last_word_are_two() -> None:
    """Also beside another column, where a null is a number of its own."""
    given = [(None, "b"), ("a", None), (None, None), ("a", "b"), ("b", "a"), ("b", None)]
    batch = batch_of(given)
    assert [*Groups(batch, ["c0", "c1"]).labels()] == given


@pytest.mark.parametrize("columns", [2, 4, 5, 8, 9])
def test_rows_that_differ_in_their_first_column_alone_are_two(columns: int) -> None:
    """255 words and null are 2^8 numbers: five columns have 2^40 combinations, nine have 2^72."""
    words = [f"w{number}" for number in range(255)]
    given: list[tuple[Any, ...]] = [(word,) * columns for word in words]
    given += [(word, *given[0][1:]) for word in words[1:]]
    batch = batch_of(given)
    assert [*Groups(batch, batch.schema.names).labels()] == given


@pytest.mark.parametrize("type_", [pa.int16(), pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize("span", [(-32_768, -32_700), (-1, 126), (-1, 127), (0, 4000), (32_700, 32_767)])
def test_numbers_are_grouped_however_close_they_are(type_: pa.DataType, span: tuple[int, int]) -> None:
    dice = random.Random(span[0])
    given = [(dice.choice([*span, dice.randint(*span)]), dice.choice("ab")) for _ in range(500)]
    columns = {"number": pa.array([number for number, _ in given], type_)}
    columns["word"] = pa.array([word for _, word in given]).dictionary_encode()
    groups = Groups(pa.record_batch(columns), ("number", "word"))
    labels = list(groups.labels())
    assert labels == list(dict.fromkeys(given))
    assert [labels[each] for each in groups.numbers] == given
