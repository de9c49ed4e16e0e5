"""How many analyzers there are: each bound from both sides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kwsniff.analysis import parallelism
from kwsniff.analysis.parallelism import MOST, num_analyzers, rows_beside
from kwsniff.errors import UsageError
from kwsniff.limits import Limits

LARGE = 1 << 40
USUAL = Limits()


@pytest.mark.parametrize(("jobs", "is_taken"), [(0, False), (1, True), (MOST, True), (MOST + 1, False)])
def test_jobs_have_a_least_and_a_greatest_number(jobs: int, is_taken: bool) -> None:
    if is_taken:
        assert num_analyzers(jobs, LARGE, USUAL, None) == jobs
    else:
        with pytest.raises(UsageError):
            num_analyzers(jobs, LARGE, USUAL, None)


@pytest.mark.parametrize(
    ("size", "cores", "number"),
    [(63_999_999, 8, 1), (64_000_000, 8, 3), (LARGE, 4, 3), (LARGE, 3, 2), (LARGE, 2, 1), (LARGE, 1, 1)],
)
def test_of_themselves_there_are_as_many_as_leave_a_core_to_rows(
    monkeypatch: pytest.MonkeyPatch, size: int, cores: int, number: int
) -> None:
    monkeypatch.setattr(parallelism, "_cores", lambda: cores)
    assert num_analyzers(None, size, USUAL, None) == number


@pytest.mark.parametrize(("memory", "number"), [(299_999_999, 1), (300_000_000, 4)])
def test_little_memory_is_for_one(memory: int, number: int) -> None:
    assert num_analyzers(4, LARGE, replace(USUAL, memory=memory), None) == number


@pytest.mark.parametrize(
    ("name", "change", "number"),
    [
        ("reorder_bytes_total", -1, 1),
        ("reorder_bytes_total", 1, 4),
        ("in_flight_bytes_total", -1, 1),
        ("frame_kept_bytes_total", -1, 1),
        ("packet_bytes", 1, 1),
        ("packet_bytes", -1, 4),
        ("orphan_bytes", 1, 1),
        ("session_partitions", 1, 1),
        ("request_context_bytes", 1, 1),
    ],
)
def test_bounds_that_a_burst_may_pass_are_for_one(name: str, change: int, number: int) -> None:
    """Lower bounds over all connections, and higher ones of what comes at a time."""
    bounds = replace(USUAL, **{name: getattr(USUAL, name) + change})
    assert num_analyzers(4, LARGE, bounds, None) == number


def test_pipes_and_secrets_are_for_one() -> None:
    assert num_analyzers(4, None, USUAL, None) == 1
    assert num_analyzers(4, LARGE, USUAL, "keys.log") == 1


def test_rows_that_wait_have_a_sixteenth_of_what_the_interpreter_leaves() -> None:
    assert rows_beside(180_000_000 + 160_000_000) == 10_000_000
    assert rows_beside(100_000_000) == 4_000_000
