"""Packets taken out of recorded captures as a kernel drops them, and what is then said that is false.

    python -m tests.pipeline.drops [file ...]       all ways of dropping, three seeds each
    python -m tests.pipeline.drops --seeds 1 file   one seed

Without files: the project's captures, and ../shared/incidents where they are.

The truth is the same recording with every packet: a call that was answered there, and is then said to have
been passed over, or to have waited until its connection was closed or reset, is a false claim. So are another
answer, another latency, and a call that is not in the whole recording.

Counted apart is what is true of the packets that are left. "another copy": another latency where TCP had sent
bytes again, and the first copy is gone. "another end": of a call that was never answered, or answered behind
a reset that is gone. "asked before": the first answer of a connection that was recorded from the middle on.

Ends with 1 where anything false was said.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from scapy.utils import RawPcapNgReader, RawPcapReader

from tests.pipeline.running import analyzer, rows_of
from tests.traffic.files import Frame, pcap

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "captures", ROOT.parent / "shared" / "incidents")
TABLES = ("api_calls", "connections")
HONEST = ("open_at_end", "limit_reached")
"""Reasons of `unanswered` that blame nobody: what the recording showed ended, or what kwsniff keeps."""

Row = dict[str, Any]
Keep = Callable[[int, random.Random], list[bool]]


# -- ways of dropping -----------------------------------------------------------------------------------


def alone(share: float) -> Keep:
    """Each packet by itself."""
    return lambda number, chance: [chance.random() >= share for _ in range(number)]


def runs(lost: int, period: int) -> Keep:
    """`lost` of every `period` packets in a row, from anywhere on."""

    def keep(number: int, chance: random.Random) -> list[bool]:
        since = chance.randrange(period)
        return [(at + since) % period >= lost for at in range(number)]

    return keep


def bursts(mean: int, share: float) -> Keep:
    """Runs of many lengths (geometric), which take this share of all."""

    def keep(number: int, chance: random.Random) -> list[bool]:
        out: list[bool] = []
        while len(out) < number:
            for kept, size in ((True, mean * (1 - share) / share), (False, mean)):
                out += [kept] * (1 + int(chance.expovariate(1 / size)))
        return out[:number]

    return keep


def late(number: int, chance: random.Random) -> list[bool]:
    """The capture began later, and misses some in the middle."""
    begin = chance.randrange(number)
    return [at >= begin and chance.random() >= 0.03 for at in range(number)]


WAYS: dict[str, Keep] = {
    **{f"{share:.0%} alone": alone(share) for share in (0.01, 0.03, 0.1, 0.25, 0.4, 0.6)},
    **{f"{lost} of {period}": runs(lost, period) for lost, period in (
        (3, 20), (20, 60), (25, 40), (100, 300), (250, 400), (1000, 1600), (2500, 4000),
    )},
    **{f"bursts of {mean}, {share:.0%}": bursts(mean, share) for mean, share in (
        (4, 0.1), (4, 0.5), (30, 0.2), (30, 0.6), (200, 0.4),
    )},
    "begun late": late,
}  # fmt: skip


# -- recordings -----------------------------------------------------------------------------------------


def packets_of(path: Path) -> tuple[int, list[Frame]]:
    """The link type and every packet."""
    link, out = 1, []
    reader: Any
    with RawPcapReader(str(path)) as reader:
        meta: Any
        for data, meta in reader:
            if type(reader) is RawPcapNgReader:
                ticks = (meta.tshigh or 0) << 32 | (meta.tslow or 0)
                link, time_ns = meta.linktype, ticks * 10**9 // meta.tsresol
            else:
                link, time_ns = reader.linktype, meta.sec * 10**9 + meta.usec * (1 if reader.nano else 1000)
            out.append(Frame(time_ns, data, meta.wirelen or len(data)))
    return link, out


def rows(link: int, frames: Iterable[Frame], secrets: Any = None) -> dict[str, list[Row]]:
    engine = analyzer()
    if secrets is not None:
        engine.open_tls(secrets)
    engine.open_capture("capture")
    engine.feed(pcap(frames, link, nanoseconds=True))
    engine.close_capture()
    engine.finish()
    return rows_of({name: engine.drain(name) for name in TABLES})


def secrets_of(path: Path) -> Any:
    """The TLS secrets beside a recording, or None."""
    from kwsniff.sources.tls import Secrets

    keys = path.parent / "keys.log"
    return Secrets(str(keys)) if keys.exists() else None


# -- verdicts -------------------------------------------------------------------------------------------


class Truth:
    """The calls of a whole recording, by their connection's ends and correlation id, in their order."""

    def __init__(self, whole: dict[str, list[Row]]) -> None:
        self.calls: dict[Any, list[Row]] = {}
        self.again: set[int] = {
            row["connection_id"]
            for row in whole["connections"]
            if row["client_retransmitted_bytes"] + row["broker_retransmitted_bytes"]
            + row["client_out_of_order"] + row["broker_out_of_order"]
        }  # fmt: skip
        self.under_way = {ends_of(row) for row in whole["connections"] if not row["handshake"]}
        for row in whole["api_calls"]:
            self.calls.setdefault(key_of(row), []).append(row)

    def call(self, row: Row, frames: Sequence[int]) -> Row | None:
        """The call that this row is about: the latest one of its key that had begun."""
        asked, answered = row["request_frame"], row["response_frame"]
        at = frames[(asked if asked is not None else answered) - 1]
        found = None
        for call in self.calls.get(key_of(row), ()):
            began = call["request_frame"] if call["request_frame"] is not None else call["response_frame"]
            if began <= at:
                found = call
        return found


def ends_of(row: Row) -> frozenset[tuple[str, int]]:
    return frozenset(
        ((row["client_address"], row["client_port"]), (row["broker_address"], row["broker_port"]))
    )


def key_of(row: Row) -> Any:
    return ends_of(row), row["correlation_id"]


def judge(row: Row, truth: Truth, frames: Sequence[int]) -> str:
    """What is false about a row of a recording that lost packets; empty: nothing."""
    call = truth.call(row, frames)
    if call is None:
        is_older = row["status"] == "response_only" and ends_of(row) in truth.under_way
        return "asked before" if is_older else "invented"
    if row["api_key"] not in (None, call["api_key"]):
        return "invented"
    if row["status"] == call["status"] == "answered":
        return judge_answer(row, call, sent_again=call["connection_id"] in truth.again)
    return judge_claim(row, call)


def judge_answer(row: Row, call: Row, *, sent_again: bool) -> str:
    if row["response_bytes"] != call["response_bytes"]:
        return "wrong answer"
    if row["reason"] is None and row["latency_ns"] != call["latency_ns"]:
        return "another copy" if sent_again else "wrong latency"
    return ""


def judge_claim(row: Row, call: Row) -> str:
    claim = row["status"], row["reason"]
    if claim == (call["status"], call["reason"]):
        return ""
    if claim[0] == "unanswered" and claim[1] not in HONEST:
        return "another end" if call["status"] == "unanswered" else f"said {claim[1]}"
    if claim[0] == "no_response_expected":
        return "" if call["status"] == claim[0] else f"said {claim[0]}"
    return "another end" if claim[0] == "answered" else ""


APART = ("another copy", "another end", "asked before")


def tried(path: Path, seeds: int) -> Iterator[tuple[str, int, Counter[str], list[str]]]:
    """Every way and seed: how many rows were judged, what was false about them, and where."""
    link, frames = packets_of(path)
    secrets = secrets_of(path)
    truth = Truth(rows(link, frames, secrets))
    for way, keep in WAYS.items():
        for seed in range(seeds):
            kept = keep(len(frames), random.Random(f"{path.parent.name}/{path.name} {way} {seed}"))
            numbers = [number for number, is_kept in enumerate(kept, 1) if is_kept]
            found = rows(link, (frames[number - 1] for number in numbers), secrets)["api_calls"]
            faults: Counter[str] = Counter()
            where = []
            for row in found:
                if fault := judge(row, truth, numbers):
                    faults[fault] += 1
                    where.append(
                        f"{path}, {way}, seed {seed}: {fault}: port {row['client_port']},"
                        f" correlation {row['correlation_id']}, frames {row['request_frame']}.."
                    )
            yield way, len(found), faults, where


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m tests.pipeline.drops")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--where", action="store_true", help="name every row with something false")
    options = parser.parse_args(arguments)
    paths = options.files or sorted(
        path for folder in FOLDERS for path in folder.rglob("*.pcap*") if not path.name.endswith(".toml")
    )
    judged: Counter[str] = Counter()
    total: Counter[str] = Counter()
    ways: dict[str, Counter[str]] = {}
    number = 0
    for path in paths:
        for way, calls, faults, where in tried(path, options.seeds):
            number += 1
            judged[way] += calls
            total += faults
            ways.setdefault(way, Counter()).update(faults)
            if options.where:
                sys.stdout.writelines(f"{line}\n" for line in where)
    for way, faults in ways.items():
        told = ", ".join(f"{name} {count}" for name, count in sorted(faults.items())) or "nothing false"
        sys.stdout.write(f"{way:20} {judged[way]:8} calls: {told}\n")
    told = ", ".join(f"{name} {count}" for name, count in sorted(total.items())) or "nothing false"
    sys.stdout.write(f"{len(paths)} recordings, {number} runs, {judged.total()} calls: {told}\n")
    return 1 if any(name not in APART for name in total) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
