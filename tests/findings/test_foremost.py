"""Rows that are kept while others pass are those that a sort of all finds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kwsniff.findings.evaluate import MOST_PROOFS
from kwsniff.findings.foremost import Foremost


@pytest.mark.parametrize("keys", ["rising", "falling", "alike", "any"])
@pytest.mark.parametrize("groups", [1, 7, 600])
def test_the_rows_that_are_kept_are_the_first_of_all(keys: str, groups: int) -> None:
    dice = random.Random(f"{keys}{groups}")
    number = 5000
    key = {
        "rising": range(number),
        "falling": range(number, 0, -1),
        "alike": [7] * number,
        "any": [dice.randrange(100) for _ in range(number)],
    }[keys]
    rows = [
        (dice.randrange(groups), value, each)
        for each, value in zip(dice.sample(range(10**6), number), key, strict=True)
    ]
    kept = Foremost()
    start = 0
    while start < number:
        part = np.array(rows[start : start + dice.choice([1, 3, 900, 2000])], np.int64)
        kept.add(part[:, 0], part[:, 1], part[:, 2])
        start += len(part)
    for group in range(groups):
        mine = sorted((value, each) for of, value, each in rows if of == group)
        assert kept.of(group) == [each for _, each in mine[:MOST_PROOFS]]
    assert kept.of(groups + 1) == []
