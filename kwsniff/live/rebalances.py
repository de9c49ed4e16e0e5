"""Rebalances in progress, and completed ones as soon as the last member gets its assignment.

    JoinGroup waits ............ joined | SyncGroup waits ... over
    for members that have not come      | for the leader

A group's row in the table comes later, because it includes later calls; see kwsniff/timelines.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.layout.traits import CLASSIC
from kwsniff.live.batches import Batches
from kwsniff.live.overdue_responses import GRACE_NS, OverdueResponses, Wait
from kwsniff.tables.arrays import whole_numbers
from kwsniff.tables.rows import pick
from kwsniff.timelines.groups.rebalances import JOIN, SYNC, Standing, group_roles

MOST_GROUPS: Final = 10_000
MOST_SHOWN: Final = 100
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_MEMBERS: Final = 1_000
_UUID: Final = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_COLUMNS: Final = (
    "api_key", "group_id", "group_instance_id", "member_id", "client_id", "generation", "error_code",
)  # fmt: skip

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A rebalance in progress. `since`: nanoseconds since the epoch; `waiting`: members whose requests wait;
    `missing`: known members without a request, as far as the capture shows."""

    group_id: str
    since: int
    phase: str
    waiting: tuple[str, ...]
    missing: tuple[str, ...]

    def as_dict(self, now: int) -> dict[str, Any]:
        """For JSON."""
        return {
            "group_id": self.group_id,
            "phase": self.phase,
            "lasts_ns": max(now - self.since, 0),
            "waiting": [*self.waiting],
            "missing": [*self.missing],
        }


@dataclass(slots=True)
class _Round:
    generation: int | None = None
    synced: set[str] = field(default_factory=set)
    told: bool = False


class Rebalancing:
    """`standing`: returns the state of a group after its calls were taken (Session.standing)."""

    def __init__(self, catalog: Catalog, standing: Callable[[str], Standing | None]) -> None:
        self.over: deque[Row] = deque(maxlen=MOST_SHOWN)
        """The latest rows of groups, oldest first: rows of the table, and classic rebalances as they end."""
        self.count = 0
        """Number of completed rebalances."""
        self.under_way: tuple[UnderWay, ...] = ()
        """Rebalances in progress, longest first."""
        self._standing = standing
        roles = group_roles(catalog)
        self._roles = {key: role for key, role in roles.items() if role in (JOIN, SYNC)}
        self._rounds: OrderedDict[str, _Round] = OrderedDict()

    def add(self, batches: Batches) -> None:
        """Takes the rows of one interval, after the timelines took their calls."""
        if "api_calls" in batches:
            self._add_calls(batches["api_calls"])
        if "groups" in batches:
            rows = batches["groups"]
            for row in rows.slice(max(rows.num_rows - MOST_SHOWN, 0)).to_pylist():
                self._add_row({name: _plain(value) for name, value in row.items()})
            self.count += max(rows.num_rows - MOST_SHOWN, 0)

    def add_waiting(self, overdue: OverdueResponses) -> None:
        """Updates the rebalances in progress from the calls that wait now."""
        groups: dict[str, list[Wait]] = {}
        for wait in overdue.joins:
            if wait.group_id is not None:
                groups.setdefault(wait.group_id, []).append(wait)
        found = [
            each
            for group_id, waits in groups.items()
            if (each := self._under_way(group_id, waits, overdue.now)) is not None
        ]
        self.under_way = tuple(sorted(found, key=lambda each: each.since)[:MOST_SHOWN])

    def _under_way(self, group_id: str, waits: Sequence[Wait], now: int) -> UnderWay | None:
        standing = self._standing(group_id)
        joins = [wait for wait in waits if self._roles.get(wait.api_key) == JOIN]
        chosen = joins or waits
        since = min(wait.asked for wait in chosen)
        known: frozenset[str] | set[str] = frozenset()
        if standing and joins:
            known = standing.members
        elif standing:
            known = standing.joined - self._rounds.get(group_id, _Round()).synced
            if standing.row and standing.row["begin_time"] is not None:
                since = min(since, standing.row["begin_time"])
        if now - since < GRACE_NS:
            return None
        here = {_name(wait.member, wait.client_id) for wait in chosen}
        return UnderWay(
            group_id,
            since,
            JOIN if joins else SYNC,
            _shorten_names(here),
            _shorten_names(set(known) - here) if known else (),
        )

    def _add_calls(self, batch: pa.RecordBatch) -> None:
        chosen = np.isin(whole_numbers(batch["api_key"], null=-1), [*self._roles])
        for key, group_id, instance, member, client, generation, error in pick(batch, chosen, _COLUMNS):
            if group_id is None or error != 0 or generation is None or generation < 0:
                continue
            turn = self._rounds[group_id] = self._rounds.pop(group_id, _Round())
            while len(self._rounds) > MOST_GROUPS:
                self._rounds.popitem(last=False)
            if turn.generation != generation:
                turn.generation, turn.told = generation, False
                turn.synced.clear()
            if self._roles[key] == SYNC and len(turn.synced) < _MOST_MEMBERS:
                turn.synced.add(_name(instance or member, client))
                self._end(group_id, turn)

    def _end(self, group_id: str, turn: _Round) -> None:
        standing = None if turn.told else self._standing(group_id)
        if standing is None or standing.row is None or standing.row["generation"] != turn.generation:
            return
        if standing.joined and standing.joined <= turn.synced:
            turn.told = True
            self.count += 1
            self.over.append(standing.row)

    def _add_row(self, row: Row) -> None:
        turn = self._rounds.get(row["group_id"])
        for place, shown in enumerate(self.over):
            if _same(shown, row):
                self.over[place] = row
                return
        if turn and turn.told and turn.generation == row["generation"] and row["kind"] == CLASSIC:
            return  # already shown, so it can be dropped
        self.count += 1
        self.over.append(row)


def _same(one: Row, other: Row) -> bool:
    return all(one[name] == other[name] for name in ("group_id", "kind", "generation", "generation_before"))


def _plain(value: Any) -> Any:
    """Times as nanoseconds, as in the rows of timelines."""
    if not isinstance(value, datetime):
        return value
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1) * 1000


def _name(member: str | None, client: str | None) -> str:
    return (member or client or "")[:256]


def _shorten_names(names: set[str]) -> tuple[str, ...]:
    """Sorted, without the unique suffixes that brokers add to member names."""
    return tuple(sorted(_UUID.sub("", name) or name for name in names))
