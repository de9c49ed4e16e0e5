"""Rows of latencies whose waits other connections prove: held briefly, then completed with the proven wait.

A row is held until every call that may prove it has ended: one second of the capture's time, or MOST_EVENTS
calls. That bounds the memory, and rows are the same in one batch, in many, in buckets and live.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.tables.arrays import Bits, Numbers, numbers, valid_rows, whole_numbers
from kwsniff.tables.compute import filter_rows
from kwsniff.tables.rows import pick
from kwsniff.timelines.decoded_messages import PLACE
from kwsniff.timelines.metadata.leaders import Copies, Leaders
from kwsniff.timelines.metadata.topic_names import News
from kwsniff.timelines.waits import evidence, proofs
from kwsniff.timelines.waits.evidence import Clock, Evidence, Marks, Place, Places, concat_marks
from kwsniff.timelines.waits.group_waits import Asked, Meetings, Moment, Party
from kwsniff.timelines.waits.mark_lines import WaitingCalls
from kwsniff.timelines.waits.pending_rows import FETCHED, PRODUCED, RENDEZVOUS, roles_of
from kwsniff.timelines.waits.proofs import Own, Proof
from kwsniff.timelines.waits.settled_rows import (
    WAITS,
    Found,
    deserialize_rows,
    held_calls,
    held_ends,
    serialize_rows,
    with_moments,
)
from kwsniff.timelines.waits.verdicts import Verdicts

_WORDS: Final = {
    PRODUCED: WAITS.index("replicas"),
    FETCHED: WAITS.index("data"),
    RENDEZVOUS: WAITS.index("group"),
}
_FAR: Final = 2
"""Number of windows for which evidence stays: a row may be held for one, and look one back."""
_OF_MEMBERS: Final = (
    PLACE, "request_time", "response_end_time",
    "api_key", "group_id", "generation", "call_id", "member_id", "group_instance_id", "client_id",
)  # fmt: skip
_NOT_SAID: Final = 3
_ROW: Final = "row"
_OWN: Final = (*evidence.PLACED, "base", "reached")


class Waiting:
    """Held rows of one batch, and the subjects of their calls."""

    def __init__(
        self, rows: pa.RecordBatch, own: pa.RecordBatch, parties: dict[int, Party], *, wanted: bool = True
    ) -> None:
        self.wanted = wanted
        self.rows = rows
        self.own = own
        """Their partitions: number of the row, and _OWN."""
        self.parties = parties
        """Row -> the member, and its rendezvous."""
        self.ends, self.numbers = (whole_numbers(rows[name], null=0) for name in ("end", "number"))
        self.begin = 0
        """Those before it are settled."""

    def ready(self, time: int, number: int) -> int:
        """The rows before this one can get no more proofs."""
        waits = (self.ends[self.begin :] + evidence.WINDOW_US >= time) & (
            self.numbers[self.begin :] + evidence.MOST_EVENTS >= number
        )
        return self.begin + (int(np.argmax(waits)) if waits.any() else len(waits))

    def state(self) -> tuple[Any, ...]:
        """The input of `Waiting`, and `begin`."""
        return serialize_rows(self.rows), serialize_rows(self.own), self.parties, self.begin


class ProvenWaits:
    """Takes held rows and evidence; `rows`: completed rows."""

    def __init__(self, catalog: Catalog, leaders: Leaders | Copies) -> None:
        self._leaders = leaders
        self.rows: list[pa.RecordBatch] = []
        self._roles = roles_of(catalog)
        self._clock = Clock()
        self._names: dict[str, str] = {}
        self._held: list[Waiting] = []
        self._evidence: list[Evidence] = []
        self._meetings = Meetings()
        self._verdicts = Verdicts()

    def add(
        self,
        calls: pa.RecordBatch,
        offsets: pa.RecordBatch,
        timed: pa.RecordBatch | None,
        news: Sequence[News],
        *,
        wanted: bool = True,
    ) -> None:
        """Calls of groups, offsets and held rows of the same calls, in the order in which these ended. Rows
        that are not `wanted` serve as evidence for others, and are left out of `rows`."""
        part = evidence.proving(offsets, self._roles)
        members = self._members(calls)
        told, asked, held = self._clock.moments(_find_ends(part), _find_ends(members), held_ends(timed))
        if part.num_rows:
            self._evidence.append(
                Evidence.from_rows(part, evidence.name_topics(part, self._names, news), told)
            )
        parties = self._meet(members, asked) if members.num_rows else {}
        if timed is not None and timed.num_rows:
            own, of_rows = self._own(timed, offsets, news), _by_row(timed, parties)
            self._held.append(Waiting(with_moments(timed, held), own, of_rows, wanted=wanted))
        for each in news:
            self._names[each.topic_id] = each.name
        self._settle()

    def events(
        self, calls: pa.RecordBatch, offsets: pa.RecordBatch, timed: pa.RecordBatch | None
    ) -> list[tuple[Numbers, Numbers]]:
        """The positions and ends that `add` would number."""
        found = evidence.proving(offsets, self._roles), self._members(calls)
        return [*map(_find_ends, found), held_ends(timed)]

    @property
    def is_settled(self) -> bool:
        """Whether no wanted row is held."""
        return not any(each.wanted for each in self._held)

    def finish(self) -> None:
        """Ends the input."""
        self._settle(everything=True)

    def forget(self) -> None:
        """Completes held rows with the current evidence, and drops the evidence."""
        self._settle(everything=True)
        self._evidence = []
        self._meetings = Meetings()
        self._verdicts = Verdicts()

    def drain(self, at_least: int) -> Iterator[pa.RecordBatch]:
        """The completed rows, if there are enough."""
        if sum(batch.num_rows for batch in self.rows) >= at_least:
            yield from self.rows
            self.rows.clear()

    def state(self) -> tuple[Any, ...]:
        """The state for `resume`, without completed rows."""
        return (
            (self._clock.number, self._clock.time),
            dict(self._names),
            [each.state() for each in self._held],
            [serialize_rows(each.rows) for each in self._evidence],
            self._meetings.state(),
            self._verdicts.state(),
        )

    def resume(self, state: tuple[Any, ...]) -> None:
        """Continues from a saved state."""
        clock, self._names, held, told, meetings, verdicts = state
        self._clock.number, self._clock.time = clock
        self._held = []
        for rows, own, parties, begin in held:
            self._held.append(Waiting(deserialize_rows(rows), deserialize_rows(own), dict(parties)))
            self._held[-1].begin = begin
        self._evidence = [Evidence(deserialize_rows(each)) for each in told]
        self._meetings.resume(meetings)
        self._verdicts.resume(verdicts)

    def _members(self, calls: pa.RecordBatch) -> pa.RecordBatch:
        """Calls of members with a rendezvous and a response."""
        chosen = self._roles[whole_numbers(calls["api_key"], null=0)] == RENDEZVOUS
        if chosen.any():
            chosen &= whole_numbers(calls["error_code"], null=-1) == 0
            for name in ("request_time", "response_end_time", "group_id", "generation"):
                chosen &= valid_rows(calls[name])
        return filter_rows(calls.select(_OF_MEMBERS), chosen)

    def _meet(self, members: pa.RecordBatch, moments: tuple[Numbers, Numbers, Numbers]) -> dict[int, Party]:
        """Call id -> member and rendezvous."""
        parties = {}
        times = whole_numbers(members["request_time"], null=0).tolist()
        # Shortened texts: facts stay for a while, and a name may be 32 kB long.
        said = pick(members, np.ones(members.num_rows, np.bool_), _OF_MEMBERS[_NOT_SAID:])
        ends = (each.tolist() for each in moments)
        for (key, group, generation, call_id, member, instance, client), time, *moment in zip(
            said, times, *ends, strict=True
        ):
            meeting, name = (group, key, generation), instance or member or client or ""
            self._meetings.add(meeting, Asked(name, time, Moment(*moment)))
            parties[call_id] = meeting, name
        return parties

    def _own(self, timed: pa.RecordBatch, offsets: pa.RecordBatch, news: Sequence[News]) -> pa.RecordBatch:
        """The partitions of the held calls."""
        ids = whole_numbers(timed["call_id"], null=0)
        order = np.argsort(ids, kind="stable")
        wanted = whole_numbers(offsets["call_id"], null=-1)
        rows = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
        chosen = (ids[rows] == wanted) & (whole_numbers(offsets["base"], null=-1) >= 0)
        part, rows = filter_rows(offsets, chosen), rows[chosen].astype(np.int64)
        columns = {
            _ROW: numbers(pa.int64(), rows),
            **{name: part[name] for name in _OWN},
            "topic": evidence.name_topics(part, self._names, news),
        }
        return pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])

    def _settle(self, *, everything: bool = False) -> None:
        while self._held:
            waiting = self._held[0]
            all_rows = waiting.rows.num_rows
            ready = all_rows if everything else waiting.ready(self._clock.time, self._clock.number)
            if ready > waiting.begin:
                judged = self._judge(waiting, ready)
                self.rows += [judged] if waiting.wanted else []
                waiting.begin = ready
            if ready < all_rows:
                break
            del self._held[0]
        self._forget()

    def _forget(self) -> None:
        """Drops evidence that no row can use any more."""
        least = self._clock.time - _FAR * evidence.WINDOW_US
        last = self._clock.number - _FAR * evidence.MOST_EVENTS
        while self._evidence and (self._evidence[0].end < least or self._evidence[0].number < last):
            del self._evidence[0]
        self._meetings.forget(least, last)
        self._verdicts.forget(least, last)

    def _judge(self, waiting: Waiting, ready: int) -> pa.RecordBatch:
        """The rows of latencies before `ready` that were not completed, with their proofs."""
        rows = waiting.rows.slice(waiting.begin, ready - waiting.begin)
        held, found = held_calls(rows), Found(rows)
        real = ~np.array(rows["is_line"].to_pylist(), np.bool_)
        roles = np.where(real, self._roles[whole_numbers(rows["api_key"], null=0)], 0)
        ids = whole_numbers(rows["call_id"], null=0)
        for role, proof in self._proofs(waiting, ready, held, roles):
            known = np.flatnonzero(proof.known & (roles == role))
            waited = (proof.until - proof.own)[known]
            words = found.prove(known, waited, _WORDS[role])
            call = held.take(known)
            said = np.where(2 * waited >= call.end - call.turn, words, WAITS.index("none"))
            self._verdicts.add(ids[known], said, call.end, call.number)
        if (found.behind >= 0).any():
            found.stand_behind(*self._verdicts.find_waits(found.behind, held.end, held.number))
        return found.rebuilt()

    def _proofs(
        self, waiting: Waiting, ready: int, held: WaitingCalls, roles: Numbers
    ) -> Iterator[tuple[int, Proof]]:
        """Proofs for the calls of each role."""
        if (roles == RENDEZVOUS).any():
            yield RENDEZVOUS, _find_group_ends(self._meetings, waiting, held, roles)
        own, places = _own_of(waiting, ready)
        if not len(own.row):
            return
        marks = self._marks(places, held)
        asks = marks.asked >= 0
        of_role = roles[own.row]
        produced, fetched = np.flatnonzero(of_role == PRODUCED), np.flatnonzero(of_role == FETCHED)
        if len(fetched):
            yield FETCHED, proofs.brought(held, own.take(fetched), marks.take(np.flatnonzero(~asks)))
        if len(produced):
            part = own.take(produced)
            proof = proofs.find_replication_ends(held, part, marks.take(np.flatnonzero(asks)))
            yield PRODUCED, _without_copies(proof, held, part, self._find_unreplicated(places, held, part))

    def _marks(self, places: Sequence[Place], held: WaitingCalls) -> Marks:
        """Facts on partitions that may prove something on these calls."""
        wanted = {place: number for number, place in enumerate(places)}
        least = int(held.clock.min()) - evidence.WINDOW_US
        last = int(held.number.min()) - evidence.MOST_EVENTS
        near = (each for each in self._evidence if each.end >= least and each.number >= last)
        return concat_marks([each.marks(wanted) for each in near])

    def _find_unreplicated(self, places: Sequence[Place], held: WaitingCalls, own: Own) -> Bits:
        """Mask of the partitions without followers, as known by then."""
        since = [self._leaders.find_copies(topic, partition) for topic, partition, _, _ in places]
        one, more = (np.array(each, np.int64)[own.place] for each in zip(*since, strict=True))
        end = held.end[own.row]
        alone: Bits = (one <= end) & (more > end)
        return alone


def _own_of(waiting: Waiting, ready: int) -> tuple[Own, Sequence[Place]]:
    """Partitions of rows from `begin` to `ready`, which are counted from 0, with the meaning of their
    numbers."""
    rows = whole_numbers(waiting.own[_ROW], null=0)
    part = waiting.own
    if waiting.begin or ready < waiting.rows.num_rows:
        chosen = (rows >= waiting.begin) & (rows < ready)
        part, rows = filter_rows(part, chosen), rows[chosen]
    found = Places(part)
    numbered = found.number({place: number for number, place in enumerate(found.different)})
    base, reached = (whole_numbers(part[name], null=-1) for name in ("base", "reached"))
    return Own(rows - waiting.begin, numbered, base, reached), found.different


def _find_group_ends(meetings: Meetings, waiting: Waiting, held: WaitingCalls, roles: Numbers) -> Proof:
    """Members: until the request of the last other member."""
    known = np.zeros(len(roles), np.bool_)
    for row in np.flatnonzero(roles == RENDEZVOUS).tolist():
        if party := waiting.parties.pop(waiting.begin + row, None):
            end, number, clock, turn, done, network = (column[row].item() for column in held)
            known[row] = meetings.is_ended(party, Moment(end, number, clock), turn, done, network)
    return Proof(held.turn + proofs.LOCAL_US, held.done, known)


def _without_copies(proof: Proof, held: WaitingCalls, own: Own, alone: Bits) -> Proof:
    """Produce to partitions that all have one replica: without followers there is no wait."""
    nobody = np.zeros(len(held.end), np.bool_)
    nobody[own.row] = True
    nobody[own.row[~alone]] = False
    return Proof(np.where(nobody, 0.0, proof.own), np.where(nobody, 0.0, proof.until), proof.known | nobody)


def _by_row(timed: pa.RecordBatch, parties: dict[int, Party]) -> dict[int, Party]:
    if not parties:
        return {}
    ids = whole_numbers(timed["call_id"], null=0).tolist()
    return {row: parties[call_id] for row, call_id in enumerate(ids) if call_id in parties}


def _find_ends(rows: pa.RecordBatch) -> tuple[Numbers, Numbers]:
    return tuple(whole_numbers(rows[name], null=0) for name in (PLACE, "response_end_time"))  # type: ignore[return-value]
