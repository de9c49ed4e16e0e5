"""How often `kwsniff why` names the cause: `python -m tests.findings.measured > docs/accuracy.md`.

Every recording of captures/incidents and captures/clocks, at each place where it was taken. What was done to
the system stands in its about.toml, written when it was recorded; nothing here comes from what kwsniff says.
"""

import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import kwsniff
from tests.house.tree import ROOT

CAPTURES = ROOT / "captures"
CLOCKS: Final = {
    "data_every": "",
    "far": "far_away",
    "follower_stopped": "replication_slow",
    "line_behind_fetch": "waits_in_line",
    "loss": "loss_slows_calls",
    "members_slow": "",
    "near": "",
    "password_wrong": "authentication_failed",
    "quota": "throttled",
}
"""What captures/clocks show, by the beginning of a name; nothing: waits that are meant, and distance."""
BLAMES: Final = {
    "waits_in_line": "client",
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
    ): "nothing was in flight: there it is a silent client",
    ("loss_2_3_9", "broker"): "lost requests come late, and nothing shows it",
}
"""Recordings in which what was done cannot be seen, and why; they count as not found."""


_HEAD: Final = """\
# Accuracy of findings

<!-- Made by `python -m tests.findings.measured > docs/accuracy.md`. -->

How often `kwsniff why` names the true cause, and the right owner, in recordings of real brokers to which
something was done on purpose, or nothing ([captures](../captures/README.md)). An incident recorded at client
and broker counts twice.

| | |
|---|---|"""
_BLIND: Final = """
These figures flatter: rules were changed for incidents that they missed. Recordings that the rules had never
seen, most of them not kept:

| made | recordings | cause named | owner right | healthy |
|---|---|---:|---:|---:|
| 2026-11-22 to 27 | seven client libraries, ZooKeeper | 130 of 143 | 126 of 130 | 30 of 32 |
| 2026-11-28 | 52 causes, six client libraries | 41 of 52 | 38 of 41 | 18 of 19 |
| 2026-11-29 | 89 causes, seven client libraries | 70 of 89 | 69 of 70 | 35 of 37 |
| 2026-11-29 | after changes | 26 of 30 | 25 of 26 | 11 of 11 |

"Cause named": among the first 3 findings; "healthy": nothing was said.

## Incidents

`why` put these causes first, with the right owner, in all their recordings (number):
"""
_MISSED: Final = """
The others:

| finding | owner | recordings | first | among the first 3 | owner right |
|---|---|---:|---:|---:|---:|"""
_HEALTHY: Final = "\nOf the healthy ones:\n"


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


@cache
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
        "where it is found, the owner is right": (sum(each.blames_right for each in found), len(found)),
        "nothing is wrong, and nothing is said": (sum(each.is_right for each in healthy), len(healthy)),
    }
    lines = [_HEAD, *(f"| {what} | {_share(*counts)} |" for what, counts in figures.items()), _BLIND]
    causes = sorted({(each.recording.cause, each.recording.blames) for each in caused})
    groups = [[each for each in caused if _truth(each) == truth] for truth in causes]
    perfect = [group for group in groups if all(map(_is_perfect, group))]
    lines += [_owned(owner, perfect) for owner in sorted({group[0].recording.blames for group in perfect})]
    lines += [_MISSED, *(_row(group) for group in groups if not all(map(_is_perfect, group)))]
    lines += ["", *filter(None, map(_exception, caused))]
    disturbed = [*filter(None, map(_exception, healthy))]
    lines += [_HEALTHY, *disturbed] if disturbed else []
    return "\n".join([*lines, ""])


def _truth(judged: Judged) -> tuple[str, str]:
    return judged.recording.cause, judged.recording.blames


def _is_perfect(judged: Judged) -> bool:
    return judged.rank == 1 and judged.blames_right


def _owned(owner: str, groups: Sequence[Sequence[Judged]]) -> str:
    """The line of one owner's causes, with the number of recordings of each."""
    of_owner = [group for group in groups if group[0].recording.blames == owner]
    return f"- {owner}: " + ", ".join(f"{group[0].recording.cause} ({len(group)})" for group in of_owner)


def _row(judged: Sequence[Judged]) -> str:
    """The line of all recordings of one cause."""
    counts = (
        len(judged),
        sum(each.rank == 1 for each in judged),
        sum(each.is_right for each in judged),
        sum(each.blames_right for each in judged),
    )
    return f"| {' | '.join((*_truth(judged[0]), *map(str, counts)))} |"


def _exception(judged: Judged) -> str:
    """What is not as it should be with one recording; empty where all is."""
    said, found = judged.recording, []
    if said.cause and judged.rank != 1:
        why = HIDDEN.get((said.name, said.place))
        place = f"place {judged.rank}" if judged.rank else f"not found ({why})" if why else "not found"
        found.append(f"{said.cause} is {place}")
    if judged.rank and not judged.blames_right:
        found.append(f"owner {judged.blames}, not {said.blames}")
    # what packets were cut to, a capture says of itself
    if others := [each for each in judged.others if each != "capture_incomplete"]:
        found.append(f"also {', '.join(others)}")
    return f"- `{said.name}`, at the {said.place}: {'; '.join(found)}." if found else ""


if __name__ == "__main__":
    sys.stdout.write(page([judge(each) for each in recordings()]))
