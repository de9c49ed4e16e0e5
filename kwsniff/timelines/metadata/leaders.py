"""Leaders of partitions in Metadata responses, and their changes."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kwsniff.timelines.decoded_messages import Fields, list_elements
from kwsniff.timelines.memory_budget import RECORD, SHORT, MemoryBudget
from kwsniff.timelines.metadata.topic_names import topic_id_of

MOST_LEADERS = 200_000
"""Maximum rows; further ones are left out."""
LONGEST_NAME = 256
MOST_NODES: Final = 64
"""Maximum brokers listed per partition; a partition usually has three replicas."""
_MOST_CHANGES: Final = 2 * MOST_LEADERS
NEVER: Final = (1 << 63) - 1

Row = dict[str, Any]
Nodes = Sequence[int] | None


class Teller(NamedTuple):
    """A Metadata response: its call, the client, the broker and the time (microseconds)."""

    call_id: int
    capture: str
    client_id: str | None
    address: str
    port: int
    time: int | None
    place: int = 0
    """Its position among the calls."""


@dataclass(slots=True)
class Leader:
    """One row; there is at least one per partition. Times in nanoseconds."""

    capture: str
    topic: str | None
    topic_id: str | None
    partition: int
    leader: int
    leader_epoch: int | None
    first_time: int | None
    broker_address: str
    broker_port: int
    client_id: str | None
    first_call_id: int
    last_call_id: int
    last_time: int | None = None
    replicas: int | None = None
    in_sync: int | None = None
    replica_nodes: Nodes = None
    isr_nodes: Nodes = None
    calls: int = 0

    def touch(self, times: int, call_id: int, time: int | None) -> None:
        """Counts a repeat, by a call that ended at `time` (microseconds); a late update does not
        revert a newer one."""
        self.calls += times
        moment = None if time is None else time * 1000
        before = self.last_time
        if before is None or (moment is not None and (moment, call_id) >= (before, self.last_call_id)):
            self.last_time, self.last_call_id = moment, call_id

    def note_copies(self, replicas: Nodes, in_sync: Nodes) -> None:
        """Brokers with a replica in the last response; those in sync when they were fewest."""
        if replicas is None or in_sync is None:
            return
        self.replicas, self.replica_nodes = len(replicas), replicas[:MOST_NODES]
        if self.in_sync is None or len(in_sync) <= self.in_sync:
            self.in_sync, self.isr_nodes = len(in_sync), in_sync[:MOST_NODES]

    def row(self) -> Row:
        """The row of the table."""
        return {name: getattr(self, name) for name in self.__slots__}


class Change(NamedTuple):
    """Number of replicas of a partition: position of the call, topic (or # and its id), partition,
    and since when (microseconds) it has one replica, and more."""

    place: int
    topic: str
    partition: int
    one: int | None
    more: int | None


class Copies:
    """Since when partitions have one replica, or more, from other trackers."""

    def __init__(self, changes: Iterable[Change]) -> None:
        """`changes`: in order, from `Leaders.changes`."""
        self._coming = deque(changes)
        self._known: dict[tuple[str, int], Change] = {}

    def go_on(self, place: int) -> None:
        """Calls up to this position were included."""
        while self._coming and self._coming[0].place <= place:
            change = self._coming.popleft()
            self._known[change.topic, change.partition] = change

    def find_copies(self, topic: str, partition: int) -> tuple[int, int]:
        """As in Leaders."""
        known = self._known.get((topic, partition))
        return _since(*(known.one, known.more) if known else (None, None))


class Leaders:
    """Tracks Metadata responses; `rows` are available after the end."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self.rows: list[Leader] = []
        self._known: dict[tuple[Any, ...], Leader] = {}
        self._latest: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        """Topic and partition -> the latest key, for responses without epochs."""
        self._ids: dict[str, str] = {}
        """Topic -> its id, which older versions do not have."""
        self._copied: dict[tuple[str, int], tuple[int | None, int | None]] = {}
        """Topic and partition -> since when (microseconds) it has one replica, or more."""
        self.news = 0
        """Increases with every change that may affect the meaning of a response."""
        self.changes: list[Change] | None = None
        """Changes of replica numbers, if requested."""

    def add_response(self, said: Fields, teller: Teller) -> list[Leader]:
        """Takes one response, in the order in which calls ended; returns its rows."""
        told = []
        for place, leader, epoch, copies in self._read_partitions(said):
            self._note_copies(place, copies[0], teller)
            if row := self._add_leader(place, leader, epoch, teller):
                row.note_copies(*copies)
                told.append(row)
        return told

    def find_copies(self, topic: str, partition: int) -> tuple[int, int]:
        """Since when (microseconds) it has one replica, and more; or NEVER."""
        return _since(*self._copied.get((topic, partition), (None, None)))

    def state(self) -> tuple[Any, ...]:
        """The state for `resume`, without `rows`."""
        return self._known, self._latest, self._ids, self._copied

    def resume(self, state: tuple[Any, ...]) -> None:
        """Continues from a saved state."""
        self._known, self._latest, self._ids, self._copied = state

    def finish(self) -> None:
        """Ends: the known leaders become rows."""
        for followed in (self._latest, self._ids):
            followed.clear()
        self.rows += self._known.values()
        self._known.clear()

    def _add_leader(
        self, place: tuple[Any, ...], leader: int, epoch: int | None, teller: Teller
    ) -> Leader | None:
        """A leader's row; None if the limit is reached."""
        key = (*place, leader, epoch, 0)
        before = self._latest.get(place) if epoch is None else None
        if before is not None:
            # Without epochs, a returning leader gets a new row.
            key = before if before[-3] == leader else (*key[:-1], before[-1] + 1)
        row = self._known.get(key)
        if row is None:
            if not self._budget.admits(RECORD - SHORT, full=len(self._known) >= MOST_LEADERS):
                return None
            self.news += 1
            first = None if teller.time is None else teller.time * 1000
            told = teller.address, teller.port, teller.client_id, teller.call_id, teller.call_id
            name, topic_id, partition = place
            place_of = name, topic_id, partition, leader, epoch
            row = self._known[key] = Leader(teller.capture, *place_of, first, *told)
        if epoch is None and key is not before:
            self.news += 1
            if place not in self._latest:
                self._budget.charge(2 * SHORT)
            self._latest[place] = key
        row.touch(1, teller.call_id, teller.time)
        return row

    def _note_copies(self, place: tuple[Any, ...], replicas: Nodes, teller: Teller) -> None:
        name, topic_id, partition = place
        time = teller.time
        which = name or f"#{topic_id}", partition
        if not replicas or time is None:
            return
        known = which in self._copied
        if not known and not self._budget.admits(2 * SHORT, full=len(self._copied) >= MOST_LEADERS):
            return
        before = one, more = self._copied.get(which, (None, None))
        if len(replicas) > 1:
            more = time if more is None else min(more, time)
        else:
            one = time if one is None else min(one, time)
        self._copied[which] = one, more
        if self.changes is not None and (one, more) != before:
            if len(self.changes) < _MOST_CHANGES:
                self.changes.append(Change(teller.place, *which, one, more))
            else:
                self._budget.left_out += 1

    def _read_partitions(
        self, said: Fields
    ) -> Iterator[tuple[tuple[Any, ...], int, int | None, tuple[Nodes, Nodes]]]:
        """Topic, its id and partition; leader; epoch; brokers with a replica, and those in sync."""
        for topic in list_elements(said, "topics"):
            name = (topic.get("name") or "")[:LONGEST_NAME] or None
            topic_id = topic_id_of(topic)
            if name and topic_id:
                self._add_name(name, topic_id)
            for each in list_elements(topic, "partitions"):
                if "leader_id" not in each:
                    continue  # the message broke off in it
                epoch = each.get("leader_epoch", -1)
                place = name, topic_id or self._ids.get(name or ""), each["partition_index"]
                # None if the message broke off before them.
                copies = each.get("replica_nodes"), each.get("isr_nodes")
                yield place, each["leader_id"], None if epoch < 0 else epoch, copies

    def _add_name(self, name: str, topic_id: str) -> None:
        if self._ids.get(name) == topic_id:
            return
        if name in self._ids or self._budget.admits(4 * SHORT, full=len(self._ids) >= MOST_LEADERS):
            self.news += 1
            self._ids[name] = topic_id


def _since(one: int | None, more: int | None) -> tuple[int, int]:
    return NEVER if one is None else one, NEVER if more is None else more
