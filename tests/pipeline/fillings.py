"""`python -m tests.pipeline.fillings [seeds]`: what one place missed, filled from another.

Recordings of captures/clocks were taken at the client and at the broker at once. Here segments with payload
go from both, other ones each: as if the captures had missed them. Witnesses: the recordings as they are, and
the numbers of the segments that went.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import kwsniff
from kwsniff.analysis.result import Analysis
from tests.pipeline.places import CLOCKS, RECORDINGS, write
from tests.pipeline.segments import ACK, Segment, ahead, frames_of, read

PLACES = ("client", "broker")
SHARES = {"client": 0.03, "broker": 0.08}
CALL = (
    "client_port", "broker_port", "api_key", "api_version", "correlation_id", "client_id", "status", "reason",
    "request_bytes", "response_bytes", "error_code", "error_count", "topics", "group_id",
)  # fmt: skip
BROKER_PORT = (9092).to_bytes(2, "big")

Key = tuple[tuple[bytes, bytes], int, int]
"""Ends, number and bytes of a segment."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Thinned:
    """Segments of each place without those that went."""

    kept: Mapping[str, Sequence[Segment]]
    gone: Mapping[str, frozenset[Key]]

    @property
    def gone_bytes(self) -> dict[str, dict[tuple[bytes, bytes], set[int]]]:
        """By place and ends, the numbers of bytes."""
        found: dict[str, dict[tuple[bytes, bytes], set[int]]] = {}
        for place, keys in self.gone.items():
            for ends, seq, num in keys:
                numbers = found.setdefault(place, {}).setdefault(ends, set())
                numbers |= {(seq + n) % 2**32 for n in range(num)}
        return found


@cache
def segments_of(recording: str, place: str) -> tuple[Segment, ...]:
    return tuple(read(CLOCKS / recording / f"{place}.pcap")[1])


def key_of(segment: Segment) -> Key:
    return segment.ends, segment.seq, len(segment.payload)


def acknowledged(segments: Iterable[Segment]) -> dict[tuple[bytes, bytes], int]:
    """Ends -> the highest number that the receiver acknowledged."""
    found: dict[tuple[bytes, bytes], int] = {}
    for each in segments:
        ends = each.ends[::-1]
        if each.flags & ACK and (ends not in found or ahead(each.ack, found[ends]) > 0):
            found[ends] = each.ack
    return found


def thinned(
    recording: str, seed: int, shares: Mapping[str, float] = SHARES, both: float = 0.0, acks: float = 0.0
) -> Thinned:
    """`shares`: of the segments with payload that both places have and an acknowledgement covers, that go
    from one; `both`: that go from both; `acks`: of those without payload, at each place."""
    chance = random.Random(f"{recording} {seed}")
    known = [
        {key_of(each): None for each in segments_of(recording, place) if each.payload} for place in PLACES
    ]
    acked = acknowledged(each for place in PLACES for each in segments_of(recording, place))
    keys = [key for key in known[0] if key in known[1] and ahead(acked[key[0]], key[1]) >= key[2]]
    gone: dict[str, set[Key]] = {place: set() for place in PLACES}
    for key in keys:
        drawn = chance.random() - both
        if drawn < 0:
            gone["client"].add(key)
            gone["broker"].add(key)
        elif drawn < shares["client"]:
            gone["client"].add(key)
        elif drawn < shares["client"] + shares["broker"] and not _overlaps(key, gone["client"]):
            gone["broker"].add(key)
    kept = {
        place: [
            each
            for each in segments_of(recording, place)
            if (
                key_of(each) not in gone[place] if each.payload else each.flags & 7 or chance.random() >= acks
            )
        ]
        for place in PLACES
    }
    return Thinned(kept, {place: frozenset(each) for place, each in gone.items()})


def _overlaps(key: Key, others: Iterable[Key]) -> bool:
    return any(
        key[0] == ends and ahead(key[1], seq) < num and ahead(seq, key[1]) < key[2]
        for ends, seq, num in others
    )


def bytes_of(segments: Iterable[Segment]) -> set[tuple[tuple[bytes, bytes], int]]:
    """Ends and number of each."""
    return {(each.ends, (each.seq + n) % 2**32) for each in segments for n in range(len(each.payload))}


def fillable(thin: Thinned, place: str) -> Counter[int]:
    """Client's port -> bytes that went from this place, that the other one has, and of which an
    acknowledgement is left."""
    other = PLACES[place == "client"]
    acked = acknowledged(each for segments in thin.kept.values() for each in segments)
    gone = thin.gone_bytes.get(place, {})
    found: Counter[int] = Counter()
    for ends, number in bytes_of(thin.kept[other]) - bytes_of(thin.kept[place]):
        if number in gone.get(ends, ()) and ahead(acked[ends], number) > 0:
            found[int.from_bytes(ends[ends[0][-2:] == BROKER_PORT][-2:])] += 1
    return found


def shifted(segments: Iterable[Segment], by: int) -> list[Segment]:
    """With other sequence numbers, in both directions."""
    found = []
    for each in segments:
        tcp = bytearray(each.tcp)
        for at in (4, 8):
            number = int.from_bytes(tcp[at : at + 4])
            tcp[at : at + 4] = ((number + by) % 2**32 if number else 0).to_bytes(4)
        found.append(replace(each, tcp=bytes(tcp)))
    return found


def analyzed(folder: Path, segments: Mapping[str, Sequence[Segment]], **options: Any) -> Analysis:
    """The tables of captures that are written there, one per place."""
    paths = [write(folder / f"{place}.pcap", frames_of(each)) for place, each in segments.items()]
    return kwsniff.analyze(paths, **options)


@cache
def recorded(recording: str, *places: str) -> Analysis:
    return kwsniff.analyze([CLOCKS / recording / f"{place}.pcap" for place in places])


def counted(done: Analysis) -> dict[int, Row]:
    """Connections without twins, by their ids."""
    return {row["connection_id"]: row for row in done.connections.to_pylist() if row["twin_of"] is None}


def calls(done: Analysis) -> Counter[tuple[Any, ...]]:
    """What is said of the calls that count, but their times."""
    connections = counted(done)
    rows = [row for row in done.api_calls.to_pylist() if row["connection_id"] in connections]
    return Counter(tuple(str(row[name]) for name in CALL) for row in rows)


def filled(done: Analysis) -> Counter[tuple[str, int]]:
    """Place and client's port -> bytes that were filled."""
    connections = {row["connection_id"]: row for row in done.connections.to_pylist()}
    found: Counter[tuple[str, int]] = Counter()
    for row in done.anomalies.to_pylist():
        if row["name"] == "hole_filled":
            connection = connections[row["connection_id"]]
            found[Path(connection["capture"]).stem, connection["client_port"]] += row["value"]
    return found


def expected(done: Analysis, thin: Thinned) -> Counter[tuple[str, int]]:
    """What `filled` has to say."""
    known = {place: fillable(thin, place) for place in PLACES}
    rows = [(Path(row["capture"]).stem, row["client_port"]) for row in counted(done).values()]
    return +Counter({(place, port): known[place][port] for place, port in rows})


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    sys.stdout.write(f"{'recording':20} seeds  filled  calls as recorded\n")
    for recording in RECORDINGS:
        total, same = 0, 0
        for seed in range(seeds):
            with tempfile.TemporaryDirectory() as folder:
                done = analyzed(Path(folder), thinned(recording, seed).kept)
            total += sum(row["filled_bytes"] for row in done.captures.to_pylist())
            same += calls(done) == calls(recorded(recording, *PLACES))
        sys.stdout.write(f"{recording:20} {seeds:5} {total:7} {same:18}\n")


if __name__ == "__main__":
    main()
