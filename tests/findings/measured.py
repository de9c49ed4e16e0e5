"""How often `kwsniff why` names the cause: `python -m tests.findings.measured > docs/accuracy.md`.

Every recording of captures/incidents and captures/clocks, at each place where it was taken. What was done to
the system stands in its about.toml, written when it was recorded; nothing here comes from what kwsniff says.
"""

import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import kwsniff
from tests.house.tree import ROOT

CAPTURES = ROOT / "captures"
CLOCKS: Final = {
    "data_every": "",
    "far": "far_away",
    "follower_stopped": "replication_slow",
    "line_behind_fetch": "",
    "loss": "loss_slows_calls",
    "members_slow": "",
    "near": "",
    "password_wrong": "authentication_failed",
    "quota": "throttled",
}
"""What captures/clocks show, by the beginning of a name; nothing: waits that are meant, and distance."""
BLAMES: Final = {
    "far_away": "network",
    "replication_slow": "follower",
    "loss_slows_calls": "network",
    "authentication_failed": "client",
    "throttled": "configuration",
}
FIRST: Final = 3
HIDDEN: Final = {
    (
        "path_dead",
        "broker",
    ): "nothing was under way when the path died: there it is a client that says nothing",
    ("loss_2_3_9", "broker"): "lost requests come late, and nothing shows it",
}
"""Recordings in which what was done cannot be seen, and why; they count as not found."""


_HEAD: Final = """\
# How often the cause is named

<!-- Made by `python -m tests.findings.measured > docs/accuracy.md`. -->

Recordings of real brokers to which something was done on purpose, or nothing. What was done was written down
when they were recorded; the same incident, recorded at the client and at the broker, counts twice.
`python -m tests.findings.variations` does the same with parts of them: halves, without a beginning or an end,
faster, with a healthy cluster beside them.

These figures flatter: rules were mended by what was missed. Of 49 recordings with other clients (Java 2.3
and 4.3, kafka-python, aiokafka), releases and numbers, made on 2026-11-22 after the rules were written, the
rules of before named the cause among the first 3 in 30 of 35, blamed the right one in 26 of these 30, and
said nothing in 12 of 14 healthy ones. Of 26 more with clients that nobody had tried before (KafkaJS,
franz-go, sarama) and brokers of ZooKeeper's time, made the same evening, the rules as they were then named
it among the first 3 in 22 of 23 (a broker's new answer to a transaction that timed out was the other),
blamed the right one in all 22, and said nothing in 3 of 3 healthy ones.
Of 12 more, made on 2026-11-23 with other numbers, clients and releases and not kept (a broker that gets 40 of
every 160 ms, a quota on a reader, a producer that stands still, INVALID_RECORD, recompression, idle fetches,
a lag over three partitions, one of three brokers stopped and the like), it named the cause first and blamed
the right one in 11 of 11, and said nothing in the healthy one.
Of 35 more recordings of 30 incidents, made on 2026-11-24 and not kept (librdkafka, Java 2.3, kafka-python,
KafkaJS, franz-go and sarama, 3.9.2 and 4.3.1, other numbers), the rules of before named the cause first in 30
and blamed the right one in all of these. They said nothing of a coordinator that never came, of loss seen
beside the broker and of two batches that were recompressed, which they name since; and nothing of a client
200 ms more impatient than its distance allows, seen at both ends: it closes nothing, and only asks again.
They said nothing in 5 of 5 healthy ones.

| | |
|---|---|"""
_TABLE: Final = """
`place`: where the true cause stands among the findings. `besides`: problems and warnings that are neither the
cause nor one of its consequences.

| recording | taken at | what was done | finding | place | blames | besides |
|---|---|---|---|---:|---|---|"""


@dataclass(frozen=True, slots=True)
class Recording:
    """One capture of something that was done; `cause` is empty where nothing was."""

    name: str
    place: str
    path: Path
    did: str
    cause: str
    blames: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What was said of it. `rank`: of the true cause among the findings, from 1, or None."""

    recording: Recording
    rank: int | None
    blames: str
    others: tuple[str, ...]
    """Problems and warnings that are neither the cause nor explained by another finding."""

    @property
    def is_right(self) -> bool:
        """The cause is among the first, or there is none and nothing is said."""
        if self.recording.cause:
            return self.rank is not None and self.rank <= FIRST
        return not self.others

    @property
    def blames_right(self) -> bool:
        """Whoever has to act is named as the recording says."""
        return self.blames == self.recording.blames


def recordings() -> list[Recording]:
    """All of them, by name."""
    return [*_incidents(), *_clocks()]


def _abouts(folder: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    for about in sorted((CAPTURES / folder).glob("*/about.toml")):
        yield about.parent, tomllib.loads(about.read_text("utf-8"))


def _incidents() -> Iterator[Recording]:
    for folder, said in _abouts("incidents"):
        for place, file in said["files"].items():
            cause, blames = said["finding"], said.get("blames", "")
            yield Recording(folder.name, place, folder / file, said["did"], cause, blames)


def _clocks() -> Iterator[Recording]:
    for folder, said in _abouts("clocks"):
        cause = next(cause for name, cause in CLOCKS.items() if folder.name.startswith(name))
        for place, file in said["files"].items():
            yield Recording(folder.name, place, folder / file, said["did"], cause, BLAMES.get(cause, ""))


def find(capture: Path) -> list[dict[str, Any]]:
    """The findings of a capture as `kwsniff why` has them."""
    return kwsniff.analyze(capture).findings.to_pylist()


find_once = lru_cache(None)(find)
"""The same for files that do not change: several tests look at the recordings."""


def judge(recording: Recording, rows: Sequence[dict[str, Any]] | None = None) -> Judged:
    """What the findings of a recording say, these or its own, against what was done."""
    if rows is None:
        rows = find(recording.path)
    names = [row["finding"] for row in rows]
    rank = names.index(recording.cause) + 1 if recording.cause in names else None
    others = dict.fromkeys(
        row["finding"]
        for row in rows
        if row["severity"] != "info" and row["finding"] != recording.cause and row["explained_by"] is None
    )
    return Judged(recording, rank, rows[rank - 1]["blames"] if rank else "", tuple(others))


def _share(right: int, of: int) -> str:
    return f"{right} of {of} ({100 * right / of:.0f} %)"


def page(judged: Sequence[Judged]) -> str:
    """docs/accuracy.md."""
    caused = [each for each in judged if each.recording.cause]
    shown = [each for each in caused if (each.recording.name, each.recording.place) not in HIDDEN]
    healthy = [each for each in judged if not each.recording.cause]
    found = [each for each in caused if each.is_right]
    figures = {
        f"the true cause is among the first {FIRST} findings": (len(found), len(caused)),
        "the same, of those in which it can be seen": (sum(each.is_right for each in shown), len(shown)),
        "it comes first": (sum(each.rank == 1 for each in caused), len(caused)),
        "where it is found, who has to act is right": (sum(each.blames_right for each in found), len(found)),
        "nothing is wrong, and nothing is said": (sum(each.is_right for each in healthy), len(healthy)),
    }
    lines = [_HEAD, *(f"| {what} | {_share(*counts)} |" for what, counts in figures.items()), _TABLE]
    for each in judged:
        said = each.recording
        blames = (
            "" if not each.rank else each.blames if each.blames_right else f"{each.blames}, not {said.blames}"
        )
        place = str(each.rank or "not found") if said.cause else ""
        if not each.rank and (why := HIDDEN.get((said.name, said.place))):
            place = f"not found: {why}"
        columns = (said.name, said.place, said.did, said.cause or "nothing is wrong", place, blames)
        lines.append(f"| {' | '.join(columns)} | {', '.join(each.others)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.stdout.write(page([judge(each) for each in recordings()]))
