"""Usual causes of error codes, related settings, and advice: the blocks of causes.txt."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from kwsniff.layout.tokens import fail

OWNERS: Final = ("client", "broker", "configuration")
SIDES: Final = ("client", "topic", "broker")
_HEAD: Final = re.compile(r"(-?\d+) ([A-Z0-9_]+)")
_LINE: Final = re.compile(r" +([a-z]+) +(.+)")
_KNOWN: Final = ("cause", "do", *SIDES, "asked", "owner", "passes", "finding")
_NEEDED: Final = ("cause", "do")


class Cause(NamedTuple):
    """One block of causes.txt; the head of that file explains the lines.

    `settings`: side (client, topic, broker) -> names. `asked`: a column of api_calls, and a name for its
    value. `passes_s`: how long the error may last in normal operation. `findings`: rules about it.
    """

    code: int
    name: str
    cause: str
    do: str
    settings: Mapping[str, tuple[str, ...]]
    asked: tuple[str, str] | None
    owner: str
    passes_s: int | None
    findings: tuple[str, ...]


def parse_causes(text: str, file: str) -> Mapping[int, Cause]:
    """The blocks by code. Raises LayoutError for any other line."""
    causes: dict[int, Cause] = {}
    block: dict[str, str] = {}
    head: re.Match[str] | None = None
    begun = 0

    def end() -> None:
        if head is not None:
            cause = _cause(int(head[1]), head[2], block, file, begun)
            if cause.code in causes:
                fail(file, begun, f"'{cause.code}' is already defined")
            causes[cause.code] = cause

    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.rstrip()
        if not line or line.startswith("#"):
            continue
        if found := _HEAD.fullmatch(line):
            end()
            head, block, begun = found, {}, number
        elif head is None or not (found := _LINE.fullmatch(line)) or found[1] not in _KNOWN:
            fail(file, number, f"'{line.strip()}' is neither CODE NAME nor one of: {', '.join(_KNOWN)}")
        else:
            block[found[1]] = found[2]
    end()
    return causes


def _cause(code: int, name: str, block: Mapping[str, str], file: str, number: int) -> Cause:
    for word in _NEEDED:
        if word not in block:
            fail(file, number, f"{name} has no '{word}'")
    owner = block.get("owner", OWNERS[0])
    if owner not in OWNERS:
        fail(file, number, f"{name}: owner is one of {', '.join(OWNERS)}")
    passes = block.get("passes")
    if passes is not None and not passes.isdigit():
        fail(file, number, f"{name}: passes takes seconds")
    column, _, what = block.get("asked", "").partition(" ")
    return Cause(
        code=code,
        name=name,
        cause=block["cause"],
        do=block["do"],
        settings={side: _split_names(block[side]) for side in SIDES if side in block},
        asked=(column, what) if column else None,
        owner=owner,
        passes_s=None if passes is None else int(passes),
        findings=_split_names(block.get("finding", "")),
    )


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())
