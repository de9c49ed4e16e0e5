"""What `kwsniff upgrade` compares with: a release of Apache Kafka, or another product."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple

from kwsniff.errors import UsageError
from kwsniff.layout.accepted import SAME, Accepted, load_accepted
from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.quirks import load_quirks
from kwsniff.tables.enums import WORDS

_PRODUCT: Final = re.compile(r"([a-z][a-z _]*?)[ _:]*(\d.*)?")
_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)*)(?:\.x)?(?:[. ][a-z].*)?")
_APACHE: Final = ("apache kafka", "apache", "kafka")


class Target(NamedTuple):
    """What brokers accept. `ranges`: API key -> versions, None where they have no such API. `is_whole`: they
    have no other APIs; else what they accept of others is not known. `closes_on`: API key -> versions that
    they refuse by closing the connection."""

    name: str
    ranges: Mapping[int, tuple[int, int] | None]
    is_whole: bool = True
    closes_on: Mapping[int, tuple[int, int]] = {}

    def knows(self, key: int) -> bool:
        """Whether it is known what they accept of an API."""
        return self.is_whole or key in self.ranges


def find_target(text: str) -> Target:
    """A release of Apache Kafka, or the newest of a line of them (4.3.1 of 4.3), or a product and its release
    ("Redpanda 25.1", redpanda-25.1, event_hubs). Raises UsageError with what there is."""
    found = _PRODUCT.fullmatch(text.strip().lower().replace("-", " "))
    if found is None or found[1] in _APACHE:
        return _of_apache((found[2] or "") if found else text.strip())
    word, release = found[1].replace("_", " "), found[2]
    product = _products().get(word)
    if product is None:
        near = get_close_matches(word, _products(), 1, 0.6)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise UsageError(f"unknown product '{word}'{hint} Known: {_list_known()}")
    return _of_product(product, release)


def _of_apache(release: str) -> Target:
    releases = load_catalog().releases
    if (name := releases.newest_of(release)) is not None:
        return Target(name, releases.speaks(name))
    near = get_close_matches(release, releases.names, 3, 0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else "."
    raise UsageError(f"unknown release '{release}'{hint} Known: {_list_known()}")


def _of_product(product: str, release: str | None) -> Target:
    blocks = [each for each in load_accepted() if each.product == product]
    if not blocks:
        raise UsageError(
            f"what {_name_product(product)} accepts is not known; a capture shows it: "
            "kwsniff analyze CAPTURE -o DIR, then kwsniff sql DIR 'from api_ranges'"
        )
    chosen = _choose(blocks, release)
    if chosen is None and blocks[0].same_as == SAME:
        raise UsageError(
            f"{_name_product(product)} runs releases of Apache Kafka: say which, as in {product}-4.1"
        )
    if chosen is None:
        raise UsageError(
            f"unknown release of {_name_product(product)}{f': {release}' if release else ''}; "
            f"known: {_list_releases(blocks)}"
        )
    name = " ".join(
        filter(None, (_name_product(product), release if chosen.same_as == SAME else chosen.release))
    )
    return _target(name, chosen, release)


def _choose(blocks: Sequence[Accepted], release: str | None) -> Accepted | None:
    """The block of a release: of the same number, or of the line that it is in."""
    for each in blocks:
        if each.same_as == SAME:
            return each if release else None
        if each.release is None or f"{release}.".startswith(f"{each.release}."):
            return each
    return None


def _target(name: str, chosen: Accepted, release: str | None) -> Target:
    catalog = load_catalog()
    ranges: dict[int, tuple[int, int] | None] = {}
    if chosen.same_as:
        ranges |= _of_apache(_find_same(chosen.same_as, release or "")).ranges
    ranges |= {api.key: span for each, span in chosen.ranges.items() if (api := catalog.api(each))}
    closing = {
        api.key: place.versions
        for place in load_quirks()["versions_refused_by_closing"].places
        if place.product == chosen.product and (api := catalog.api(place.api or ""))
    }
    return Target(name, ranges, chosen.is_whole or chosen.same_as is not None, closing)


def _find_same(same_as: str, release: str) -> str:
    """The release of Apache Kafka; of 3.9.x.kraft that is 3.9."""
    number = _NUMBER.fullmatch(release)
    return same_as if same_as != SAME else number[1] if number else release


def _products() -> Mapping[str, str]:
    """What people call a product -> its name in servers.tsv."""
    names = load_catalog().products.names
    called = {each.replace("_", " "): each for each in names}
    return called | {_name_product(each).lower(): each for each in names}


def _name_product(product: str) -> str:
    return WORDS["server_product"][product].partition(",")[0]


def _list_known() -> str:
    names, blocks = load_catalog().releases.names, load_accepted()
    of_product = {each.product: [some for some in blocks if some.product == each.product] for each in blocks}
    listed = (f"{_name_product(each)} {_list_releases(some)}".strip() for each, some in of_product.items())
    return "; ".join([", ".join(names), *listed])


def _list_releases(blocks: Sequence[Accepted]) -> str:
    if blocks[0].same_as == SAME:
        return "RELEASE"
    names = [each.release for each in blocks if each.release]
    return f"{names[0]} to {names[-1]}" if len(names) > 3 else ", ".join(names)
