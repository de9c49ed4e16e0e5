"""Protocols other than Kafka, by their first bytes, from dissectors/protocols.txt."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from kwsniff.layout.dissectors import dissectors_folder
from kwsniff.layout.tokens import fail

FILE: Final = "protocols.txt"
SIDES: Final = ("client", "server", "either")
MOST_BYTES: Final = 32
LEAST_GIVEN: Final = 3
"""Minimum bytes of a pattern other than `..`: fewer would match by chance."""

_HEAD: Final = re.compile(r"([a-z][a-z0-9]*)((?: \d{1,5})*)")
_PART: Final = re.compile(r'\s+(?:"([^"]+)"|([0-9a-f]{2})(?!\S)|(\.\.)(?!\S))')


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first bytes of one side's stream; `mask` is 0 where any byte matches, else 255."""

    side: str
    data: bytes
    mask: bytes


@dataclass(frozen=True, slots=True)
class ForeignProtocol:
    """One protocol: its usual ports, and its first bytes."""

    name: str
    ports: tuple[int, ...]
    beginnings: list[Beginning] = field(default_factory=list)


def read_protocols(text: str) -> Mapping[str, ForeignProtocol]:
    """Name -> protocol, in the order of the text. Raises LayoutError with file and line."""
    found: dict[str, ForeignProtocol] = {}
    last: ForeignProtocol | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0] == " ":
            if last is None:
                fail(FILE, number, "a pattern needs a protocol above it, not indented")
            last.beginnings.append(_beginning(line, number))
            continue
        head = _HEAD.fullmatch(line)
        if head is None:
            fail(FILE, number, "a protocol needs a name and its ports")
        if head[1] in found:
            fail(FILE, number, f"{head[1]} is defined twice")
        ports = tuple(int(each) for each in head[2].split())
        last = found[head[1]] = ForeignProtocol(head[1], ports)
    return found


def _beginning(line: str, number: int) -> Beginning:
    side, _, rest = line.strip().partition(" ")
    if side not in SIDES:
        fail(FILE, number, f"unknown side {side!r} (expected: {', '.join(SIDES)})")
    data, mask = b"", b""
    at = 0
    rest = f" {rest}"
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None:
            fail(FILE, number, f"{rest[at:].strip()!r} is neither a text in quotes, a byte nor `..`")
        given = part[1].encode("ascii") if part[1] else bytes.fromhex(part[2] or "00")
        data += given
        mask += (b"\0" if part[3] else b"\xff") * len(given)
        at = part.end()
    if len(data) > MOST_BYTES or mask.count(b"\xff") < LEAST_GIVEN:
        fail(
            FILE,
            number,
            f"a pattern has at most {MOST_BYTES} bytes, with at least {LEAST_GIVEN} of them given",
        )
    return Beginning(side, data, mask)


@cache
def load_protocols() -> Mapping[str, ForeignProtocol]:
    """The built-in protocols. Raises LayoutError."""
    return read_protocols((dissectors_folder() / FILE).read_text("utf-8"))
