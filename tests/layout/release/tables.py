"""releases.tsv and errors.txt with a release's column and codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kwsniff.layout.reference import ErrorCode, Releases, parse_releases

Span = tuple[int, int] | None
Entry = tuple[Span, Span]
"""The range of an API, and what ApiVersions shows in its place."""


def order(release: str) -> tuple[int, ...]:
    """Sorts releases; a snapshot stands before its release."""
    number, _, rest = release.partition("-")
    parts = [int(part) for part in number.split(".")]
    return (*parts, *[0] * (4 - len(parts)), 0 if rest else 1)


def is_newest(names: Iterable[str], release: str) -> bool:
    """Whether no release of the table is newer."""
    return all(order(name) <= order(release) for name in names)


def add_release(text: str, release: str, spoken: Mapping[int, Entry]) -> str:
    """The table with a release. A snapshot gives way to the release that came of it."""
    table = parse_releases(text, "releases.tsv")
    names = [name for name in table.names if name != release and name.partition("-")[0] != release]
    names = sorted([*names, release], key=order)
    at = names.index(release)
    lines = []
    for line in text.splitlines():
        word = line.split("\t")[0]
        if word == "release":
            lines.append("\t".join(["release", *names]))
        elif word.isdigit():
            lines.append(_row(table, names, at, int(word), spoken))
        else:
            lines.append(line)
    lines += [
        f"{key}\t{release}:{_entry_text(spoken[key])}" for key in sorted(spoken.keys() - table.ranges.keys())
    ]
    return "\n".join(lines) + "\n"


def _row(table: Releases, names: list[str], at: int, key: int, spoken: Mapping[int, Entry]) -> str:
    entries = [_entry(table, key, name) for name in names]
    before = entries[at - 1] if at else (None, None)
    entries[at] = _carried(before, spoken.get(key, (None, None)))
    changes = [str(key)]
    now: Entry = (None, None)
    for name, entry in zip(names, entries, strict=True):
        if entry != now:
            changes.append(f"{name}:{_entry_text(entry)}")
        now = entry
    return "\t".join(changes)


def _entry(table: Releases, key: int, name: str) -> Entry:
    if name not in table.names:
        return None, None
    return table.ranges[key][table.names.index(name)], table.shown.get((key, name))


def _carried(before: Entry, now: Entry) -> Entry:
    """What no definition says stays: a range that begins lower in ApiVersions than it does (KIP-896)."""
    if before[0] and before[1] and now[0] and before[1][0] < before[0][0]:
        return now[0], (before[1][0], (now[1] or now[0])[1])
    return now


def _entry_text(entry: Entry) -> str:
    span, shown = entry
    if span is None:
        return "none"
    text = str(span[0]) if span[0] == span[1] else f"{span[0]}-{span[1]}"
    return text if shown is None else f"{text}/{shown[0]}-{shown[1]}"


def spoken_before(table: Releases, release: str, key: int, version: int) -> str:
    """The lines of releases before this one that have a version of an API: 3.9-4.0."""
    names = [name for name in table.spoken_by(key, version) if order(name) < order(release)]
    lines = list(dict.fromkeys(_line(name) for name in names)) or [_line_before(table, release)]
    return lines[0] if len(lines) == 1 else f"{lines[0]}-{lines[-1]}"


def _line(release: str) -> str:
    return ".".join(release.split(".")[: 3 if release.startswith("0.") else 2])


def _line_before(table: Releases, release: str) -> str:
    return _line([name for name in table.names if order(name) < order(release)][-1])


def read_errors(text: str) -> dict[int, tuple[str, bool]]:
    """Code -> name, retriable: of lines of code, name, true or false, and what else there may be."""
    found = re.finditer(r"^(-?\d+)\t([A-Z0-9_]+)\t(true|false)\b", text, re.MULTILINE)
    return {int(each[1]): (each[2], each[3] == "true") for each in found}


def add_errors(
    text: str, known: Mapping[int, ErrorCode], release: str, errors: Mapping[int, tuple[str, bool]]
) -> str:
    """The codes with those that are new, without an explanation."""
    lines = text.splitlines()
    name_width = max([len(each.name) for each in known.values()] + [len(each[0]) for each in errors.values()])
    for code in sorted(errors.keys() - known.keys()):
        name, retriable = errors[code]
        word = "retriable" if retriable else "final"
        lines.append(f"{code:>3}  {name:<{name_width}}  {word:<9}  {release}")
    return "\n".join(lines) + "\n"
