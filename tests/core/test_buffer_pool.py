"""Memory of taken columns: it goes back and is used again, holds nothing of before, outlives its owner."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kwsniff.analyzers import start_analyzer
from kwsniff.core.declared import COLUMNS
from kwsniff.layout.catalog import load_catalog
from tests.traffic import messages
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import one_by_one

CALLS = 4500  # of a take: enough for blocks that are kept
NAMES = [name for name, _, _ in COLUMNS["api_calls"]]


def takes(times: int) -> Iterator[list[Any]]:
    """The api_calls of one connection, taken so many times. The analyzer goes with the generator."""
    calls = [messages.metadata(9, number, [f"topic-{number % 7}"]) for number in range(CALLS)]
    data = pcap(frames(one_by_one(calls * times).packets()))
    analyzer = start_analyzer(load_catalog())
    analyzer.open_capture("x")
    size = -(-len(data) // times)
    for at in range(0, len(data), size):
        analyzer.feed(data[at : at + size])
        yield analyzer.drain("api_calls")


def column(taken: list[Any], name: str) -> tuple[Any, ...]:
    return tuple(taken[NAMES.index(name)])


def places(taken: list[Any]) -> set[int]:
    """Where the values of the columns of 64 bits are."""
    values = [column[4] for column in taken if column[0] in ("int64", "time")]
    return {np.frombuffer(buffer, np.uint8).ctypes.data for buffer in values}


@pytest.mark.slow
def test_blocks_that_nobody_reads_are_written_again_and_others_never() -> None:
    rounds = takes(6)
    next(rounds)
    first = next(rounds)
    there = places(first)
    held = np.frombuffer(column(first, "request_time")[4], np.int64)
    before = held.copy()
    del first
    again = set()
    for taken in rounds:
        again |= places(taken)
        del taken
    assert len(there & again) > len(there) // 2
    assert held.ctypes.data in there - again
    assert (held == before).all()


def test_null_slots_hold_nothing_of_what_was_there_before() -> None:
    for taken in takes(5):
        _, rows, nulls, _, values = column(taken, "producer_id")
        assert rows == nulls > CALLS // 2
        assert not np.frombuffer(values, np.int64).any()
        assert np.frombuffer(column(taken, "request_time")[4], np.int64).all()


def test_blocks_outlive_their_analyzer() -> None:
    rounds = takes(2)
    numbers = np.frombuffer(column(next(rounds), "correlation_id")[4], np.int32)
    rounds.close()
    del rounds
    gc.collect()
    assert numbers.tolist() == [number % CALLS for number in range(len(numbers))]


_ROUNDS = """
import resource
from tests.core.test_buffer_pool import takes
peaks = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss for _ in takes(10)]
print(peaks[2], peaks[-1])
"""


@pytest.mark.slow
def test_what_waits_does_not_grow_with_the_number_of_takes() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _ROUNDS], cwd=root, capture_output=True, text=True, check=True
    )
    early, late = map(int, done.stdout.split())
    assert late - early < 4 << 10  # kilobytes; a take has some 2 MB
