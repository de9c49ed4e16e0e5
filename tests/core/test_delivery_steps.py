"""Steps of delivered batches, against times added up by hand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from kwsniff.core.columns.delivery_steps import IN_SYNC, STABLE, STEPS, UNKNOWN, make_steps

MS = 1_000
"""Microseconds."""
NS = 1_000_000
"""Nanoseconds of a millisecond."""
PRODUCE, FETCH, WATERMARK, COMMIT = range(4)


def _steps(
    times: Mapping[str, list[int]],
    *,
    stamp: int = 1000 * MS,
    flags: tuple[int, ...] = (0, 0, 0, 0),
    places: tuple[int, ...] = (PRODUCE, PRODUCE, FETCH, WATERMARK, COMMIT),
) -> dict[str, int]:
    """One row, of a Produce, a Fetch, another Fetch that shows the watermark, and a commit; times in
    milliseconds."""
    columns = [[time * MS for time in times[name]] for name in ("begin", "shown", "end")]
    columns += [[10, 11, 12, 13], [stamp] * 4, list(flags)]
    steps = np.zeros((len(STEPS), 1), np.int64)
    sightings = tuple(np.array(column, np.int64) for column in columns)
    make_steps(sightings, tuple(np.array([place], np.int64) for place in places), steps)
    return {name: int(value) for name, (value,) in zip(STEPS, steps, strict=True)}


# The record is made at 1000 ms and sent at 1010. It is acknowledged from 1018 to 1020. Another reader sees it
# at 1030. The Fetch response takes from 1040 to 1045, and the commit is sent at 1100.
TIMES: Mapping[str, list[int]] = {
    "begin": [1010, 1015, 1016, 1100],
    "shown": [1018, 1040, 1030, 1101],
    "end": [1020, 1045, 1031, 1102],
}


def test_parts_are_between_the_times_and_add_up() -> None:
    steps = _steps(TIMES)
    parts = {name: value / NS for name, value in steps.items() if name.endswith("_ns")}
    assert parts == {
        "total_ns": 100,
        "before_wire_ns": 10,
        "produce_ns": 10,
        "replication_ns": 10,
        "fetch_wait_ns": 10,
        "fetch_ns": 5,
        "processing_ns": 55,
    }
    assert sum(parts.values()) == 2 * parts["total_ns"]
    assert [steps[name] for name in STEPS if name.endswith("_call_id")] == [10, 12, 11, 13]
    assert [steps[name] // MS for name in STEPS if name.endswith("_time")] == [
        1000,
        1010,
        1020,
        1030,
        1045,
        1100,
    ]


def test_the_response_to_acks_all_shows_what_in_sync_replicas_have() -> None:
    steps = _steps(TIMES, flags=(IN_SYNC, 0, 0, 0))
    assert (steps["visible_time"], steps["visible_call_id"]) == (1018 * MS, 10)
    assert (steps["produce_ns"], steps["replication_ns"], steps["fetch_wait_ns"]) == (8 * NS, 0, 22 * NS)


def test_a_reader_of_stable_records_does_not_take_acks_for_it() -> None:
    steps = _steps(TIMES, flags=(IN_SYNC, STABLE, 0, 0))
    assert (steps["visible_time"], steps["visible_call_id"]) == (1030 * MS, 12)


def test_the_readers_own_fetch_ends_no_replication() -> None:
    steps = _steps(TIMES, places=(PRODUCE, PRODUCE, FETCH, FETCH, COMMIT))
    assert (steps["visible_time"], steps["visible_call_id"]) == (1040 * MS, 11)
    assert (steps["replication_ns"], steps["fetch_wait_ns"]) == (-1, 20 * NS)


def test_an_acknowledgement_that_comes_last_ends_with_the_step_before() -> None:
    late = {**TIMES, "end": [1043, 1045, 1031, 1102]}
    steps = _steps(late)
    assert (steps["produce_ns"], steps["replication_ns"], steps["fetch_wait_ns"]) == (20 * NS, 0, 10 * NS)


def test_a_commit_before_the_batch_was_there_does_not_count() -> None:
    early = {**TIMES, "begin": [1010, 1015, 1016, 1044]}
    steps = _steps(early)
    assert (steps["committed_time"], steps["committed_call_id"], steps["processing_ns"]) == (UNKNOWN, -1, -1)
    assert steps["total_ns"] == 45 * NS


@pytest.mark.parametrize("missing", [-1, 4, 1 << 40])
def test_a_place_that_is_none_has_no_steps(missing: int) -> None:
    steps = _steps(TIMES, places=(FETCH, missing, FETCH, missing, missing))
    known = {name for name, value in steps.items() if value not in (-1, UNKNOWN)}
    assert known == {"record_time", "fetched_time", "fetched_call_id", "total_ns", "fetch_ns"}
    assert (steps["total_ns"], steps["fetch_ns"]) == (45 * NS, 5 * NS)


def test_clocks_that_differ_give_no_parts() -> None:
    steps = _steps(TIMES, stamp=2000 * MS)
    assert (steps["before_wire_ns"], steps["total_ns"]) == (-1, 90 * NS)  # since it was sent
    before = {**TIMES, "shown": [1018, 1009, 1030, 1101]}
    steps = _steps(before)
    assert {steps[name] for name in ("total_ns", "produce_ns", "replication_ns", "fetch_wait_ns")} == {-1}


@pytest.mark.parametrize("stamp", [np.iinfo(np.int64).min, np.iinfo(np.int64).max, UNKNOWN + 1])
def test_no_timestamp_is_too_far_away(stamp: int) -> None:
    steps = _steps(TIMES, stamp=stamp)
    assert steps["before_wire_ns"] == -1
    assert steps["produce_ns"] == 10 * NS


def test_columns_of_other_sizes_are_refused() -> None:
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    steps = np.zeros((len(STEPS), 1), np.int64)
    for place in range(11):
        columns = [two if at == place else one for at in range(11)]
        with pytest.raises(ValueError, match="different sizes"):
            make_steps(tuple(columns[:6]), tuple(columns[6:]), steps)
    with pytest.raises(ValueError, match="different sizes"):
        make_steps((one,) * 6, (one,) * 5, np.zeros((len(STEPS), 2), np.int64))
