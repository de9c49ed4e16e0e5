"""Overdue responses: calls that wait longer than they asked to, by broker, client, topic and API.

A JoinGroup or SyncGroup waits for the group's other members and is never overdue; see rebalances.py.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kwsniff.layout.catalog import Catalog
from kwsniff.live.calls import NO_NAME, api_label, endpoint

GRACE_NS: Final = 700_000_000
"""Responses overdue by less than this are ignored."""
_NAMED_NS: Final = 1_700_000_000
"""A response is reported as overdue within this time, including the delay of packets in the capture tool."""
_LEAST_GRACE_NS: Final = 400_000_000
MOST_OWED: Final = 5_000
"""Calls examined one by one."""
_MOST_KNOWN: Final = 600
DIMENSIONS: Final = ("brokers", "clients", "topics", "apis")
"""The ones most likely overdue, first."""


class Wait(NamedTuple):
    """A call without a response; times in nanoseconds since the epoch. `member`: its instance or member
    id."""

    call_id: int
    api_key: int
    api_version: int
    caller: str | None
    client_id: str | None
    client_address: str
    client_port: int
    broker_address: str
    broker_port: int
    asked: int
    due: int
    group_id: str | None
    member: str | None
    topics: tuple[str, ...]


class Drops:
    """Packets dropped by the kernel over time, as far as known."""

    def __init__(self) -> None:
        self._total = 0
        self._known: deque[tuple[int, int]] = deque()

    def set_count(self, total: int | None, now: int) -> None:
        """Sets the number of drops up to `now` (nanoseconds since the epoch); None if unknown."""
        if total is None or total <= self._total:
            return
        self._known.append((now, total - self._total))
        self._total = total
        if len(self._known) > _MOST_KNOWN:  # merges the oldest two
            (_, first), (then, second) = self._known.popleft(), self._known.popleft()
            self._known.appendleft((then, first + second))

    def since(self, moment: int) -> int:
        """Packets that may have been dropped after a time."""
        return sum(number for time, number in self._known if time >= moment)


def not_lost(waits: Iterable[Wait], lost_since: Callable[[int], int]) -> list[Wait]:
    """The calls whose missing responses drops cannot explain: their connections and those of later calls
    to the
    same broker lack more responses than the kernel dropped packets."""
    brokers: dict[tuple[str, int], list[Wait]] = {}
    for wait in waits:
        brokers.setdefault((wait.broker_address, wait.broker_port), []).append(wait)
    kept: list[Wait] = []
    for asked in brokers.values():
        asked.sort(key=lambda wait: -wait.asked)
        connections: set[tuple[str, int]] = set()
        proven = 0
        for number, wait in enumerate(asked, 1):
            connections.add((wait.client_address, wait.client_port))
            if len(connections) > lost_since(wait.asked):
                proven = number
        kept += asked[:proven]
    return kept


@dataclass(slots=True)
class Overdue:
    """The number of overdue responses, and the age of the oldest."""

    calls: int = 0
    oldest_ns: int = 0

    def add(self, late_ns: int) -> None:
        """One more."""
        self.calls += 1
        self.oldest_ns = max(self.oldest_ns, late_ns)


@dataclass(slots=True)
class OverdueResponses:
    """Overdue responses at one moment. `by_dimension`: dimension, name, Overdue; `joins`: calls that wait for
    a group."""

    now: int = 0
    by_dimension: dict[str, dict[str, Overdue]] = field(
        default_factory=lambda: {name: {} for name in DIMENSIONS}
    )
    total: Overdue = field(default_factory=Overdue)
    joins: tuple[Wait, ...] = ()

    def worst(self, dimension: str) -> list[tuple[str, Overdue]]:
        """Longest overdue first."""
        return sorted(self.by_dimension[dimension].items(), key=lambda item: (-item[1].oldest_ns, item[0]))

    def late_ns(self, dimension: str, name: str) -> int:
        """Age of the oldest overdue response, or 0."""
        overdue = self.by_dimension.get(dimension, {}).get(name)
        return overdue.oldest_ns if overdue else 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the longest overdue of each dimension, at most 100."""
        return {
            "owed": self.total.calls,
            **{
                f"owed_by_{dimension[:-1]}": [
                    {dimension[:-1]: name, "calls": overdue.calls, "oldest_ns": overdue.oldest_ns}
                    for name, overdue in self.worst(dimension)[:100]
                ]
                for dimension in DIMENSIONS
            },
        }


def grace_of(delay_ns: int) -> int:
    """The grace time before a response counts as overdue, given the delay of packets."""
    return min(GRACE_NS, max(_NAMED_NS - delay_ns, _LEAST_GRACE_NS))


def count_overdue(
    now: int, waits: Iterable[Wait], catalog: Catalog, names: Mapping[str, str], grace_ns: int = GRACE_NS
) -> OverdueResponses:
    """Counts responses overdue for `grace_ns` or longer. `names`: topic id -> name."""
    overdue = OverdueResponses(now)
    joins = []
    meeting = rendezvous(catalog)
    for wait in waits:
        if wait.api_key in meeting:
            joins.append(wait)
            continue
        late_ns = now - wait.due
        if late_ns < grace_ns:
            continue
        overdue.total.add(late_ns)
        for dimension, name in _names(wait, catalog, names):
            overdue.by_dimension[dimension].setdefault(name, Overdue()).add(late_ns)
    overdue.joins = tuple(joins)
    return overdue


def _names(wait: Wait, catalog: Catalog, names: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    yield "brokers", endpoint(wait.broker_address, wait.broker_port)
    yield "clients", NO_NAME if wait.client_id is None else wait.client_id
    api = catalog.apis.get(wait.api_key)
    yield "apis", api_label(api.name if api else str(wait.api_key), wait.caller, wait.topics)
    for topic in dict.fromkeys(names.get(topic, topic) for topic in wait.topics):
        yield "topics", topic


def rendezvous(catalog: Catalog) -> Sequence[int]:
    """Keys of APIs whose responses wait for requests of the other group members."""
    return tuple(key for key, api in catalog.apis.items() if api.traits.rendezvous)
