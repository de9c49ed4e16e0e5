"""Calls whose packets waited in a queue on their way: a bound for the rule about full links.

The shortest round trip to a broker is known at the end only. Until then calls that took long count by how
long. Clients of one broker count together: that can only make more of them.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.prefilter.dictionaries import encode, numbers_of
from kwsniff.tables.arrays import Numbers, distinct

Broker = tuple[str, int]
"""Address and port."""
OF_LATENCIES: Final = ("network_ns", "broker_address", "broker_port")
_LEAST_NS: Final = 50_000_000
"""What the rule takes for long, beyond the round trip."""
_TIMES: Final = 2
_WIDTH_NS: Final = 10_000_000
_MOST_WIDTHS: Final = 1000
"""Longer calls count as this long: 10 s."""
_MOST_BROKERS: Final = 20_000
_NEAR_BROKER: Final = ("broker", "same_machine")
"""Capture points that see no way to the broker."""


class Queues:
    """Calls by their network time, and the shortest round trip, of each broker."""

    def __init__(self) -> None:
        self._calls: dict[Broker, dict[int, int]] = {}
        self._trips: dict[Broker, int] = {}

    def add_calls(self, batch: pa.RecordBatch) -> None:
        """Takes rows of latencies."""
        took = numbers_of(batch, "network_ns", null=0)
        rows = np.flatnonzero(took >= _LEAST_NS)
        if not len(rows) or self._are_many:
            return
        widths = np.minimum(took[rows] // _WIDTH_NS, _MOST_WIDTHS)
        keys, brokers = _number_brokers(batch, rows)
        combined = keys * (_MOST_WIDTHS + 1) + widths
        found = distinct(combined)
        counts = np.bincount(np.searchsorted(found, combined))
        for key, number in zip(found.tolist(), counts.tolist(), strict=True):
            self._count(brokers[key // (_MOST_WIDTHS + 1)], key % (_MOST_WIDTHS + 1), number)

    def add_connections(self, batch: pa.RecordBatch) -> None:
        """Takes rows of connections."""
        trips = numbers_of(batch, "broker_round_trip_ns", null=-1)
        points, words = encode(batch, "capture_point")
        near = np.isin(points, [words.index(word) for word in _NEAR_BROKER if word in words])
        rows = np.flatnonzero((trips >= 0) & ~near)
        if not len(rows) or self._are_many:
            return
        keys, brokers = _number_brokers(batch, rows)
        least = np.full(len(brokers), np.iinfo(np.int64).max)
        np.minimum.at(least, keys, trips[rows])
        for broker, trip in zip(brokers, least.tolist(), strict=True):
            self._note_trip(broker, trip)

    def greatest(self) -> float:
        """The most calls of one broker that may have waited; infinite where brokers are too many to count."""
        if self._are_many:
            return float("inf")
        return max((sum(self._count_queued(broker)) for broker in self._calls), default=0)

    def state(self) -> tuple[Sequence[tuple[str, int, int, int]], Sequence[tuple[str, int, int]]]:
        """What was taken, for `merge`."""
        calls = [(*broker, *each) for broker, widths in self._calls.items() for each in widths.items()]
        return calls, [(*broker, trip) for broker, trip in self._trips.items()]

    def merge(
        self, state: tuple[Sequence[tuple[str, int, int, int]], Sequence[tuple[str, int, int]]]
    ) -> None:
        """Adds what another one took."""
        calls, trips = state
        for host, port, width, number in calls:
            self._count((host, port), width, number)
        for host, port, trip in trips:
            self._note_trip((host, port), trip)

    @property
    def _are_many(self) -> bool:
        return max(len(self._calls), len(self._trips)) > _MOST_BROKERS

    def _note_trip(self, broker: Broker, trip: int) -> None:
        self._trips[broker] = min(trip, self._trips.get(broker, trip))

    def _count(self, broker: Broker, width: int, number: int) -> None:
        widths = self._calls.setdefault(broker, {})
        widths[width] = widths.get(width, 0) + number

    def _count_queued(self, broker: Broker) -> Iterator[int]:
        trip = self._trips.get(broker)
        if trip is None:  # the rule knows nothing of it either
            return
        enough = max(trip + _LEAST_NS, _TIMES * trip)
        for width, number in self._calls[broker].items():
            if width == _MOST_WIDTHS or (width + 1) * _WIDTH_NS > enough:
                yield number


def _number_brokers(batch: pa.RecordBatch, rows: Numbers) -> tuple[Numbers, list[Broker]]:
    """A number for the broker of each of these rows, and the brokers by these numbers."""
    places, hosts = encode(batch, "broker_address")
    ports = numbers_of(batch, "broker_port", null=0)[rows].astype(np.int64)
    combined = (places[rows].astype(np.int64) + 1 << 16) + ports
    found = distinct(combined)
    return np.searchsorted(found, combined), [
        (["", *hosts][key >> 16], key & 0xFFFF) for key in found.tolist()
    ]
