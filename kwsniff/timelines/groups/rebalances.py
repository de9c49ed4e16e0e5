"""Tracks rebalances of groups, call by call in bounded memory: the rows of the groups table.

Classic groups: a rebalance is all calls with one generation, which JoinGroup responses announce. A
failed JoinGroup (every join begins with MEMBER_ID_REQUIRED since KIP-394) belongs to the next
generation. KIP-848 and similar groups have no such round: members send their epoch with every heartbeat,
0 to join, below 0 to leave, and a new epoch becomes visible when the first of them sends it.
"""

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa

from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.traits import CLASSIC, GROUP_KINDS
from kwsniff.tables.arrays import among, whole_numbers
from kwsniff.tables.rows import pick
from kwsniff.timelines.decoded_messages import Fields, list_elements, read_request
from kwsniff.timelines.groups.rebalance import LONGEST_NAME, MOST_MEMBERS, Call, Rebalance, Row
from kwsniff.timelines.memory_budget import RECORD, SHORT, MemoryBudget

MOST_GROUPS = 10_000
"""Maximum groups tracked at a time; beyond that, the one idle for longest is closed."""
MOST_MEMBERS_TOTAL = 100_000
"""Maximum members with stored names in all groups together."""

JOIN, HEARTBEAT, LEAVE, SYNC = "join", "heartbeat", "leave", "sync"
"""Roles of classic groups' calls; newer groups have one role each, named like their kind."""
_MEMBER_ID_REQUIRED = 79
UNKNOWN_MEMBER_ID = 25
FENCED_INSTANCE_ID = 82
COLUMNS: Final = (
    "api_key", "group_id", "member_id", "group_instance_id", "client_id", "generation", "protocol_type",
    "request_time", "response_end_time", "error_code", "capture", "call_id",
    "api_version",
)  # fmt: skip


@dataclass(slots=True)
class Group:
    """State of a group: members with their last sign of life, those that sent the current epoch,
    whether all have left, the rebalance in progress, and the calls (failed joins, leaves) that
    belong to the next one."""

    kind: str
    generation: int | None = None
    signs: dict[str, int | None] = field(default_factory=dict)
    adopted: set[str] = field(default_factory=set)
    empty: bool = False
    session: int | None = None
    current: Rebalance | None = None
    coming: Rebalance | None = None
    charged: int = 0
    """Bytes charged for it."""

    def size(self) -> int:
        """Approximate bytes that it takes."""
        under_way = sum(each.size() for each in (self.current, self.coming) if each)
        return 2 * RECORD + 2 * SHORT * (len(self.signs) + len(self.adopted)) + under_way


class Standing(NamedTuple):
    """A group during a capture. `members`: names with signs of life; `joined`: those of
    the latest tracked generation, whose row so far is `row`."""

    members: frozenset[str]
    joined: frozenset[str]
    row: Row | None


class Rebalances:
    """Tracks groups through batches of api_calls; `rows`: completed rebalances."""

    def __init__(self, catalog: Catalog | None = None, budget: MemoryBudget | None = None) -> None:
        self._budget = MemoryBudget() if budget is None else budget
        self.rows: list[Row] = []
        self._catalog = catalog or load_catalog()
        self._roles = group_roles(self._catalog)
        self.forgotten = 0
        """Groups closed because of MOST_GROUPS, MOST_MEMBERS_TOTAL or the memory limit."""
        self._groups: dict[tuple[str, str], Group] = {}
        self._members = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes calls in the order in which they ended."""
        chosen = among(whole_numbers(batch["api_key"], null=-1), self._roles)
        columns = (*COLUMNS, "request")
        for key, group, member, instance, client, generation, type_, *rest in pick(batch, chosen, columns):
            if group is None:
                continue
            name = (instance or member or client or "")[:LONGEST_NAME]
            *more, version, request = rest
            call = Call(self._roles[key], group[:LONGEST_NAME], name, generation, type_, *more)
            if request is not None:
                _read(call, read_request(self._catalog, key, version, request))
            self.add_call(call)

    def add_call(self, call: Call) -> None:
        """One call of a group."""
        kind = call.role if call.role in GROUP_KINDS else CLASSIC
        place = call.group_id, kind
        # Removed and reinserted, so that the last one is the most recent.
        group = self._groups[place] = self._groups.pop(place, Group(kind))
        before = len(group.signs)
        if call.error_code == UNKNOWN_MEMBER_ID:
            _expire(group, call)
        if call.session_timeout is not None:
            group.session = max(group.session or 0, call.session_timeout)
        if kind != CLASSIC:
            self._take_epoch(group, call)
        elif call.role == JOIN:
            self._take_join(group, call)
        elif call.role == SYNC:
            self._take_sync(group, call)
        elif call.role == LEAVE:
            _leave(group, call)
        elif call.error_code != UNKNOWN_MEMBER_ID:
            group.generation = group.generation if group.generation is not None else call.generation
            _live(group, call)
        self._members += len(group.signs) - before
        self._charge(group, group.size())
        while self._groups and (
            self._members > MOST_MEMBERS_TOTAL or len(self._groups) > MOST_GROUPS or self._budget.is_full
        ):
            self._forget()

    def _charge(self, group: Group, size: int) -> None:
        self._budget.charge(size - group.charged)
        group.charged = size

    def standing(self, group_id: str) -> Standing | None:
        """The current state of a classic group."""
        group = self._groups.get((group_id[:LONGEST_NAME], CLASSIC))
        if group is None:
            return None
        current = group.current
        row = current.row(group_id, CLASSIC) if current else None
        return Standing(frozenset(group.signs), frozenset(current.members if current else ()), row)

    def state(self) -> tuple[Any, ...]:
        """The state for `resume`, without `rows`."""
        return self.forgotten, self._members, self._groups

    def resume(self, state: tuple[Any, ...]) -> None:
        """Continues from a saved state."""
        self.forgotten, self._members, self._groups = state

    def finish(self) -> None:
        """Ends: rebalances in progress become rows."""
        for (name, _), group in self._groups.items():
            self._close(name, group)
        self._groups.clear()
        self._members = 0

    def _forget(self) -> None:
        place, group = next(iter(self._groups.items()))
        del self._groups[place]
        self._members -= len(group.signs)
        self.forgotten += 1
        self._budget.left_out += 1
        self._close(place[0], group)

    def _close(self, name: str, group: Group) -> None:
        if group.current:
            self.rows.append(group.current.row(name, group.kind))
        coming = group.coming
        if coming and coming.members:  # a member tried to join without success
            self.rows.append(coming.row(name, group.kind))
        group.current = group.coming = None
        self._charge(group, 0)

    def _begin(self, group: Group, call: Call) -> Rebalance:
        """A new generation or epoch, with the calls that led to it."""
        if group.current:
            self.rows.append(group.current.row(call.group_id, group.kind))
        started = group.coming or Rebalance(call.capture, group.generation)
        started.before, started.generation = group.generation, call.generation
        started.known, started.founded, started.session = group.signs, group.empty, group.session
        if group.kind == "classic":
            started.members = {}  # members with a failed attempt; they join again
        group.generation, group.signs, group.adopted, group.empty = call.generation, {}, set(), False
        group.current, group.coming = started, None
        return started

    def _take_join(self, group: Group, call: Call) -> None:
        if call.error_code != 0 or call.generation is None or call.generation < 0:
            coming = _coming(group, call)
            coming.count(call)
            if call.error_code in (None, _MEMBER_ID_REQUIRED):
                coming.begin_by(call.begin)
                coming.join(call.member, call.begin)
            return
        current = group.current
        if current is None or current.generation != call.generation:
            current = self._begin(group, call)
        current.count(call)
        current.begin_by(call.begin)
        current.join(call.member, call.begin)
        _live(group, call)

    def _take_sync(self, group: Group, call: Call) -> None:
        current = group.current
        if call.generation is None:
            return
        if current is None or current.generation != call.generation:
            if group.generation is not None:
                return  # of an old generation, or of one whose joins were not captured
            current = self._begin(group, call)
        current.count(call)
        if call.error_code == 0:
            current.end_at(call.end)
            _live(group, call)

    def _take_epoch(self, group: Group, call: Call) -> None:
        epoch = call.generation
        if epoch is None:
            return
        if epoch < 0:
            _leave(group, call)
        elif epoch == 0:
            coming = _coming(group, call)
            coming.count(call)
            coming.begin_by(call.begin)
            coming.join(call.member, call.begin)
            coming.cause(call.begin, "member_joined", call.member)
        elif call.error_code == 0:
            self._take_new_epoch(group, call, epoch)

    def _take_new_epoch(self, group: Group, call: Call, epoch: int) -> None:
        current = group.current
        if group.generation is None and group.coming is None:
            group.generation = epoch  # already in progress when the capture began
        elif group.generation is None or epoch > group.generation:
            current = self._begin(group, call)
        known = call.member in group.adopted or len(group.adopted) >= MOST_MEMBERS
        # A new member begins with the current epoch, and causes the next one.
        known = known or bool(group.coming and call.member in group.coming.members)
        if current and current.generation == epoch and not known:
            group.adopted.add(call.member)
            current.count(call)
            current.begin_by(call.begin)
            current.join(call.member, call.begin)
            current.end_at(call.end)
        _live(group, call)


def group_roles(catalog: Catalog) -> dict[int, str]:
    """Api key -> role in a classic group, or kind of group."""
    traits = {key: api.traits for key, api in catalog.apis.items() if api.traits.group}
    return {key: one.group if one.group_kind == CLASSIC else one.group_kind for key, one in traits.items()}


def _read(call: Call, said: Fields) -> None:
    """The reason text of the request."""
    session, rebalance = said.get("session_timeout_ms"), said.get("rebalance_timeout_ms")
    call.session_timeout, call.rebalance_timeout = session, rebalance
    reasons = [said.get("reason"), *(each.get("reason") for each in list_elements(said, "members"))]
    call.reason_text = next((reason for reason in reasons if reason), None)


def _expire(group: Group, call: Call) -> None:
    """The coordinator does not know a member that had not left: its session expired after its last sign of
    life."""
    current = group.current
    if call.member in group.signs:
        last = group.signs.pop(call.member)
        coming = _coming(group, call)
        coming.cause(call.begin if last is None else last, "session_expired", call.member)
    elif current and call.member in current.known and call.member not in current.members:
        last = current.known[call.member]
        current.cause(call.begin if last is None else last, "session_expired", call.member)


def _coming(group: Group, call: Call) -> Rebalance:
    if group.coming is None:
        group.coming = Rebalance(call.capture, group.generation)
    return group.coming


def _leave(group: Group, call: Call) -> None:
    coming = _coming(group, call)
    coming.cause(call.begin, "member_left", call.member)
    coming.say(call)
    if group.kind != "classic":
        coming.begin_by(call.begin)
        coming.count(call)
    group.signs.pop(call.member, None)
    if not group.signs:
        group.empty, group.coming = True, None


def _live(group: Group, call: Call) -> None:
    if call.member in group.signs or len(group.signs) < MOST_MEMBERS:
        group.signs[call.member] = call.begin
