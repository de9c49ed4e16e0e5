"""Rows of latencies whose wait other connections prove: held back for a moment, and then said as it was.

A row is held until every call that may prove it has ended: one second of the capture's time, or MOST_EVENTS
calls. Memory is bounded by that, and rows are the same in one batch, in many, in buckets and live.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.tables.arrays import Numbers, flags, valid_rows, whole_numbers
from kwsniff.timelines import evidence, proofs
from kwsniff.timelines.details import PLACE
from kwsniff.timelines.evidence import Clock, Evidence, Mark, Moment, Place
from kwsniff.timelines.held_rows import FETCHED, PRODUCED, RENDEZVOUS, roles_of
from kwsniff.timelines.leaders import Leaders
from kwsniff.timelines.proofs import NO_WAIT, Asked, Held, Proof
from kwsniff.timelines.settled_rows import (
    Found,
    held_calls,
    held_ends,
    packed,
    unpacked,
    with_moments,
)
from kwsniff.timelines.topic_names import News

_WORDS: Final = {PRODUCED: "replicas", FETCHED: "data", RENDEZVOUS: "group"}
_FAR: Final = 2
"""Evidence stays for so many windows: a row may be held for one, and look one back."""
_OF_MEMBERS: Final = (
    PLACE, "request_time", "response_end_time",
    "api_key", "group_id", "generation", "call_id", "member_id", "group_instance_id", "client_id",
)  # fmt: skip
_NOT_SAID: Final = 3
_LINE_US: Final = 60_000_000
"""So long after a call was answered it may be what another one waited behind."""

Meeting = tuple[str, int, int]
"""Group, API and generation."""


class Verdict(NamedTuple):
    """What a call was found to have waited for, for those behind it."""

    wait: str
    moment: Moment


class ProvenWaits:
    """Takes rows that are held, and what proves them; `rows` are those that are settled."""

    def __init__(self, catalog: Catalog, leaders: Leaders) -> None:
        self._leaders = leaders
        self.rows: list[pa.RecordBatch] = []
        self._roles = roles_of(catalog)
        self._clock = Clock()
        self._names: dict[str, str] = {}
        self._held: list[pa.RecordBatch] = []
        self._evidence: list[Evidence] = []
        self._own: dict[int, list[tuple[Place, int, int]]] = {}
        self._meetings: dict[Meeting, list[Asked]] = {}
        self._parties: dict[int, tuple[Meeting, str]] = {}
        self._verdicts: dict[int, Verdict] = {}

    def add(
        self,
        calls: pa.RecordBatch,
        offsets: pa.RecordBatch,
        timed: pa.RecordBatch | None,
        news: Sequence[News],
    ) -> None:
        """Calls of groups, offsets and held rows of the same calls, in the order in which these ended."""
        part = evidence.proving(offsets, self._roles)
        members = self._members(calls)
        told, asked, held = self._clock.moments(_ended(part), _ended(members), held_ends(timed))
        if part.num_rows:
            self._evidence.append(Evidence.of(part, evidence.named(part, self._names, news), told))
        if members.num_rows:
            self._meet(members, asked)
        if timed is not None:
            self._held.append(with_moments(timed, held))
            self._note_own(timed, offsets, news)
        for each in news:
            self._names[each.topic_id] = each.name
        self._settle()

    def finish(self) -> None:
        """No more calls come."""
        self._settle(everything=True)

    def take(self, at_least: int) -> Iterator[pa.RecordBatch]:
        """The rows that are settled, if there are so many."""
        if sum(batch.num_rows for batch in self.rows) >= at_least:
            yield from self.rows
            self.rows.clear()

    def state(self) -> tuple[Any, ...]:
        """What is held, for `resume`; rows that are settled are not part of it."""
        return (
            (self._clock.number, self._clock.time),
            dict(self._names),
            [packed(batch) for batch in self._held],
            [packed(each.rows) for each in self._evidence],
            dict(self._own),
            {key: [(m, t, tuple(moment)) for m, t, moment in told] for key, told in self._meetings.items()},
            dict(self._parties),
            {key: (each.wait, tuple(each.moment)) for key, each in self._verdicts.items()},
        )

    def resume(self, state: tuple[Any, ...]) -> None:
        """Goes on where another stood."""
        clock, self._names, held, told, self._own, meetings, self._parties, verdicts = state
        self._clock.number, self._clock.time = clock
        self._held = [unpacked(each) for each in held]
        self._evidence = [Evidence(unpacked(each)) for each in told]
        self._meetings = {
            key: [Asked(m, t, Moment(*at)) for m, t, at in each] for key, each in meetings.items()
        }
        self._verdicts = {key: Verdict(wait, Moment(*at)) for key, (wait, at) in verdicts.items()}

    def _members(self, calls: pa.RecordBatch) -> pa.RecordBatch:
        """The calls of members that ask to be together, and were answered."""
        chosen = self._roles[whole_numbers(calls["api_key"], null=0)] == RENDEZVOUS
        if chosen.any():
            chosen &= whole_numbers(calls["error_code"], null=-1) == 0
            for name in ("request_time", "response_end_time", "group_id", "generation"):
                chosen &= valid_rows(calls[name])
        return calls.select(_OF_MEMBERS).filter(flags(chosen))

    def _meet(self, members: pa.RecordBatch, moments: tuple[Numbers, Numbers, Numbers]) -> None:
        times = whole_numbers(members["request_time"], null=0).tolist()
        said = (members[name].to_pylist() for name in _OF_MEMBERS[_NOT_SAID:])
        ends = (each.tolist() for each in moments)
        for key, group, generation, call_id, member, instance, client, time, *moment in zip(
            *said, times, *ends, strict=True
        ):
            meeting, name = (group, key, generation), instance or member or client or ""
            self._meetings.setdefault(meeting, []).append(Asked(name, time, Moment(*moment)))
            self._parties[call_id] = meeting, name

    def _note_own(self, timed: pa.RecordBatch, offsets: pa.RecordBatch, news: Sequence[News]) -> None:
        """Which partitions the held calls are about."""
        ids = whole_numbers(timed["call_id"], null=0)
        chosen = np.isin(whole_numbers(offsets["call_id"], null=-1), ids)
        chosen &= whole_numbers(offsets["base"], null=-1) >= 0
        if not chosen.any():
            return
        part = offsets.filter(flags(chosen))
        words = evidence.named(part, self._names, news)
        numbers_of = (whole_numbers(part[name], null=-1).tolist() for name in ("call_id", "base", "reached"))
        for place, call_id, base, reached in zip(evidence.places_of(part, words), *numbers_of, strict=True):
            self._own.setdefault(call_id, []).append((place, base, reached))

    def _settle(self, *, everything: bool = False) -> None:
        while self._held:
            batch = self._held[0]
            if not everything:
                ends, told = (whole_numbers(batch[name], null=0) for name in ("end", "number"))
                waits = (ends + evidence.WINDOW_US >= self._clock.time) & (
                    told + evidence.MOST_EVENTS >= self._clock.number
                )
                ready = int(np.argmax(waits)) if waits.any() else batch.num_rows
            else:
                ready = batch.num_rows
            if ready:
                self.rows.append(self._judged(batch.slice(0, ready)))
            if ready < batch.num_rows:
                self._held[0] = batch.slice(ready)
                break
            del self._held[0]
        self._forget()

    def _forget(self) -> None:
        """What nobody can ask for any more."""
        least = self._clock.time - _FAR * evidence.WINDOW_US
        last = self._clock.number - _FAR * evidence.MOST_EVENTS
        while self._evidence and (self._evidence[0].end < least or self._evidence[0].number < last):
            del self._evidence[0]
        for meeting, told in [*self._meetings.items()]:
            if all(each.moment.end < least or each.moment.number < last for each in told):
                del self._meetings[meeting]
        for call_id in list(self._verdicts):
            moment = self._verdicts[call_id].moment
            if moment.end >= least - _LINE_US and moment.number >= last:
                break
            del self._verdicts[call_id]
        if not self._held:
            self._own.clear()
            self._parties.clear()

    def _judged(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of latencies, with what was proven of them."""
        roles = self._roles[whole_numbers(rows["api_key"], null=0)].tolist()
        found = Found(rows)
        for row, held in enumerate(held_calls(rows)):
            if not held.is_line:
                proof = self._proof(held, roles[row])
                if proof is not None:
                    wait = found.prove(row, proof, _WORDS[roles[row]])
                    took = held.moment.end - held.turn
                    self._verdicts[held.call_id] = Verdict(
                        wait if 2 * proof.waited_us >= took else "none", held.moment
                    )
            verdict = self._verdicts.get(found.behind[row])
            if verdict and _is_near(held.moment, verdict.moment):
                found.stand_behind(row, verdict.wait)
        return found.rebuilt()

    def _proof(self, held: Held, role: int) -> Proof | None:
        meeting, member = self._parties.pop(held.call_id, (None, ""))
        own = self._own.pop(held.call_id, None)
        if role == RENDEZVOUS:
            return proofs.gathered(held, member, self._meetings.get(meeting, ())) if meeting else None
        if own is None:
            return None
        if role == FETCHED:
            return proofs.brought(held, own, self._marks)
        if all(self._leaders.has_one_copy(place[0], place[1], held.moment.end) for place, _, _ in own):
            return NO_WAIT
        return proofs.followed(held, own, self._marks)

    def _marks(self, place: Place, fetched: bool) -> Iterator[Mark]:
        return chain.from_iterable(each.marks(place, fetched=fetched) for each in self._evidence)


def _is_near(held: Moment, front: Moment) -> bool:
    return held.end - front.end <= _LINE_US and held.number - front.number <= evidence.MOST_EVENTS


def _ended(rows: pa.RecordBatch) -> tuple[Numbers, Numbers]:
    return tuple(whole_numbers(rows[name], null=0) for name in (PLACE, "response_end_time"))  # type: ignore[return-value]
