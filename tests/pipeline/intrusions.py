"""One segment at a time that nobody took, put into recorded captures: resets, SYNs, SYN-ACKs.

    python -m tests.pipeline.intrusions [folder ...]      behind every segment of every conversation there
    python -m tests.pipeline.intrusions --step 13         behind every thirteenth

Without folders: the project's captures, and ../shared/incidents where they are.

The conversation goes on as it was recorded, so that nobody can have taken the segment. What must come out
is what came out without it: every call, every byte. A reset is told by `reset_taken_back` or
`reset_out_of_window`, a SYN by `handshake_out_of_place`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.pipeline.removal import FOLDERS, Tables, first_of, kept, numbered, tables_of
from tests.pipeline.segments import ACK, FIN, RST, SYN, Segment, ahead, conversations, read

KINDS = {
    "RST": (RST, 0),
    "RST that acknowledges": (RST | ACK, 0),
    "RST at +1,000": (RST, 1_000),
    "RST at +70,000": (RST, 70_000),
    "RST at +2^30": (RST, 2**30),
    "RST at -5,000": (RST, -5_000),
    "SYN": (SYN, 77_777),
    "SYN-ACK": (SYN | ACK, 77_777),
}
BYTES = (
    "client_bytes",
    "broker_bytes",
    "client_missing_bytes",
    "broker_missing_bytes",
    "ending",
    "closed_by",
)
_SECOND = 10**9


def places(talk: list[Segment]) -> list[int]:
    """Behind which segments both sides go on within a second, and one is seen to have what the other sent."""
    closing = next((n for n, s in enumerate(talk) if s.flags & (FIN | RST)), len(talk))
    opening = max((n for n, s in enumerate(talk) if s.flags & SYN), default=0) + 1
    out = []
    for at in range(opening, closing):
        later = [s for s in talk[at + 1 : closing] if s.time_ns - talk[at].time_ns < _SECOND]
        sides = {s.ends[0] for s in later if s.payload}
        said = {s.ends[0] for s in talk[: at + 1] if s.payload}
        if len(sides) == 2 and len(said) == 2 and _is_answered(later):
            out.append(at)
    return out


def _is_answered(later: list[Segment]) -> bool:
    """Whether somebody acknowledges what the other side sent here."""
    for number, one in enumerate(later):
        if one.payload and any(
            s.ends[0] == one.ends[1] and s.payload and ahead(s.ack, one.seq) > 0 for s in later[number + 1 :]
        ):
            return True
    return False


def intruded(talk: list[Segment], at: int, kind: str, *, of_first: bool) -> list[Segment]:
    """With a segment behind the one at `at`, of the side that spoke first or of the other."""
    flags, more = KINDS[kind]
    sides = talk[0].ends
    side = sides[0] if of_first else sides[1]
    own = next(s for s in reversed(talk[: at + 1]) if s.ends[0] == side)
    seq, ack = (_reached(talk[: at + 1], each) for each in (side, own.ends[1]))
    made = own.bare(seq + more, ack if flags & ACK else 0, flags)
    made = replace(made, time_ns=talk[at].time_ns + 1)
    return numbered([*talk[: at + 1], made, *talk[at + 1 :]])


def _reached(talk: list[Segment], side: bytes) -> int:
    end = next(s.seq for s in talk if s.ends[0] == side)
    for segment in talk:
        if segment.ends[0] == side and ahead(segment.end, end) > 0:
            end = segment.end
    return end


def differences(before: Tables, after: Tables, kind: str) -> Iterator[str]:
    """What the segment changed, of what it may not change."""
    one, other = (sorted(map(repr, map(kept, tables["api_calls"]))) for tables in (before, after))
    if one != other:
        yield f"{len(set(one) - set(other))} calls differ"
    if len(after["connections"]) != 1:
        yield f"{len(after['connections'])} connections"
        return
    for name in BYTES:
        if first_of(before)[name] != first_of(after)[name]:
            yield f"{name}: {first_of(after)[name]} in the place of {first_of(before)[name]}"
    new = Counter(row["name"] for row in after["anomalies"]) - Counter(
        row["name"] for row in before["anomalies"]
    )
    wanted = (
        {"reset_taken_back", "reset_out_of_window"} if kind.startswith("RST") else {"handshake_out_of_place"}
    )
    if len(new) != 1 or not wanted & set(new):
        yield f"anomalies: {dict(new)}"


def tried(path: Path, *, step: int = 1) -> Iterator[tuple[str, str, list[str]]]:
    """Every `step`th place of a capture, kinds and sides in turn: its name, the kind, and what differs."""
    link, segments = read(path)
    number = 0
    for talk in map(numbered, conversations(segments)):
        found = places(talk)
        before = tables_of(link, talk) if found else None
        if before is None or first_of(before)["protocol"] != "kafka" or len(before["connections"]) != 1:
            continue
        for at in found:
            number += 1
            if number % step:
                continue
            for turn, kind in enumerate(KINDS):
                after = intruded(talk, at, kind, of_first=bool((number // step + turn) % 2))
                name = f"{path.parent.name}/{path.name}, {kind} behind {talk[at].frame}"
                yield name, kind, list(differences(before, tables_of(link, after), kind))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m tests.pipeline.intrusions")
    parser.add_argument("folders", nargs="*", type=Path, default=FOLDERS)
    parser.add_argument("--step", type=int, default=1)
    options = parser.parse_args(arguments)
    total: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    paths = sorted(path for folder in options.folders for path in folder.rglob("*.pcap*"))
    for path in paths:
        for name, kind, found in tried(path, step=options.step):
            total[kind] += 1
            wrong[kind] += bool(found)
            for each in found:
                sys.stdout.write(f"{name}: {each}\n")
        sys.stdout.flush()
    for kind, number in total.items():
        sys.stdout.write(f"{number:6} {kind}: {wrong[kind]} changed something\n")
    sys.stdout.write(
        f"{total.total()} segments put into {len(paths)} captures, {wrong.total()} changed something\n"
    )
    return 1 if wrong.total() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
