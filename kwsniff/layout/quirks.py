"""What some servers do that a rule of the protocol forbids: the blocks of quirks.txt."""

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Final, NamedTuple

from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.tokens import fail

_FILE: Final = "quirks.txt"
MOST_VERSIONS: Final = 999
_HEAD: Final = re.compile(r"[a-z][a-z0-9_]*")
_LINE: Final = re.compile(r" +([a-z]+) +(.+)")
_AT: Final = re.compile(r"([a-z_]+)(?: ([A-Z][A-Za-z]+)(?: (\d+)(?:(\+)|-(\d+))?)?(?: ([A-Z][A-Z0-9_]+))?)?")
_OF_PLACE: Final = ("at", "why", "source")


class Place(NamedTuple):
    """Where a quirk is normal: at the servers of a product, of these calls. `api`, `error`: None for any."""

    product: str
    api: str | None
    versions: tuple[int, int]
    error: str | None
    why: str
    source: str


class Quirk(NamedTuple):
    """One block of quirks.txt; the head of that file explains the lines. `rule`: that of the protocol."""

    name: str
    rule: str
    places: tuple[Place, ...]


@cache
def load_quirks() -> Mapping[str, Quirk]:
    """The blocks of dissectors/kafka by name."""
    catalog = load_catalog()
    return parse_quirks((catalog.folder / _FILE).read_text("utf-8"), _FILE, catalog.products.names)


def parse_quirks(text: str, file: str, products: Collection[str]) -> Mapping[str, Quirk]:
    """The blocks by name. `products`: those of servers.tsv. Raises LayoutError for any other line."""
    quirks: dict[str, Quirk] = {}
    name, begun, lines = "", 0, list[tuple[int, str, str]]()

    def end() -> None:
        if name:
            if name in quirks:
                fail(file, begun, f"'{name}' is already defined")
            quirks[name] = _quirk(name, lines, file, begun, products)

    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.rstrip()
        if not line or line.startswith("#"):
            continue
        if _HEAD.fullmatch(line):
            end()
            name, begun, lines = line, number, []
        elif not name or not (found := _LINE.fullmatch(line)) or found[1] not in ("rule", *_OF_PLACE):
            fail(file, number, f"'{line.strip()}' is neither a name nor rule, {', '.join(_OF_PLACE)}")
        else:
            lines.append((number, found[1], found[2]))
    end()
    return quirks


def _quirk(
    name: str, lines: list[tuple[int, str, str]], file: str, begun: int, products: Collection[str]
) -> Quirk:
    words = [word for _, word, _ in lines]
    if words != ["rule", *_OF_PLACE * (len(words) // len(_OF_PLACE))]:
        fail(file, begun, f"{name} needs one 'rule', then {', '.join(_OF_PLACE)} of each product, in order")
    texts = [text for _, _, text in lines]
    places = [
        _place((file, lines[at][0]), texts[at : at + 3], products)
        for at in range(1, len(lines), len(_OF_PLACE))
    ]
    return Quirk(name, texts[0], tuple(places))


def _place(where: tuple[str, int], texts: list[str], products: Collection[str]) -> Place:
    at, why, source = texts
    found = _AT.fullmatch(at)
    if found is None:
        fail(*where, f"'{at}' is not: product [Api [versions] [ERROR]]")
    product, api, first, more, last, error = found.groups()
    if product not in products:
        fail(*where, f"'{product}' is not in servers.tsv")
    least = int(first or 0)
    most = MOST_VERSIONS if more or first is None else int(last or first)
    return Place(product, api, (least, most), error, why, source)
