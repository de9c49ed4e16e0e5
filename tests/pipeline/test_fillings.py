"""Holes of one place are filled from another, against recordings that have none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.analysis.result import Analysis
from tests.pipeline.fillings import (
    PLACES,
    analyzed,
    calls,
    counted,
    expected,
    filled,
    key_of,
    recorded,
    segments_of,
    shifted,
    thinned,
)
from tests.pipeline.places import RECORDINGS, behind_nat, write
from tests.pipeline.segments import ACK, Segment, frames_of

pytestmark = pytest.mark.sample_tests(8)

SEEDS = range(6)
GROUPED = [pytest.param(name, marks=pytest.mark.xdist_group(f"fillings-{name}")) for name in RECORDINGS]
"""What one process has analyzed the others would analyze again."""
Mended = Callable[[str, int], Analysis]
LOSS = ("segment_not_captured", "segment_lost")


def retransmitted(done: Analysis) -> int:
    return sum(
        row["client_retransmitted_bytes"] + row["broker_retransmitted_bytes"]
        for row in counted(done).values()
    )


@pytest.fixture(scope="module")
def mended(tmp_path_factory: pytest.TempPathFactory) -> Mended:
    """A recording and a seed -> its captures without some segments, analyzed together."""

    @cache
    def analyze(recording: str, seed: int) -> Analysis:
        return analyzed(tmp_path_factory.mktemp(recording), thinned(recording, seed).kept)

    return analyze


@pytest.mark.sample(4)
@pytest.mark.parametrize("recording", GROUPED)
@pytest.mark.parametrize("seed", SEEDS)
def test_filled_calls_are_those_of_complete_captures(recording: str, seed: int, mended: Mended) -> None:
    thin = thinned(recording, seed)
    done, whole = mended(recording, seed), recorded(recording, *PLACES)
    assert calls(done) == calls(whole)
    assert filled(done) == expected(done, thin)
    assert not [row for row in done.anomalies.to_pylist()
                if row["connection_id"] in counted(done) and row["name"] in LOSS]  # fmt: skip
    # A place that misses what was sent again, or for the first time, sees less of it; none sees more.
    assert retransmitted(done) <= max(
        sum(row[f"{side}_retransmitted_bytes"] for side in PLACES for row in each.connections.to_pylist())
        for each in (recorded(recording, place) for place in PLACES)
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize("recording", GROUPED)
@pytest.mark.parametrize("seed", SEEDS)
def test_filled_holes_add_up_with_captures(recording: str, seed: int, mended: Mended) -> None:
    done = mended(recording, seed)
    told = filled(done)
    for row in done.captures.to_pylist():
        bins = sum(row[f"{name}_bytes"] for name in kwsniff.core.declared.ENUMS["bin"])
        assert bins == row["tcp_payload_bytes"] + 2 * row["filled_bytes"]
        place = Path(row["capture"]).stem
        assert row["filled_bytes"] == sum(num for (where, _), num in told.items() if where == place)
        names = [PLACES[place == "client"] + ".pcap" for note in row["notes"] if "are filled from" in note]
        assert all(any(note.endswith(name) for note in row["notes"]) for name in names)
        assert bool(names) == bool(row["filled_bytes"])


@pytest.mark.sample(2)
@pytest.mark.parametrize("recording", GROUPED)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_finding_blames_loss_that_only_captures_had(recording: str, seed: int, mended: Mended) -> None:
    done = mended(recording, seed)
    whole = recorded(recording, *PLACES)
    known = {row["finding"] for each in (whole, *(recorded(recording, place) for place in PLACES))
             for row in each.findings.to_pylist()}  # fmt: skip
    told = {row["finding"] for row in done.findings.to_pylist() if row["severity"] != "info"}
    assert told <= known


@pytest.mark.sample(2)
@pytest.mark.parametrize("recording", RECORDINGS)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_both_places_miss_stays_missing(recording: str, seed: int, tmp_path: Path) -> None:
    """Calls are those of the place that counts where it misses no more than both do."""
    thin = thinned(recording, seed, both=0.04)
    lost = thin.gone["client"] & thin.gone["broker"]
    only = {
        place: [each for each in segments_of(recording, place) if key_of(each) not in lost]
        for place in PLACES
    }
    (tmp_path / "only").mkdir()
    done, known = analyzed(tmp_path, thin.kept), analyzed(tmp_path / "only", only)
    assert calls(done) == calls(known)
    missing = []
    for each in (done, known):
        rows = [row for row in each.anomalies.to_pylist() if row["connection_id"] in counted(each)]
        missing.append(sum(row["value"] for row in rows if row["name"] in LOSS))
    assert missing[0] == missing[1]
    assert bool(missing[0]) == bool(lost)


@pytest.mark.sample(1)
@pytest.mark.parametrize("recording", RECORDINGS)
def test_acknowledgements_that_a_place_misses_are_the_others(recording: str, tmp_path: Path) -> None:
    thin = thinned(recording, 1, acks=0.3)
    done = analyzed(tmp_path, thin.kept)
    assert calls(done) == calls(recorded(recording, *PLACES))


@pytest.mark.parametrize("left", [0, 40, 200, 900])
def test_numbers_that_go_round_make_no_difference(left: int, tmp_path: Path) -> None:
    recording = "far_40"
    thin = thinned(recording, 3)
    (first, *_) = [each for each in thin.kept["client"] if each.flags & ACK and each.payload]
    by = 2**32 - left - first.seq
    moved = {place: shifted(each, by) for place, each in thin.kept.items()}
    assert calls(analyzed(tmp_path, moved)) == calls(recorded(recording, *PLACES))


def test_behind_nat_holes_are_filled(tmp_path: Path) -> None:
    recording, thin = "far_40", thinned("far_40", 0)
    paths = [
        write(tmp_path / "client.pcap", frames_of(thin.kept["client"])),
        write(tmp_path / "broker.pcap", behind_nat(frames_of(thin.kept["broker"]))),
    ]
    done = kwsniff.analyze(paths)
    assert sum(row["filled_bytes"] for row in done.captures.to_pylist()) > 0
    assert calls(done) == calls(recorded(recording, *PLACES))


@pytest.mark.parametrize("options", [{"jobs": 2}, {"output": True}])
def test_analyzers_beside_each_other_and_files_have_the_same(options: dict[str, Any], tmp_path: Path) -> None:
    thin = thinned("loss_3_far", 2)
    done = analyzed(tmp_path, thin.kept, run_id="one")
    if "output" in options:
        options = {"output": tmp_path / "tables"}
    again = analyzed(tmp_path, thin.kept, run_id="one", **options)
    for name in ("api_calls", "anomalies", "latencies", "hops", "captures"):
        assert getattr(again, name).to_pylist() == getattr(done, name).to_pylist(), name


def test_a_message_whose_ends_are_filled_has_no_time(tmp_path: Path) -> None:
    """Other calls have the times and parts that they have in the complete capture."""
    recording, thin = "far_120", thinned("far_120", 2)
    done = analyzed(tmp_path, thin.kept)
    places = {row["connection_id"]: Path(row["capture"]).stem for row in counted(done).values()}
    times = {
        (place, row["client_port"], row["correlation_id"]): row
        for place in PLACES
        for row in recorded(recording, place).api_calls.to_pylist()
    }
    names = ("request_time", "request_end_time", "response_time", "response_end_time", "latency_ns")
    untimed = 0
    for row in done.api_calls.to_pylist():
        if row["connection_id"] not in places:
            continue
        known = times[places[row["connection_id"]], row["client_port"], row["correlation_id"]]
        assert {row[name] for name in names if row[name] is not None} <= {known[name] for name in names}
        untimed += any(row[name] is None and known[name] is not None for name in names)
    assert untimed > 0
    hops = {row["call_id"]: row for row in done.hops.to_pylist()}
    for row in done.api_calls.to_pylist():
        if row["call_id"] in hops and row["request_end_time"] is None:
            assert hops[row["call_id"]]["request_ns"] is None


@pytest.mark.parametrize("seed", [0, 3])
def test_files_of_a_rotation_are_filled_and_fill(seed: int, tmp_path: Path) -> None:
    thin = thinned("loss_3_far", seed)
    parts = {}
    for place, segments in thin.kept.items():
        half = segments[len(segments) // 2].frame
        parts[f"{place}1"] = [each for each in segments if each.frame < half]
        later = [each for each in segments if each.frame >= half]
        parts[f"{place}2"] = [replace(each, frame=each.frame - half + 1) for each in later]
    done = analyzed(tmp_path, parts)
    assert calls(done) == calls(recorded("loss_3_far", *PLACES))
    for row in done.captures.to_pylist():
        notes = [note for note in row["notes"] if "are filled from" in note]
        assert bool(notes) == bool(row["filled_bytes"])
        assert all(note.endswith(".pcap") for note in notes)


def other_payload(segment: Segment) -> Segment:
    return replace(segment, payload=bytes(len(segment.payload))) if segment.payload else segment


def test_copies_that_differ_fill_nothing(tmp_path: Path) -> None:
    """A place has the missing segment twice, with other bytes the second time."""
    thin = thinned("far_120", 3)
    (tmp_path / "once").mkdir()
    ((place, _), *_) = filled(analyzed(tmp_path / "once", thin.kept))
    other = PLACES[place == "client"]
    gone = thin.gone[place]
    twice = [copy for each in thin.kept[other]
             for copy in ([each, other_payload(each)] if key_of(each) in gone else [each])]  # fmt: skip
    twice = [replace(each, frame=number) for number, each in enumerate(twice, 1)]
    assert not filled(analyzed(tmp_path, {other: twice, place: thin.kept[place]}))


def test_one_capture_is_read_once_and_filled_with_nothing(tmp_path: Path) -> None:
    thin = thinned("loss_2", 0)
    done = kwsniff.analyze(write(tmp_path / "client.pcap", frames_of(thin.kept["client"])))
    (row,) = done.captures.to_pylist()
    assert row["filled_bytes"] == 0
    assert not filled(done)
