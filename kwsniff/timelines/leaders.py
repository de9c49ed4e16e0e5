"""Leaders of partitions as Metadata responses name them, and when others were named."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kwsniff.timelines.details import Said, listed
from kwsniff.timelines.topic_names import topic_id_of

MOST_LEADERS = 200_000
"""Rows; what comes after is left out."""
LONGEST_NAME = 256

Row = dict[str, Any]
Copies = tuple[int | None, int | None]


class Teller(NamedTuple):
    """A Metadata response: its call, who asked, and who answered when (microseconds)."""

    call_id: int
    capture: str
    client_id: str | None
    address: str
    port: int
    time: int | None


class Leaders:
    """Follows Metadata responses; `rows` are there when no more calls come."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._known: dict[tuple[Any, ...], Row] = {}
        self._latest: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        """Topic and partition -> the key that was told last, where responses have no epochs."""
        self._ids: dict[str, str] = {}
        """Topic -> its id, which older versions do not say."""
        self._copied: dict[tuple[str, int], tuple[int | None, int | None]] = {}
        """Topic and partition -> since when (microseconds) it was said to have one copy, or more."""
        self.news = 0
        """Grows with whatever may change what a response means."""

    def take(self, said: Said, teller: Teller) -> list[tuple[Any, ...]]:
        """One response, in the order in which calls ended; gives the keys of the rows that it tells of."""
        keys = []
        for place, leader, epoch, copies in self._told(said):
            self._note_copies(place, copies[0], teller.time)
            if key := self._see(place, leader, epoch, teller):
                _count_copies(self._known[key], *copies)
                keys.append(key)
        return keys

    def touch(self, keys: Iterable[tuple[Any, ...]], times: int, call_id: int, time: int | None) -> None:
        """The rows of these keys were told of so many times more, last by that call."""
        for key in keys:
            touch(self._known[key], times, call_id, time)

    def has_one_copy(self, topic: str, partition: int, until: int) -> bool:
        """Whether nobody follows its leader, by all that was said until then (microseconds)."""
        one, more = self._copied.get((topic, partition), (None, None))
        return one is not None and one <= until and (more is None or more > until)

    def state(self) -> tuple[Any, ...]:
        """What is followed, for `resume`; `rows` are not part of it."""
        return self._known, self._latest, self._ids, self._copied

    def resume(self, state: tuple[Any, ...]) -> None:
        """Goes on where another stood."""
        self._known, self._latest, self._ids, self._copied = state

    def finish(self) -> None:
        """No more calls come: what is known becomes rows."""
        self.rows += self._known.values()
        for followed in (self._known, self._latest, self._ids):
            followed.clear()

    def _see(
        self, place: tuple[Any, ...], leader: int, epoch: int | None, teller: Teller
    ) -> tuple[Any, ...] | None:
        """The key of a leader's row; None where there is no room for one."""
        key = (*place, leader, epoch, 0)
        before = self._latest.get(place) if epoch is None else None
        if before is not None:
            # Without epochs, one that is back has a row of its own.
            key = before if before[-3] == leader else (*key[:-1], before[-1] + 1)
        row = self._known.get(key)
        if row is None:
            if len(self._known) >= MOST_LEADERS:
                return None
            self.news += 1
            name, topic_id, partition = place
            row = self._known[key] = {
                "capture": teller.capture,
                "topic": name,
                "topic_id": topic_id,
                "partition": partition,
                "leader": leader,
                "leader_epoch": epoch,
                "replicas": None,
                "in_sync": None,
                "first_time": None if teller.time is None else teller.time * 1000,
                "calls": 0,
                "broker_address": teller.address,
                "broker_port": teller.port,
                "client_id": teller.client_id,
                "first_call_id": teller.call_id,
            }
        if epoch is None and key is not before:
            self.news += 1
            self._latest[place] = key
        touch(row, 1, teller.call_id, teller.time)
        return key

    def _note_copies(self, place: tuple[Any, ...], replicas: int | None, time: int | None) -> None:
        name, topic_id, partition = place
        which = name or f"#{topic_id}", partition
        if not replicas or time is None or (which not in self._copied and len(self._copied) >= MOST_LEADERS):
            return
        one, more = self._copied.get(which, (None, None))
        if replicas > 1:
            more = time if more is None else min(more, time)
        else:
            one = time if one is None else min(one, time)
        self._copied[which] = one, more

    def _told(self, said: Said) -> Iterator[tuple[tuple[Any, ...], int, int | None, Copies]]:
        """Topic, its id and partition; leader; epoch; copies, and those in sync."""
        for topic in listed(said, "topics"):
            name = (topic.get("name") or "")[:LONGEST_NAME] or None
            topic_id = topic_id_of(topic)
            if name and topic_id:
                self._name(name, topic_id)
            for each in listed(topic, "partitions"):
                if "leader_id" not in each:
                    continue  # the message broke off in it
                epoch = each.get("leader_epoch", -1)
                place = name, topic_id or self._ids.get(name or ""), each["partition_index"]
                copies = _length(each, "replica_nodes"), _length(each, "isr_nodes")
                yield place, each["leader_id"], None if epoch < 0 else epoch, copies

    def _name(self, name: str, topic_id: str) -> None:
        if self._ids.get(name) != topic_id and (name in self._ids or len(self._ids) < MOST_LEADERS):
            self.news += 1
            self._ids[name] = topic_id


def _length(partition: Said, name: str) -> int | None:
    found = partition.get(name)  # None where the message broke off before it
    return None if found is None else len(found)


def _count_copies(row: Row, replicas: int | None, in_sync: int | None) -> None:
    """How many there are, as told last; how few of them were in sync."""
    if replicas is not None and in_sync is not None:
        row["replicas"] = replicas
        row["in_sync"] = in_sync if row["in_sync"] is None else min(in_sync, row["in_sync"])


def touch(row: Row, times: int, call_id: int, time: int | None) -> None:
    """A row was told of again; what is settled late does not take back what was told since."""
    row["calls"] += times
    moment = None if time is None else time * 1000
    before = row.get("last_time")
    if before is None or (moment is not None and (moment, call_id) >= (before, row["last_call_id"])):
        row["last_time"], row["last_call_id"] = moment, call_id
