"""What shows that a server is a certain product: servers.tsv."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kwsniff.layout.tokens import fail

FILE = "servers.tsv"


class Products(NamedTuple):
    """Patterns by kind of evidence, products in their order, those that run Apache's releases."""

    patterns: Mapping[str, list[tuple[str, re.Pattern[str]]]]
    names: tuple[str, ...]
    of_apache: frozenset[str]

    def find(self, kind: str, words: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Product and word, of words that show a product."""
        patterns = self.patterns.get(kind, ())
        return ((product, word) for word in words for product, pattern in patterns if pattern.search(word))

    def number(self, kind: str, word: str) -> int:
        """The number of the first product that a word shows, by which the core knows it; 0: none."""
        shown = {product for product, _ in self.find(kind, (word,))}
        return min((self.names.index(product) + 1 for product in shown), default=0)

    def shown_by(self, keys: Iterable[int], features: Iterable[str]) -> int:
        """The same of an ApiVersions response; `keys`: those that Kafka does not have."""
        shown = [self.number("api", str(key)) for key in keys]
        shown += [self.number("feature", name) for name in features]
        return min(filter(None, shown), default=0)


def parse_products(text: str, file: str) -> Products:
    """Lines of product, kind of evidence, pattern, source, separated by tabs."""
    patterns: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    names: dict[str, None] = {}
    of_apache = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != 4:
            fail(file, number, f"'{line}': product, evidence, pattern and source, separated by tabs")
        product, kind, pattern, _ = columns
        names[product] = None
        if kind == "releases":
            of_apache.add(product)
        patterns.setdefault(kind, []).append((product, re.compile(pattern)))
    return Products(patterns, tuple(names), frozenset(of_apache))
