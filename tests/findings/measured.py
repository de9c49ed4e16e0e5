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
# Accuracy of findings

<!-- Made by `python -m tests.findings.measured > docs/accuracy.md`. -->

How often `kwsniff why` names the true cause, and the right owner. Real brokers were recorded while something
was done to them on purpose, or nothing; what was done was written down when it was recorded
([captures](../captures/README.md)). An incident recorded at the client and at the broker counts twice.

| | |
|---|---|"""
_BLIND: Final = """
These figures flatter: rules were changed for incidents that they missed. Recordings that the rules had never
seen, by 2026-11-24:

| made | recordings | cause named | owner right | healthy |
|---|---|---:|---:|---:|
| 2026-11-22 | Java, kafka-python, aiokafka, other releases | 30 of 35 | 26 of 30 | 12 of 14 |
| 2026-11-22 | KafkaJS, franz-go, sarama; ZooKeeper | 22 of 23 | 22 of 22 | 3 of 3 |
| 2026-11-23 | other numbers, clients, releases; not kept | 11 of 11 | 11 of 11 | 1 of 1 |
| 2026-11-24 | six client libraries, 3.9.2 and 4.3.1; not kept | 30 of 35 | 30 of 30 | 5 of 5 |

"Cause named": among the first 3 findings; "healthy": nothing is wrong, and nothing was said.
`python -m tests.findings.variations` judges parts of the recordings: halves, without beginning or end,
faster, with a healthy cluster beside them.

## Incidents

`client` and `broker`: place of the true cause among the findings, by where the capture was taken. `others`:
problems and warnings that are neither the cause nor one of its consequences.

| recording | finding | client | broker | owner | others |
|---|---|---:|---:|---|---|"""
_HEALTHY: Final = """
## Healthy recordings

Nothing is wrong there, and no finding above info may appear"""


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
    lines = [_HEAD, *(f"| {what} | {_share(*counts)} |" for what, counts in figures.items()), _BLIND]
    names = dict.fromkeys(each.recording.name for each in caused)
    lines += [_row([each for each in caused if each.recording.name == name]) for name in names]
    said = {each.recording.name: each for each in healthy if each.others}
    quiet = ", ".join(f"`{name}`" for name in dict.fromkeys(each.recording.name for each in healthy))
    lines += [
        f"{_HEALTHY}: {quiet}.",
        *(f"\n{name}: {', '.join(each.others)}." for name, each in said.items()),
    ]
    return "\n".join([*lines, ""])


def _row(judged: Sequence[Judged]) -> str:
    """The line of one incident, at each place where it was recorded."""
    first = judged[0].recording
    places = {each.recording.place: _place(each) for each in judged}
    owners = dict.fromkeys(_owner(each) for each in judged if each.rank)
    others = dict.fromkeys(other for each in judged for other in each.others)
    columns = (first.name, first.cause, places.get("client", ""), places.get("broker", ""))
    return f"| {' | '.join(columns)} | {'; '.join(owners)} | {', '.join(others)} |"


def _place(judged: Judged) -> str:
    if judged.rank:
        return str(judged.rank)
    why = HIDDEN.get((judged.recording.name, judged.recording.place))
    return f"not found: {why}" if why else "not found"


def _owner(judged: Judged) -> str:
    return judged.blames if judged.blames_right else f"{judged.blames}, not {judged.recording.blames}"


if __name__ == "__main__":
    sys.stdout.write(page([judge(each) for each in recordings()]))
