"""Which partitions the capture can show: of those whose leader it does not see, it cannot tell the bytes.

The view `topic_width` in shared_views/sums.sql says the same of a folder.
"""

from collections import Counter
from collections.abc import Iterator
from math import inf
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.prefilter.dictionaries import encode, numbers_of
from kwsniff.tables.arrays import distinct

MOST_LEADERS: Final = 20_000
"""Rows of leaders, or brokers; beyond it only the rule can tell."""
_NO_PORT: Final = 0


class Shown:
    """Leaders, brokers and connections, in bounded memory."""

    def __init__(self) -> None:
        self._leaders: dict[str, set[tuple[int, int]]] = {}
        """Topic -> partitions and their leaders."""
        self._addresses: dict[int, set[str]] = {}
        """Id of a broker -> host:port, as Metadata names it."""
        self._connected: set[str] = set()
        self._rows = 0
        self._nameless = False
        """Whether leaders are of topics known by id alone, which are not counted."""

    @property
    def is_crowded(self) -> bool:
        """Whether there are more than are counted."""
        return self._rows > MOST_LEADERS

    @property
    def unvisited(self) -> float:
        """Brokers that Metadata names at addresses to which no client connected."""
        if self.is_crowded:
            return inf
        return sum(not some & self._connected for some in self._addresses.values())

    @property
    def shared(self) -> float:
        """Addresses that Metadata gives to several brokers, each for one of them."""
        if self.is_crowded:
            return inf
        return sum(map(len, self._addresses.values())) - len(set().union(*self._addresses.values()))

    @property
    def moved_leaders(self) -> float:
        """Partitions that have had several leaders."""
        if self.is_crowded or self._nameless:
            return inf
        return sum(
            number > 1
            for leaders in self._leaders.values()
            for number in Counter(partition for partition, leader in leaders if leader >= 0).values()
        )

    def add_leaders(self, batch: pa.RecordBatch) -> None:
        """Takes rows of leaders."""
        if not self._admits(batch.num_rows):
            return
        topics, words = encode(batch, "topic")
        partitions, leaders = (numbers_of(batch, name, null=-1) for name in ("partition", "leader"))
        for topic, partition, leader in zip(
            topics.tolist(), partitions.tolist(), leaders.tolist(), strict=True
        ):
            self._nameless |= topic < 0
            if topic >= 0:
                self._leaders.setdefault(words[topic], set()).add((partition, leader))

    def add_brokers(self, batch: pa.RecordBatch) -> None:
        """Takes rows of brokers."""
        if not self._admits(batch.num_rows):
            return
        hosts, words = encode(batch, "host")
        nodes, ports = (numbers_of(batch, name, null=-1) for name in ("node_id", "port"))
        for node, host, port in zip(nodes.tolist(), hosts.tolist(), ports.tolist(), strict=True):
            self._addresses.setdefault(node, set()).add(f"{words[host] if host >= 0 else ''}:{port}")

    def add_connections(self, batch: pa.RecordBatch) -> None:
        """Takes rows of connections."""
        protocols, names = encode(batch, "protocol")
        hosts, words = encode(batch, "broker_address")
        rows = np.flatnonzero(
            (protocols == (names.index("kafka") if "kafka" in names else -2)) & (hosts >= 0)
        )
        ports = numbers_of(batch, "broker_port", null=_NO_PORT)
        pairs = distinct(hosts[rows] << 16 | ports[rows]).tolist()
        new = {f"{words[pair >> 16]}:{pair & 0xFFFF}" for pair in pairs} - self._connected
        if self._admits(len(new)):
            self._connected |= new

    def partitions(self, topic: str, below: int) -> Iterator[int]:
        """Partitions below that one that the capture can show, as far as their leaders are known."""
        nodes = self._nodes()
        return (at for at, leader in self._leaders.get(topic, ()) if 0 <= at < below and leader in nodes)

    def state(self) -> tuple[Any, ...]:
        """What was taken, for `add_up`."""
        return self._leaders, self._addresses, self._connected, self._rows, self._nameless

    def merge(self, state: tuple[Any, ...]) -> None:
        """Takes what another one has."""
        leaders, addresses, connected, rows, nameless = state
        self._nameless |= nameless
        if not self._admits(rows):
            return
        for topic, some in leaders.items():
            self._leaders.setdefault(topic, set()).update(some)
        for node, more in addresses.items():
            self._addresses.setdefault(node, set()).update(more)
        self._connected |= connected

    def _nodes(self) -> set[int]:
        """Brokers that are seen, by their addresses; where hosts are names, all of them or none."""
        if len(self._connected) >= len(self._addresses):
            return {*self._addresses}
        return {node for node, some in self._addresses.items() if not some.isdisjoint(self._connected)}

    def _admits(self, rows: int) -> bool:
        self._rows += rows
        if self.is_crowded:
            self._leaders.clear()
        return not self.is_crowded
