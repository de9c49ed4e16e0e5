"""Several places: clocks, hops and lost packets against what is known of the recordings."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.errors import UsageError
from kwsniff.findings.views import READ
from tests.pipeline.places import (
    CLOCKS,
    MILLISECOND,
    MOVED_NS,
    PPM,
    RECORDINGS,
    SECOND,
    Move,
    analyzed,
    behind,
    behind_nat,
    clock,
    frames_of,
    judge,
    lost_between,
    moved,
    write,
)
from tests.traffic.files import Frame

pytestmark = pytest.mark.sample_tests(10)

HEALTHY = ("near", "far_40", "far_120")
PACE = 60


def slowly(name: str) -> list[Frame]:
    """What the client of a recording saw, as if everything had taken a minute for each second."""
    frames = frames_of(CLOCKS / name / "client.pcap")
    first = frames[0].time_ns
    return [replace(frame, time_ns=first + PACE * (frame.time_ns - first)) for frame in frames]


@pytest.mark.sample(4)
@pytest.mark.parametrize("recording", RECORDINGS)
@pytest.mark.parametrize("move", [*map(Move, MOVED_NS), Move(SECOND, 100 * PPM)], ids=str)
def test_offset_hops_and_losses_are_those_that_are_known(recording: str, move: Move, tmp_path: Path) -> None:
    judged = judge(recording, move, tmp_path)
    assert judged.hops > 30
    assert judged.off <= min(judged.error, MILLISECOND)
    assert judged.worst_request <= MILLISECOND
    assert judged.worst_response <= MILLISECOND
    assert judged.lost == judged.true_lost


@pytest.mark.parametrize("recording", ["loss_2", "loss_3_far"])
def test_the_error_is_half_of_the_relays_round_trip(recording: str, tmp_path: Path) -> None:
    half = {"loss_2": 5 * MILLISECOND, "loss_3_far": 20 * MILLISECOND}[recording]
    error = judge(recording, Move(), tmp_path).error
    assert half <= error <= half + MILLISECOND


@pytest.mark.parametrize("ppm", [100, -100, 0, 20])
def test_drift_is_found_over_minutes(ppm: int, tmp_path: Path) -> None:
    """The way takes 10 ms to the broker and 4 ms back at the least: 3 ms of the offset no packet tells."""
    client = slowly("far_120")
    away = behind(client, up_ns=10 * MILLISECOND, down_ns=4 * MILLISECOND, jitter_ns=100_000)
    done = analyzed(tmp_path, {"client": client, "broker": moved(away, Move(3 * SECOND, ppm * PPM))})
    rows = clock(done, "client"), clock(done, "broker")
    drift = rows[1]["clock_drift_ppm"] - rows[0]["clock_drift_ppm"]
    offset = rows[1]["clock_offset_ns"] - rows[0]["clock_offset_ns"]
    halfway = 3 * SECOND + ppm * PPM * (away[-1].time_ns - away[0].time_ns) / 2
    assert abs(drift - ppm) < 2
    assert abs(offset - (halfway + 3 * MILLISECOND)) < MILLISECOND
    assert abs(max(row["clock_error_ns"] for row in rows) - 7 * MILLISECOND) < MILLISECOND


def test_a_clock_that_is_stepped_has_two_lines(tmp_path: Path) -> None:
    client = slowly("far_40")
    away = behind(client, up_ns=2 * MILLISECOND, down_ns=2 * MILLISECOND)
    places = {"client": client, "broker": moved(away, Move(SECOND, step_ns=50 * MILLISECOND))}
    done = analyzed(tmp_path, places)
    assert [each["clock_steps"] for each in done.summary["places"] if not each["is_reference"]] == [1]
    told = [row for row in done.hops.to_pylist() if row["request_ns"] is not None]
    right = [row for row in told if abs(row["request_ns"] - 2 * MILLISECOND) < MILLISECOND]
    assert len(right) >= len(told) - 1 > 30  # one call may be on its way when the clock is stepped


@pytest.mark.sample(1)
@pytest.mark.parametrize("leg", [("client", "middle"), ("middle", "broker")])
def test_what_was_lost_is_lost_on_its_leg(leg: tuple[str, str], tmp_path: Path) -> None:
    """The relay lost it between client and broker: behind a middle beside the client, before one beside the
    broker."""
    paths = [CLOCKS / "loss_3_far" / f"{name}.pcap" for name in ("client", "broker")]
    client, broker = map(frames_of, paths)
    if leg[0] == "middle":
        middle = behind(client, up_ns=MILLISECOND, down_ns=MILLISECOND)
    else:
        middle = behind(broker, up_ns=-MILLISECOND, down_ns=-MILLISECOND)
    done = analyzed(
        tmp_path, {"client": client, "middle": moved(middle, Move(20 * MILLISECOND)), "broker": broker}
    )
    lost: Counter[tuple[str, str]] = Counter()
    for row in done.hops.to_pylist():
        lost[row["from_place"], row["to_place"]] += row["lost_packets"]
    assert set(lost) == {("client", "middle"), ("middle", "broker")}
    assert +lost == {leg: lost_between(*paths)}
    assert {each["place"]: each["side"] for each in done.summary["places"]} == {
        "client": "client", "middle": "between", "broker": "broker"
    }  # fmt: skip


def test_the_hops_of_a_call_add_up(tmp_path: Path) -> None:
    client = frames_of(CLOCKS / "far_120" / "client.pcap")
    middle = behind(client, up_ns=20 * MILLISECOND, down_ns=10 * MILLISECOND)
    broker = frames_of(CLOCKS / "far_120" / "broker.pcap")
    done = analyzed(tmp_path, {"broker": broker, "client": client, "middle": moved(middle, Move(-SECOND))})
    took: dict[int, int] = {}
    for row in done.hops.to_pylist():
        if row["response_ns"] is not None:
            took[row["call_id"]] = took.get(row["call_id"], 0) + row["request_ns"] + row["response_ns"]
    assert len(took) > 30
    assert all(120 * MILLISECOND <= each <= 123 * MILLISECOND for each in took.values())


@pytest.mark.sample(1)
@pytest.mark.parametrize("recording", HEALTHY)
def test_a_healthy_pair_is_quiet(recording: str) -> None:
    paths = [CLOCKS / recording / f"{name}.pcap" for name in ("client", "broker")]
    done = kwsniff.analyze(paths)
    alone = [kwsniff.analyze(path) for path in paths]
    assert {row["finding"] for row in done.findings.to_pylist()} <= {
        row["finding"] for each in alone for row in each.findings.to_pylist()
    }
    assert not [row for row in done.findings.to_pylist() if row["severity"] != "info"]
    transport = done.summary["transport"]
    assert transport["client_retransmitted_bytes"] + transport["broker_retransmitted_bytes"] == 0
    assert (
        sum(row["retransmitted_bytes"] + row["captured_twice_bytes"] for row in done.captures.to_pylist())
        == 0
    )
    calls = [sum(row["calls"] for row in each.summary["calls"]) for each in (done, *alone)]
    assert calls[0] == max(calls[1:])


INSIDE = ("queue_wait_ns", "broker_ns", "deliberate_wait_ns")
PARTS = ("request_transmission_ns", "network_ns", *INSIDE, "response_transmission_ns")


def latencies_of(done: kwsniff.Analysis) -> dict[tuple[Any, ...], dict[str, Any]]:
    """By capture, ports and correlation id."""
    calls = {row["call_id"]: row for row in done.api_calls.to_pylist()}
    found = {}
    for row in done.latencies.to_pylist():
        call = calls[row["call_id"]]
        place = Path(call["capture"]).stem
        found[place, call["client_port"], call["broker_port"], call["correlation_id"]] = row
    return found


@pytest.mark.sample(1)
@pytest.mark.parametrize("recording", RECORDINGS)
def test_the_network_time_is_what_a_call_took_longer_than_beside_the_broker(recording: str) -> None:
    """Witnesses: the broker's file alone, and the hops of calls without losses."""
    paths = [CLOCKS / recording / f"{name}.pcap" for name in ("client", "broker")]
    done = kwsniff.analyze(paths, tables=READ)
    rows = latencies_of(done)
    alone, beside = (latencies_of(kwsniff.analyze(path, tables=READ)) for path in paths)
    hops = {row["call_id"]: row for row in done.hops.to_pylist()}
    measured = [key for key in rows if key[0] == "client" and ("broker", *key[1:]) in rows]
    assert len(measured) > 30
    for key in measured:
        row, there = rows[key], beside["broker", *key[1:]]
        assert sum(row[part] for part in PARTS) == row["total_ns"] == alone[key]["total_ns"]
        assert min(row[part] for part in PARTS) >= 0
        assert sum(row[part] for part in INSIDE) == sum(there[part] for part in INSIDE)
        if row["retransmissions"] or there["retransmissions"]:
            continue
        counted = rows["broker", *key[1:]]["call_id"]
        hop = hops.get(row["call_id"]) or hops[counted]
        between = hop["request_ns"] + hop["response_ns"]  # each until its last packet
        between -= row["response_transmission_ns"] - there["response_transmission_ns"]
        assert abs(between + there["network_ns"] - row["network_ns"]) < 10_000
    assert {key: row for key, row in rows.items() if key[0] == "broker"}.keys() <= beside.keys()


def test_the_summary_has_the_measured_times(tmp_path: Path) -> None:
    paths = [CLOCKS / "loss_3_far" / f"{name}.pcap" for name in ("client", "broker")]
    done = kwsniff.analyze(paths, output=tmp_path / "tables")
    twins = {row["connection_id"] for row in done.connections.to_pylist() if row["twin_of"] is not None}
    rows = [row for row in done.latencies.to_pylist() if row["connection_id"] not in twins]
    summed = done.summary["latency"]["apis"]
    for part in PARTS:
        assert sum(each[part] for each in summed) == sum(row[part] for row in rows), part
    alone = kwsniff.analyze(paths, tables="latencies")
    assert [row["network_ns"] for row in alone.latencies.to_pylist()] == [
        row["network_ns"] for row in done.latencies.to_pylist()
    ]


def test_the_order_of_files_changes_nothing() -> None:
    paths = [CLOCKS / "loss_2" / f"{name}.pcap" for name in ("client", "broker")]

    def told(done: kwsniff.Analysis) -> Any:
        return [{**row, "run_id": None} for row in done.hops.to_pylist()]

    assert told(kwsniff.analyze(paths)) == told(kwsniff.analyze(paths[::-1])) != []


def test_behind_nat_hops_are_the_same(tmp_path: Path) -> None:
    paths = [CLOCKS / "far_40" / f"{name}.pcap" for name in ("client", "broker")]
    client, broker = map(frames_of, paths)
    done = analyzed(tmp_path, {"client": client, "broker": behind_nat(broker)})
    took = [[(row["request_ns"], row["response_ns"]) for row in each.hops.to_pylist()]
            for each in (done, kwsniff.analyze(paths))]  # fmt: skip
    assert took[0] == took[1] != []
    assert {row["place"] for row in done.captures.to_pylist()} == {"client", "broker"}


def test_a_rotation_that_sees_both_sides_of_nat_is_one_place(tmp_path: Path) -> None:
    client = frames_of(CLOCKS / "far_40" / "client.pcap")
    later = [replace(frame, time_ns=frame.time_ns + 40_000) for frame in behind_nat(client)]
    both = sorted([*client, *later], key=lambda frame: frame.time_ns)
    for cut in range(1, len(both), 7):
        parts = {"part0": both[:cut], "part1": both[cut:]}
        done = analyzed(tmp_path, parts)
        assert [row["place"] for row in done.captures.to_pylist()] == [None, None]
        assert done.hops.num_rows == 0


def test_files_that_follow_one_another_are_of_one_place(tmp_path: Path) -> None:
    client = frames_of(CLOCKS / "far_120" / "client.pcap")
    half = len(client) // 2
    parts = [write(tmp_path / f"part{n}.pcap", part) for n, part in enumerate((client[:half], client[half:]))]
    done = kwsniff.analyze(parts)
    assert done.hops.num_rows == 0
    assert [row["place"] for row in done.captures.to_pylist()] == [None, None]
    assert done.summary["places"] == []
    both = kwsniff.analyze([*parts, CLOCKS / "far_120" / "broker.pcap"])
    assert {row["place"] for row in both.captures.to_pylist()} == {"part0", "broker"}
    whole = kwsniff.analyze([CLOCKS / "far_120" / f"{name}.pcap" for name in ("client", "broker")])
    assert both.hops.num_rows == whole.hops.num_rows


def test_one_file_has_no_place() -> None:
    done = kwsniff.analyze(CLOCKS / "near" / "client.pcap")
    assert done.hops.num_rows == 0
    (row,) = done.captures.to_pylist()
    assert {row[name] for name in ("place", "clock_offset_ns", "clock_error_ns", "clock_drift_ppm")} == {None}


def test_files_and_memory_hold_the_same(tmp_path: Path) -> None:
    paths = [CLOCKS / "far_40" / f"{name}.pcap" for name in ("client", "broker")]
    written = kwsniff.analyze(paths, output=tmp_path / "tables", run_id="one")
    assert written.hops.to_pylist() == kwsniff.analyze(paths, run_id="one").hops.to_pylist()
    only = kwsniff.analyze(paths, tables="hops", run_id="one")
    assert only.names == ("hops",)
    assert only.hops.to_pylist() == written.hops.to_pylist()


def test_places_by_hand(tmp_path: Path) -> None:
    paths = {name: [CLOCKS / "near" / f"{name}.pcap"] for name in ("client", "broker")}
    named = {"shop": paths["client"], "kafka": paths["broker"]}
    done = kwsniff.analyze(places=named)
    assert {(row["from_place"], row["to_place"]) for row in done.hops.to_pylist()} == {("shop", "kafka")}
    assert done.hops.num_rows == kwsniff.analyze([*paths["client"], *paths["broker"]]).hops.num_rows
    with pytest.raises(UsageError, match="is given for two places"):
        kwsniff.analyze(places={"shop": paths["client"], "kafka": paths["client"]})
    with pytest.raises(UsageError, match="has no place"):
        kwsniff.analyze(paths["client"], places={"kafka": paths["broker"]})


def test_the_command_line_names_places() -> None:
    paths = [f"{name}={CLOCKS / 'far_120' / name}.pcap" for name in ("client", "broker")]
    words = [word for path in paths for word in ("--place", path)]
    run = [sys.executable, "-m", "kwsniff.cli.main", "analyze"]
    shown = subprocess.run([*run, *words], capture_output=True, text=True, check=True).stdout
    lines = [line for line in shown.splitlines() if line.startswith("place ")]
    assert [line.partition(":")[0] for line in lines] == [
        "place client, nearest to the client", "place broker, nearest to the broker"
    ]  # fmt: skip
    told = subprocess.run([*run, *words, "--json"], capture_output=True, text=True, check=True).stdout
    assert [each["place"] for each in json.loads(told)["places"]] == ["client", "broker"]
    refused = subprocess.run([*run, "--place", "client"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize("folders", [("a", "b"), ("a/x", "b/x")])
def test_places_of_equal_file_names_are_told_apart(folders: tuple[str, str], tmp_path: Path) -> None:
    for folder, side in zip(folders, ("client", "broker"), strict=True):
        (tmp_path / folder).mkdir(parents=True)
        write(tmp_path / folder / "capture.pcap", frames_of(CLOCKS / "near" / f"{side}.pcap"))
    done = kwsniff.analyze([tmp_path / folder / "capture.pcap" for folder in folders])
    assert {row["place"] for row in done.captures.to_pylist()} == {f"{folder}/capture" for folder in folders}


def test_times_that_say_nothing_tell_no_clock(tmp_path: Path) -> None:
    """All packets of one place at one time: no clock, no times of hops, no side; places and calls all the
    same."""
    client = [replace(frame, time_ns=SECOND) for frame in frames_of(CLOCKS / "near" / "client.pcap")]
    done = analyzed(tmp_path, {"client": client, "broker": frames_of(CLOCKS / "near" / "broker.pcap")})
    assert {(row["request_ns"], row["response_ns"]) for row in done.hops.to_pylist()} == {(None, None)}
    assert {row["place"] for row in done.captures.to_pylist()} == {"client", "broker"}
    assert {each["side"] for each in done.summary["places"]} == {None}
    assert sorted(map(str, (row["clock_offset_ns"] for row in done.captures.to_pylist()))) == ["0", "None"]
