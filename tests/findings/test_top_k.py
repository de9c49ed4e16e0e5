"""Rows that are kept while others pass are those that a sort of all finds."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from kwsniff.findings.prefilter.client_rates import Pace
from kwsniff.findings.rule import MOST_PROOFS


@pytest.mark.parametrize("keys", ["rising", "falling", "alike", "any"])
@pytest.mark.parametrize("clients", [1, 7, 600])
def test_the_calls_that_are_kept_are_the_earliest_of_all(keys: str, clients: int) -> None:
    dice = random.Random(f"{keys}{clients}")
    number = 5000
    times = {
        "rising": range(number),
        "falling": range(number, 0, -1),
        "alike": [7] * number,
        "any": [dice.randrange(100) for _ in range(number)],
    }[keys]
    rows = [
        (f"client {dice.randrange(clients)}", time, each)
        for each, time in zip(dice.sample(range(10**6), number), times, strict=True)
    ]
    pace, start = Pace(), 0
    while start < number:
        names, moments, ids = zip(*rows[start : start + dice.choice([1, 3, 900, 2000])], strict=True)
        texts = pa.array(names).dictionary_encode()
        columns = {"client_id": texts, "request_time": pa.array(moments), "call_id": pa.array(ids)}
        pace.add_calls(pa.RecordBatch.from_pydict(columns))
        start += len(ids)
    sums = pace.sums()["call_sum"]
    for client, kept in zip(sums["client"], sums["call_ids"], strict=True):
        mine = sorted((time, each) for of, time, each in rows if of == client)
        assert kept == [each for _, each in mine[:MOST_PROOFS]]
    assert {*sums["client"]} == {name for name, _, _ in rows}
