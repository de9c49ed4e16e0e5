"""What brokers of other products than Apache Kafka accept: the blocks of accepted.txt."""

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Final, NamedTuple

from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.tokens import fail

_FILE: Final = "accepted.txt"
SAME: Final = "same"
NONE: Final = "none"
_HEAD: Final = re.compile(r"([a-z][a-z_]*)(?: ([0-9][0-9A-Za-z.]*))?")
_LINE: Final = re.compile(r" +(as|accepts|rest|source) +(.+)")
_ACCEPTS: Final = re.compile(r"([A-Z][A-Za-z]+) (?:none|(\d+)(?:-(\d+))?)")


class Accepted(NamedTuple):
    """One block of accepted.txt; the head of that file explains the lines.

    `release`: None where the product has no releases. `same_as`: a release of Apache Kafka, SAME, or None.
    `ranges`: API -> its versions, None: it has no such API. `is_whole`: it has no others.
    """

    product: str
    release: str | None
    same_as: str | None
    ranges: Mapping[str, tuple[int, int] | None]
    is_whole: bool


@cache
def load_accepted() -> tuple[Accepted, ...]:
    """The blocks of dissectors/kafka, in order."""
    catalog = load_catalog()
    return parse_accepted((catalog.folder / _FILE).read_text("utf-8"), _FILE, catalog.products.names)


def parse_accepted(text: str, file: str, products: Collection[str]) -> tuple[Accepted, ...]:
    """The blocks in order. `products`: those of servers.tsv. Raises LayoutError for any other line."""
    blocks: list[tuple[int, re.Match[str], list[tuple[int, str, str]]]] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.rstrip()
        if not line or line.startswith("#"):
            continue
        if head := _HEAD.fullmatch(line):
            if head[1] not in products:
                fail(file, number, f"'{head[1]}' is not in servers.tsv")
            if any(each[1][0] == line for each in blocks):
                fail(file, number, f"'{line}' is already defined")
            blocks.append((number, head, []))
        elif not blocks or not (found := _LINE.fullmatch(line)):
            fail(file, number, f"'{line.strip()}' is neither PRODUCT [RELEASE] nor as, accepts, rest, source")
        else:
            blocks[-1][2].append((number, found[1], found[2]))
    return tuple(_block(head, lines, file, number) for number, head, lines in blocks)


def _block(head: re.Match[str], lines: list[tuple[int, str, str]], file: str, begun: int) -> Accepted:
    same_as, is_whole, ranges, words = None, False, dict[str, tuple[int, int] | None](), set[str]()
    for number, word, text in lines:
        words.add(word)
        if word == "as":
            same_as = text
        elif word == "rest":
            is_whole = text == NONE
            if not is_whole:
                fail(file, number, f"'{text}': rest is none")
        elif word == "accepts":
            found = _ACCEPTS.fullmatch(text)
            if found is None:
                fail(file, number, f"'{text}' is not: Api VERSIONS, or Api none")
            first, last = found[2], found[3]
            ranges[found[1]] = (int(first), int(last or first)) if first else None
    if "source" not in words or not words & {"as", "accepts"}:
        fail(file, begun, f"'{head[0]}' needs 'source', and 'as' or 'accepts'")
    return Accepted(head[1], head[2], same_as, ranges, is_whole)
