"""`python -m tests.pipeline.places`: clocks and hops of several places, beside what is known of them.

Recordings of captures/clocks were taken at the client and at the broker at once, by one clock, with a relay
of known delay and loss between them. Here clocks are moved and drift. Witnesses: what was added to
clocks; the times of packets in the unmoved files; and how often each file holds the bytes of a segment.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import kwsniff
from kwsniff.analysis.result import Analysis
from tests.house.tree import ROOT
from tests.pipeline.segments import Segment, ahead, read
from tests.traffic.files import Frame, pcap, read_frames

CLOCKS = ROOT / "captures" / "clocks"
MILLISECOND = 1_000_000
SECOND = 1_000 * MILLISECOND
MOVED_NS = (3 * SECOND, -SECOND, 20 * MILLISECOND, 0)
PPM = 1e-6
BROKER_PORT = (9092).to_bytes(2, "big")


@dataclass(frozen=True, slots=True)
class Move:
    """What is done to a clock: `ahead_ns` at the first packet, and `drift` from then on."""

    ahead_ns: int = 0
    drift: float = 0.0
    step_ns: int = 0
    """Stepped by that much halfway."""


def moved(frames: Sequence[Frame], move: Move) -> list[Frame]:
    """The frames by the moved clock."""
    first, last = frames[0].time_ns, frames[-1].time_ns

    def later(frame: Frame) -> int:
        step = move.step_ns if frame.time_ns > (first + last) // 2 else 0
        return move.ahead_ns + round(move.drift * (frame.time_ns - first)) + step

    return [replace(frame, time_ns=frame.time_ns + later(frame)) for frame in frames]


def frames_of(path: Path) -> list[Frame]:
    """Those of an Ethernet capture."""
    _, frames = read_frames(path.read_bytes())
    return frames


def write(path: Path, frames: Sequence[Frame]) -> Path:
    """A capture with nanoseconds."""
    path.write_bytes(pcap(frames, 1, nanoseconds=True))
    return path


def to_broker(frame: Frame) -> bool:
    """Whether an Ethernet frame goes to the port of the recorded brokers."""
    return frame.data[12:14] == b"\x08\x00" and frame.data[23] == 6 and frame.data[36:38] == BROKER_PORT


def behind(
    frames: Sequence[Frame], *, up_ns: int, down_ns: int, jitter_ns: int = 0, seed: int = 1
) -> list[Frame]:
    """The same frames at a place that is nearer to the broker by `up_ns` and, of answers, `down_ns`."""
    chance = random.Random(seed)
    latest = dict.fromkeys((True, False), 0)
    found = []
    for frame in frames:
        side = to_broker(frame)
        extra = round(chance.expovariate(1 / jitter_ns)) if jitter_ns else 0
        time = frame.time_ns + up_ns + extra if side else frame.time_ns - down_ns - extra
        latest[side] = max(latest[side] + 1, time)  # a way keeps the order of its packets
        found.append(replace(frame, time_ns=latest[side]))
    return sorted(found, key=lambda frame: frame.time_ns)


def behind_nat(frames: Sequence[Frame]) -> list[Frame]:
    """The client's address is another one."""
    inside, outside = bytes([10, 88, 0, 11]), bytes([198, 18, 0, 11])
    return [
        replace(frame, data=frame.data[:26] + frame.data[26:34].replace(inside, outside) + frame.data[34:])
        for frame in frames
    ]


@dataclass(frozen=True, slots=True)
class Judged:
    """What one run says, and what is known; nanoseconds."""

    name: str
    offset: int
    true_offset: int
    error: int
    drift: float
    hops: int
    worst_request: int
    worst_response: int
    lost: int
    true_lost: int
    repeated: int

    @property
    def off(self) -> int:
        return abs(self.offset - self.true_offset)


def analyzed(folder: Path, places: Mapping[str, Sequence[Frame]]) -> Analysis:
    """The tables of captures that are written there, one per place."""
    return kwsniff.analyze([write(folder / f"{name}.pcap", frames) for name, frames in places.items()])


def clock(done: Analysis, place: str) -> dict[str, Any]:
    """The row of the only capture of a place."""
    (row,) = [row for row in done.captures.to_pylist() if row["place"] == place]
    found: dict[str, Any] = row
    return found


def lost_between(near: Path, far: Path) -> int:
    """Segments with payload that passed the sender's side and were lost before the other one.

    A byte passed as often as segments hold it. What was on its way when the recordings ended was not lost:
    of a connection counts what was sent before the last packet that both have.
    """
    sides = [[each for each in read(path)[1] if each.payload] for path in (near, far)]
    lost = 0
    for ends in {each.ends for each in sides[0]} & {each.ends for each in sides[1]}:
        one, other = ([each for each in side if each.ends == ends] for side in sides)
        sent, seen = (one, other) if ends[1][-2:] == BROKER_PORT else (other, one)
        until = max(ahead(each.end, sent[0].seq) for each in seen)
        for seq in {each.seq for each in sent}:
            if ahead(seq, sent[0].seq) < until:
                lost += _copies(sent, seq) - _copies(seen, seq)
    return lost


def _copies(segments: Sequence[Segment], seq: int) -> int:
    return sum(0 <= ahead(seq, each.seq) < len(each.payload) for each in segments)


def true_hops(done: Analysis, near: Path, far: Path) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Rows of hops with the true times of request and response: between the packets of the last bytes, where
    both places have these."""
    times = [{segment.frame: segment.time_ns for segment in read(path)[1]} for path in (near, far)]
    places = {row["capture"]: row["place"] for row in done.captures.to_pylist()}
    twins = {row["connection_id"]: row["twin_of"] for row in done.connections.to_pylist()}
    sighted: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for call in done.api_calls.to_pylist():
        counted = twins[call["connection_id"]] or call["connection_id"]
        sighted.setdefault((counted, call["correlation_id"]), {})[places[call["capture"]]] = call
    numbers = {call["call_id"]: key for key, seen in sighted.items() for call in seen.values()}
    for row in done.hops.to_pylist():
        seen = sighted[numbers[row["call_id"]]]
        one, other = seen[row["from_place"]], seen[row["to_place"]]
        took = [
            times[1][other[f"{what}_end_frame"]] - times[0][one[f"{what}_end_frame"]]
            if one[f"{what}_end_frame"] and other[f"{what}_end_frame"]
            else 0
            for what in ("request", "response")
        ]
        yield row, took[0], -took[1]


def judge(recording: str, move: Move, folder: Path) -> Judged:
    """Client and broker of a recording, with the clock of the client moved."""
    near, far = CLOCKS / recording / "client.pcap", CLOCKS / recording / "broker.pcap"
    done = analyzed(folder, {"client": moved(frames_of(near), move), "broker": frames_of(far)})
    rows = {place: clock(done, place) for place in ("client", "broker")}
    offset = rows["client"]["clock_offset_ns"] - rows["broker"]["clock_offset_ns"]
    frames = frames_of(near)
    half = round(move.drift * (frames[-1].time_ns - frames[0].time_ns) / 2)
    hops = list(true_hops(done, near, far))
    return Judged(
        f"{recording} {move.ahead_ns / MILLISECOND:+,.0f} ms {move.drift / PPM:+.0f} ppm",
        offset,
        move.ahead_ns + half,
        max(row["clock_error_ns"] for row in rows.values()),
        rows["client"]["clock_drift_ppm"] - rows["broker"]["clock_drift_ppm"],
        len(hops),
        max(abs(row["request_ns"] - up) for row, up, _ in hops),
        max(abs(row["response_ns"] - down) for row, _, down in hops if row["response_ns"] is not None),
        sum(row["lost_packets"] for row, _, _ in hops),
        lost_between(near, far),
        sum(row["captured_twice_bytes"] + row["retransmitted_bytes"] for row in rows.values()),
    )


RECORDINGS = ("near", "far_40", "far_120", "loss_2", "loss_2_3_9", "loss_3_far", "data_every_300_far")


def main() -> None:
    out: Callable[[str], int] = sys.stdout.write
    out(f"{'recording, clock of the client':36} {'off':>9} {'error':>9} {'hops':>5} "
        f"{'request':>9} {'response':>9}  lost  known\n")  # fmt: skip
    for recording in RECORDINGS:
        for move in (*map(Move, MOVED_NS), Move(SECOND, 100 * PPM)):
            with tempfile.TemporaryDirectory() as folder:
                each = judge(recording, move, Path(folder))
            out(
                f"{each.name:36} {each.off / 1e6:6.3f} ms {each.error / 1e6:6.3f} ms {each.hops:5} "
                f"{each.worst_request / 1e6:6.3f} ms {each.worst_response / 1e6:6.3f} ms "
                f"{each.lost:5} {each.true_lost:6}\n"
            )


if __name__ == "__main__":
    main()
