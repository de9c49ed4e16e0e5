"""Who owes answers, and to whom: calls that wait longer than they asked to, by broker, client, topic, API.

A JoinGroup or SyncGroup waits for the group's other members: no broker owes it; see rebalancing.py.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kwsniff.layout.catalog import Catalog
from kwsniff.live.calls import NO_NAME, api_label, endpoint

GRACE_NS: Final = 700_000_000
"""Answers that are late by less are nothing to speak of."""
_NAMED_NS: Final = 1_700_000_000
"""Within it of being due, packets' way through the tool included, what is late is told."""
_LEAST_GRACE_NS: Final = 400_000_000
MOST_OWED: Final = 5_000
"""Calls that are looked at one by one."""
_MOST_KNOWN: Final = 600
DIMENSIONS: Final = ("brokers", "clients", "topics", "apis")
"""Those that can be the trouble, first."""


class Wait(NamedTuple):
    """A call without an answer; times in nanoseconds since the epoch. `member`: its instance or member id."""

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
    """When the kernel dropped how many packets, as far as it is known."""

    def __init__(self) -> None:
        self._total = 0
        self._known: deque[tuple[int, int]] = deque()

    def note(self, total: int | None, now: int) -> None:
        """So many by now (nanoseconds since the epoch); None where nobody says."""
        if total is None or total <= self._total:
            return
        self._known.append((now, total - self._total))
        self._total = total
        if len(self._known) > _MOST_KNOWN:  # the oldest two as one
            (_, first), (then, second) = self._known.popleft(), self._known.popleft()
            self._known.appendleft((then, first + second))

    def since(self, moment: int) -> int:
        """Packets that may have been dropped after a time."""
        return sum(number for time, number in self._known if time >= moment)


def not_lost(waits: Iterable[Wait], lost_since: Callable[[int], int]) -> list[Wait]:
    """The calls of which no answer can have been dropped: on their connections and those of later calls to
    the same broker more answers are missing than packets are."""
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
class Debt:
    """Answers that one owes, and for how long the first of them is due."""

    calls: int = 0
    oldest_ns: int = 0

    def add(self, late_ns: int) -> None:
        """One more."""
        self.calls += 1
        self.oldest_ns = max(self.oldest_ns, late_ns)


@dataclass(slots=True)
class Owed:
    """What is owed at one moment. `debts`: dimension, name, Debt; `joins`: calls that wait for a group."""

    now: int = 0
    debts: dict[str, dict[str, Debt]] = field(default_factory=lambda: {name: {} for name in DIMENSIONS})
    total: Debt = field(default_factory=Debt)
    joins: tuple[Wait, ...] = ()

    def worst(self, dimension: str) -> list[tuple[str, Debt]]:
        """Who owes for longest, first."""
        return sorted(self.debts[dimension].items(), key=lambda item: (-item[1].oldest_ns, item[0]))

    def late_ns(self, dimension: str, name: str) -> int:
        """For how long the first answer is due, or 0."""
        debt = self.debts.get(dimension, {}).get(name)
        return debt.oldest_ns if debt else 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON: of each dimension those that owe for longest, at most 100."""
        return {
            "owed": self.total.calls,
            **{
                f"owed_by_{dimension[:-1]}": [
                    {dimension[:-1]: name, "calls": debt.calls, "oldest_ns": debt.oldest_ns}
                    for name, debt in self.worst(dimension)[:100]
                ]
                for dimension in DIMENSIONS
            },
        }


def grace_of(delay_ns: int) -> int:
    """How late an answer may be, where packets are so long under way."""
    return min(GRACE_NS, max(_NAMED_NS - delay_ns, _LEAST_GRACE_NS))


def count_owed(
    now: int, waits: Iterable[Wait], catalog: Catalog, names: Mapping[str, str], grace_ns: int = GRACE_NS
) -> Owed:
    """Counts what is due since `grace_ns` or longer. `names`: topic id -> name."""
    owed = Owed(now)
    joins = []
    meeting = rendezvous(catalog)
    for wait in waits:
        if wait.api_key in meeting:
            joins.append(wait)
            continue
        late_ns = now - wait.due
        if late_ns < grace_ns:
            continue
        owed.total.add(late_ns)
        for dimension, name in _names(wait, catalog, names):
            owed.debts[dimension].setdefault(name, Debt()).add(late_ns)
    owed.joins = tuple(joins)
    return owed


def _names(wait: Wait, catalog: Catalog, names: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    yield "brokers", endpoint(wait.broker_address, wait.broker_port)
    yield "clients", NO_NAME if wait.client_id is None else wait.client_id
    api = catalog.apis.get(wait.api_key)
    yield "apis", api_label(api.name if api else str(wait.api_key), wait.caller, wait.topics)
    for topic in dict.fromkeys(names.get(topic, topic) for topic in wait.topics):
        yield "topics", topic


def rendezvous(catalog: Catalog) -> Sequence[int]:
    """Keys of APIs that are answered when the other members of the group have asked, too."""
    return tuple(key for key, api in catalog.apis.items() if api.traits.rendezvous)
