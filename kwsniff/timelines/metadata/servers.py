"""Which server is behind each broker address: its product and release, with the proof.

    ApiVersions responses   version ranges, features
    Metadata responses      cluster id, hosts of brokers
    connections             TLS server names, client ids
    api_calls               SASL mechanisms

The patterns are text: dissectors/kafka/servers.tsv; the ranges of releases: releases.tsv.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.tables.arrays import valid_rows, whole_numbers
from kwsniff.tables.grouping import Groups
from kwsniff.timelines.decoded_messages import Fields, list_elements
from kwsniff.timelines.memory_budget import RECORD, SHORT, MemoryBudget

MOST_SERVERS: Final = 10_000
_MOST_RANGES: Final = 8
"""Maximum different lists of ranges of a server: releases that follow each other at an address."""
_MOST_KEYS: Final = 512
_MOST_FEATURES: Final = 64
_MOST_PROOFS: Final = 4
_LONGEST: Final = 120
_APACHE: Final = "apache_kafka"
_UNKNOWN: Final = "unknown"
_ADDRESS: Final = ("broker_address", "broker_port")
READ: Final[Mapping[str, tuple[str, ...]]] = {
    "api_calls": (*_ADDRESS, "sasl_mechanism"),
    "connections": (*_ADDRESS, "tls_server_name", "client_id", "calls", "first_time", "last_time"),
}
"""The columns that are read of each table."""
SOURCES: Final = tuple(READ)
_SAYS: Final = {
    "api": "ApiVersions lists API {}",
    "feature": "feature {}",
    "cluster_id": "cluster id {}",
    "host": "host {}",
    "mechanism": "SASL mechanism {}",
    "client_id": "client id {}",
}
_NEVER: Final = np.iinfo(np.int64).max

Address = tuple[str, int]
Ranges = dict[int, tuple[int, int]]
Row = dict[str, Any]


@dataclass(slots=True)
class Server:
    """What is known of one server; times in microseconds."""

    connections: int = 0
    calls: int = 0
    first: int | None = None
    last: int | None = None
    cluster_id: str | None = None
    ranges: list[Ranges] = field(default_factory=list)
    features: dict[str, str] = field(default_factory=dict)
    proofs: dict[str, list[str]] = field(default_factory=dict)
    """Product -> its evidence, in words."""


class Servers:
    """Takes responses and rows of the tables in SOURCES; `rows`: those of servers, at the end."""

    def __init__(self, catalog: Catalog, budget: MemoryBudget) -> None:
        self.rows: list[Row] = []
        self._catalog = catalog
        self._budget = budget
        self._servers: dict[Address, Server] = {}

    def add_versions(self, address: Address, said: Fields) -> None:
        """Takes an ApiVersions response. One with an error lists less."""
        if said.get("error_code") or (server := self._server(address)) is None:
            return
        ranges = {
            each["api_key"]: (each["min_version"], each["max_version"])
            for each in list_elements(said, "api_keys")[:_MOST_KEYS]
            if "max_version" in each
        }
        is_new = ranges and ranges not in server.ranges and len(server.ranges) < _MOST_RANGES
        if is_new and self._budget.admits(SHORT * len(ranges)):
            server.ranges.append(ranges)
        features = [each for each in list_elements(said, "supported_features") if "max_version" in each]
        for each in features[:_MOST_FEATURES]:
            name = _cut(each["name"])
            full = len(server.features) >= _MOST_FEATURES
            if name in server.features or self._budget.admits(2 * SHORT, full=full):
                server.features[name] = f"{each['min_version']}-{each['max_version']}"
        self._match(server, "api", map(str, ranges))
        self._match(server, "feature", [each["name"] for each in features])

    def add_metadata(self, address: Address, said: Fields) -> None:
        """Takes a Metadata response."""
        if (server := self._server(address)) is None:
            return
        if cluster_id := said.get("cluster_id"):
            server.cluster_id = _cut(cluster_id)
            self._match(server, "cluster_id", [cluster_id])
        self._match(
            server, "host", {each["host"] for each in list_elements(said, "brokers") if "host" in each}
        )

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Takes rows of a table in SOURCES."""
        if table == "connections":
            self._add_connections(batch)
        elif batch["sasl_mechanism"].null_count < batch.num_rows:
            for address, port, mechanism in Groups(batch, READ["api_calls"]).labels():
                if mechanism is not None and (server := self._server((address, port))):
                    self._match(server, "mechanism", [mechanism])

    def finish(self) -> None:
        """Ends: the servers become rows."""
        for address, server in sorted(self._servers.items()):
            self.rows.append(self._row(address, server))
        self._servers.clear()

    def state(self) -> dict[Address, Server]:
        """The state for `resume`, without `rows`."""
        return self._servers

    def resume(self, state: dict[Address, Server]) -> None:
        """Continues from a saved state."""
        self._servers = state

    def _server(self, address: Address) -> Server | None:
        server = self._servers.get(address)
        if server is None and self._budget.admits(2 * RECORD, full=len(self._servers) >= MOST_SERVERS):
            server = self._servers[address] = Server()
        return server

    def _add_connections(self, batch: pa.RecordBatch) -> None:
        """Connections that speak Kafka, or hide it in TLS from a server with a telling name."""
        groups = Groups(batch, (*_ADDRESS, "tls_server_name", "client_id"))
        labels = [*groups.labels()]
        calls = whole_numbers(batch["calls"], null=0)
        sums = np.bincount(groups.numbers, calls, len(labels)).astype(np.int64)
        timed = valid_rows(batch["first_time"]) & valid_rows(batch["last_time"])
        firsts, lasts = np.full(len(sums), _NEVER), np.full(len(sums), -_NEVER)
        np.minimum.at(firsts, groups.numbers[timed], whole_numbers(batch["first_time"], null=0)[timed])
        np.maximum.at(lasts, groups.numbers[timed], whole_numbers(batch["last_time"], null=0)[timed])
        counts = groups.counts().tolist()
        rows = zip(labels, counts, sums.tolist(), firsts.tolist(), lasts.tolist(), strict=True)
        for (address, port, name, client_id), number, asked, first, last in rows:
            if not asked and not any(self._find("host", [name] if name else ())):
                continue
            if (server := self._server((address, port))) is None:
                continue
            server.connections += number
            server.calls += asked
            if first <= last:
                server.first = first if server.first is None else min(server.first, first)
                server.last = last if server.last is None else max(server.last, last)
            self._match(server, "host", [name] if name else ())
            self._match(server, "client_id", [client_id] if client_id else ())

    def _match(self, server: Server, kind: str, words: Iterable[str]) -> None:
        for product, word in self._find(kind, words):
            proofs = server.proofs.setdefault(product, [])
            text = _SAYS[kind].format(_cut(word))
            if text not in proofs and len(proofs) < _MOST_PROOFS and self._budget.admits(2 * SHORT):
                proofs.append(text)

    def _find(self, kind: str, words: Iterable[str]) -> Iterator[tuple[str, str]]:
        return self._catalog.products.find(kind, words)

    def _row(self, address: Address, server: Server) -> Row:
        _, products, of_apache = self._catalog.products
        product = next((each for each in products if each in server.proofs), None)
        releases = [self._releases(ranges) for ranges in server.ranges]
        spans = [each for each in releases if each] if product is None or product in of_apache else []
        proofs = list(server.proofs.get(product or "", ()))
        # One list that no release has denies that the server is Apache's.
        if product is None and spans and len(spans) == len(releases):
            product = _APACHE
        if product is None:
            spans = []
        names = self._catalog.releases.names
        places = [names.index(each) for span in spans for each in span]
        if places:
            proofs.append(_describe(server.ranges, spans))
        return {
            "address": address[0],
            "port": address[1],
            "product": product or _UNKNOWN,
            "version_min": names[min(places)] if places else None,
            "version_max": names[max(places)] if places else None,
            "proof": "; ".join(proofs) or None,
            "cluster_id": server.cluster_id,
            "features": [f"{name} {levels}" for name, levels in sorted(server.features.items())] or None,
            "first_time": None if server.first is None else server.first * 1000,
            "last_time": None if server.last is None else server.last * 1000,
            "connections": server.connections,
            "calls": server.calls,
        }

    def _releases(self, ranges: Ranges) -> tuple[str, ...]:
        return self._catalog.releases.offering(ranges)


def _describe(ranges: Collection[Ranges], spans: Iterable[Collection[str]]) -> str:
    number = max(map(len, ranges))
    several = f", {len(ranges)} different lists" if len(ranges) > 1 else ""
    some = sorted({len(span) for span in spans})
    exact = "one release has" if some == [1] else "these releases have"
    return f"ApiVersions lists {number} ranges as {exact} them{several}"


def _cut(text: str) -> str:
    return text[:_LONGEST]
