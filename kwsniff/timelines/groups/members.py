"""Members of groups: one row per membership, from the join to the end. Tracked in bounded memory.

The member id identifies a member; a static member gets a new one when it restarts. A session has expired
if a member that had not left gets UNKNOWN_MEMBER_ID from the coordinator, or if the other members began a
generation without a member that had been silent for its session timeout.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.layout.traits import CLASSIC, GROUP_KINDS
from kwsniff.tables.rows import pick
from kwsniff.timelines.call_ids import note_call
from kwsniff.timelines.decoded_messages import BYTES, Fields, list_elements, read_request, read_response
from kwsniff.timelines.groups.rebalance import LONGEST_NAME, Row, to_nanoseconds
from kwsniff.timelines.groups.rebalances import (
    FENCED_INSTANCE_ID,
    JOIN,
    LEAVE,
    SYNC,
    UNKNOWN_MEMBER_ID,
    group_roles,
)
from kwsniff.timelines.memory_budget import RECORD, SHORT, MemoryBudget
from kwsniff.timelines.metadata.topic_names import TopicNames

MOST_MEMBERS_TOTAL = 100_000
"""Maximum memberships tracked at a time; beyond that, the group idle for longest is closed."""
MOST_LISTED = 1_000
"""Maximum topics and partitions listed per member; more partitions are only counted."""
LONGEST_REASON = 1_024

COLUMNS: Final = (
    "call_id", "api_key", "api_version", "group_id", "member_id", "group_instance_id", "client_id",
    "client_address", "generation", "request_time", "response_end_time", "error_code", "capture",
)  # fmt: skip


@dataclass(slots=True)
class Call:
    """One call of a group; times in microseconds."""

    call_id: int
    api_key: int
    api_version: int
    group_id: str
    member_id: str | None
    instance: str | None
    client_id: str | None
    client_address: str
    generation: int | None
    begin: int | None
    end: int | None
    error_code: int | None
    capture: str
    request: bytes | None
    response: bytes | None


@dataclass(slots=True)
class Member:
    """One membership in progress; times in microseconds."""

    capture: str
    client_id: str | None = None
    client_address: str | None = None
    instance: str | None = None
    joined: int | None = None
    last: int | None = None
    generation: int | None = None
    session_timeout: int | None = None
    rebalance_timeout: int | None = None
    heartbeat_interval: int | None = None
    reason_text: str | None = None
    topics: list[str] | None = None
    partitions: list[list[Any]] | None = None
    """Topic or topic id, whether it is an id, numbers of partitions."""
    call_ids: list[int] = field(default_factory=list)
    charged: int = 0
    """Bytes charged for it."""

    def size(self) -> int:
        """Approximate bytes that it takes."""
        listed = sum(SHORT + 32 * len(numbers) for _, _, numbers in self.partitions or ())
        return RECORD + len(self.reason_text or "") + 2 * SHORT * len(self.topics or ()) + listed


class Members:
    """Tracks members through batches of noted calls; `rows`: completed memberships."""

    def __init__(self, names: TopicNames, catalog: Catalog, budget: MemoryBudget) -> None:
        self._budget = budget
        self._catalog = catalog
        self._roles = group_roles(catalog)
        self.rows: list[Row] = []
        self.forgotten = 0
        """Groups closed because of MOST_MEMBERS_TOTAL or the memory limit."""
        self._names = names
        self._groups: dict[tuple[str, str], dict[str, Member]] = {}
        self._count = 0
        self._latest: dict[tuple[str, str], tuple[int, int]] = {}
        """Latest generation of a classic group, and the time of its first join."""

    def add(self, batch: pa.RecordBatch, chosen: Any) -> None:
        """Takes the selected calls, in the order in which they ended."""
        for values in pick(batch, chosen, (*COLUMNS, *BYTES)):
            call = Call(*values)
            if call.group_id is not None and call.api_key in self._roles:
                self.add_call(call)

    def add_call(self, call: Call) -> None:
        """One call of a group."""
        role = self._roles[call.api_key]
        kind = role if role in GROUP_KINDS else CLASSIC
        place = call.group_id[:LONGEST_NAME], kind
        # Removed and reinserted, so that the last one is the most recent.
        group = self._groups[place] = self._groups.pop(place, {})
        before = len(group)
        if role == LEAVE:
            before += self._take_leave(place, call)
        elif call.error_code in (UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID):
            how = "session_expired" if call.error_code == UNKNOWN_MEMBER_ID else "fenced"
            self._end(place, group, call.member_id, call, how)
        elif kind != CLASSIC:
            self._take_epoch(place, group, call)
        elif role == JOIN:
            self._take_join(place, group, call)
        elif (member := self._sign(group, call)) and role == SYNC and call.error_code == 0:
            note_call(member.call_ids, call.call_id)
            _assign(member, read_response(self._catalog, call.api_key, call.api_version, call.response))
        self._count += len(group) - before
        if not group:
            del self._groups[place]
            self._latest.pop(place, None)
        elif call.member_id and (spoke := group.get(call.member_id[:LONGEST_NAME])):
            self._charge(spoke)
        while self._groups and (self._count > MOST_MEMBERS_TOTAL or self._budget.is_full):
            self._forget()

    def _charge(self, member: Member) -> None:
        taken = member.size()
        self._budget.charge(taken - member.charged)
        member.charged = taken

    def _forget(self) -> None:
        """The group idle for longest."""
        oldest = next(iter(self._groups))
        self.forgotten += 1
        self._budget.left_out += 1
        self._count -= len(self._groups[oldest])
        self._close(oldest, self._groups.pop(oldest), "unknown")
        self._latest.pop(oldest, None)

    def state(self) -> tuple[Any, ...]:
        """The state for `resume`, without `rows`."""
        return self.forgotten, self._count, self._groups, self._latest

    def resume(self, state: tuple[Any, ...]) -> None:
        """Continues from a saved state."""
        self.forgotten, self._count, self._groups, self._latest = state

    def finish(self) -> None:
        """Ends the input."""
        for place, group in self._groups.items():
            self._close(place, group, "open_at_end")
        self._groups.clear()
        self._latest.clear()
        self._count = 0

    def _sign(self, group: dict[str, Member], call: Call) -> Member | None:
        """The member of the call; None for one without a name."""
        if not call.member_id:
            return None
        name = call.member_id[:LONGEST_NAME]
        member = group.get(name)
        if member is None:
            member = group[name] = Member(call.capture)
        member.client_id, member.client_address = call.client_id, call.client_address
        member.instance = call.instance or member.instance
        member.last = call.begin if call.begin is not None else member.last
        if call.generation is not None and call.generation >= 0 and call.error_code == 0:
            member.generation = call.generation
        return member

    def _take_join(self, place: tuple[str, str], group: dict[str, Member], call: Call) -> None:
        member = self._sign(group, call)
        if member is None:
            return
        if call.error_code == 0 and call.generation is not None and call.begin is not None:
            self._begin_generation(place, group, call.generation, call.begin)
        note_call(member.call_ids, call.call_id)
        if member.joined is None:
            member.joined = call.begin
        said = read_request(self._catalog, call.api_key, call.api_version, call.request)
        _learn(member, said)
        for number, _ in enumerate(list_elements(said, "protocols")):
            inside = said["inside"].get(f"/protocols/{number}/metadata")
            if topics := list_elements(inside, "topics"):
                member.topics = _few(topics)
                break

    def _begin_generation(
        self, place: tuple[str, str], group: dict[str, Member], generation: int, begin: int
    ) -> None:
        """Members without a part in the previous generation either, and silent for a session timeout, are
        gone."""
        latest = self._latest.get(place)
        if latest is not None and latest[0] == generation:
            self._latest[place] = generation, min(latest[1], begin)
            return
        if latest is not None:
            gone = [name for name, member in group.items() if _is_expired(member, latest)]
            for name in gone:
                self.rows.append(self._row(place, name, group.pop(name), "session_expired", None))
        self._latest[place] = generation, begin

    def _take_epoch(self, place: tuple[str, str], group: dict[str, Member], call: Call) -> None:
        said = read_request(self._catalog, call.api_key, call.api_version, call.request)
        epoch = said.get("member_epoch", call.generation)
        if epoch is not None and epoch < 0:
            self._end(place, group, call.member_id, call, "left")
            return
        member = self._sign(group, call)
        if member is None or call.error_code != 0:
            return
        if epoch == 0:
            note_call(member.call_ids, call.call_id)
            member.joined = call.begin if member.joined is None else member.joined
        _learn(member, said)
        if topics := list_elements(said, "subscribed_topic_names"):
            member.topics = _few(topics)
        answered = read_response(self._catalog, call.api_key, call.api_version, call.response)
        member.heartbeat_interval = answered.get("heartbeat_interval_ms", member.heartbeat_interval)
        if isinstance(answered.get("assignment"), Mapping):
            note_call(member.call_ids, call.call_id)
            found = answered["assignment"]
            parts = list_elements(found, "topic_partitions") or list_elements(
                found, "assigned_topic_partitions"
            )
            member.partitions = [
                [each.get("topic_id"), True, list_elements(each, "partitions")] for each in parts
            ]

    def _take_leave(self, place: tuple[str, str], call: Call) -> int:
        """Handles the members in a LeaveGroup, in any kind of group; returns the number ended in other
        kinds than `place`."""
        ended = 0
        if call.error_code != 0:
            return ended
        said = read_request(self._catalog, call.api_key, call.api_version, call.request)
        places = [(place[0], kind) for kind in (CLASSIC, *GROUP_KINDS)]
        groups = [(each, self._groups[each]) for each in places if each in self._groups]
        static = {m.instance: (each, name) for each, group in groups for name, m in group.items()}
        for who, instance, reason in _leaving(said, call):
            found = next(((each, who) for each, group in groups if who in group), None)
            found = found or (static.get(instance) if who is None and instance else None)
            if found is None and who is None:
                continue
            its_place, name = found or (place, who)
            group = self._groups.get(its_place, {})
            member = group.get(name or "")
            ended += its_place != place
            alien = member is not None and (member.client_address, member.client_id) != (
                call.client_address,
                call.client_id,
            )
            self._end(its_place, group, name, call, "removed" if alien else "left", reason)
            if not group and its_place != place:
                del self._groups[its_place]
                self._latest.pop(its_place, None)
        return ended

    def _end(  # noqa: PLR0917 -- the member, and how it ended
        self,
        place: tuple[str, str],
        group: dict[str, Member],
        name: str | None,
        call: Call,
        how: str,
        reason: str | None = None,
    ) -> None:
        """Ends a membership; if no earlier call was captured, only its end is known."""
        if not name:
            return
        name = name[:LONGEST_NAME]
        member = group.pop(name, None)
        if member is None:
            if how != "left":
                return  # it had left, or the capture does not have it
            member = Member(call.capture, call.client_id, call.client_address, call.instance)
        note_call(member.call_ids, call.call_id)
        member.reason_text = reason or member.reason_text
        left = call.begin if how in ("left", "removed") else call.end
        self.rows.append(self._row(place, name, member, how, left))

    def _close(self, place: tuple[str, str], group: dict[str, Member], how: str) -> None:
        latest = self._latest.get(place)
        for name, member in group.items():
            if member.generation is not None:
                expired = latest is not None and _is_expired(member, latest)
                self.rows.append(self._row(place, name, member, "session_expired" if expired else how, None))
            else:
                self._budget.charge(-member.charged)

    def _row(self, place: tuple[str, str], name: str, member: Member, how: str, left: int | None) -> Row:
        self._budget.charge(-member.charged)
        partitions = None if member.partitions is None else self._partitions(member.partitions)
        return {
            "capture": member.capture,
            "group_id": place[0],
            "kind": place[1],
            "member_id": name,
            "group_instance_id": member.instance,
            "client_id": member.client_id,
            "client_address": member.client_address,
            "joined_time": to_nanoseconds(member.joined),
            "last_time": to_nanoseconds(member.last),
            "left_time": to_nanoseconds(left),
            "left_how": how,
            "reason_text": member.reason_text,
            "session_timeout_ms": member.session_timeout,
            "rebalance_timeout_ms": member.rebalance_timeout,
            "heartbeat_interval_ms": member.heartbeat_interval,
            "generation": member.generation,
            "topics": member.topics,
            "partitions": None if partitions is None else list(islice(partitions, MOST_LISTED)),
            "partition_count": None if partitions is None else _count_partitions(member.partitions or ()),
            "call_ids": member.call_ids,
        }

    def _partitions(self, found: Iterable[list[Any]]) -> Iterator[str]:
        for topic, is_id, numbers in found:
            name = self._names.get(topic) if is_id else topic
            for number in numbers:
                yield f"{name}-{number}"


def _count_partitions(partitions: Iterable[list[Any]]) -> int:
    return sum(len(numbers) for _, _, numbers in partitions)


def _is_expired(member: Member, latest: tuple[int, int]) -> bool:
    """Whether a generation began without the member after it was silent for its session timeout."""
    if member.generation is None or member.last is None or member.session_timeout is None:
        return False
    generation, begin = latest
    return member.generation < generation and begin - member.last >= member.session_timeout * 1000


def _leaving(said: Fields, call: Call) -> Iterator[tuple[str | None, str | None, str | None]]:
    """Member id, instance id and reason of each leaving member."""
    members = list_elements(said, "members")
    for each in members:
        who, instance = each.get("member_id") or None, each.get("group_instance_id")
        if who or instance:
            yield who and who[:LONGEST_NAME], instance, _text(each.get("reason"))
    if not members and call.member_id:
        yield call.member_id[:LONGEST_NAME], None, None


def _learn(member: Member, said: Fields) -> None:
    member.session_timeout = said.get("session_timeout_ms", member.session_timeout)
    wait = said.get("rebalance_timeout_ms", -1)
    member.rebalance_timeout = wait if wait >= 0 else member.rebalance_timeout
    member.reason_text = _text(said.get("reason")) or member.reason_text


def _assign(member: Member, said: Fields) -> None:
    inside = said.get("inside", {}).get("/assignment")
    if isinstance(inside, Mapping) and "assigned_partitions" in inside:
        parts = list_elements(inside, "assigned_partitions")
        member.partitions = [[each.get("topic"), False, list_elements(each, "partitions")] for each in parts]
    elif said.get("assignment") == "":
        member.partitions = []


def _few(topics: list[Any]) -> list[str]:
    return [str(topic)[:LONGEST_NAME] for topic in topics[:MOST_LISTED]]


def _text(reason: Any) -> str | None:
    return reason[:LONGEST_REASON] if isinstance(reason, str) and reason else None
