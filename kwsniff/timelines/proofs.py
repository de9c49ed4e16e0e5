"""Whether a call waited for others, by what these others say.

    turn .. own .. waits ................ proof . done     times at the capture, as core/rows/timing.pyx has
            |                             |                them: the way to the broker counts before
            the followers were answered   the last follower asks for more,
                                          a Produce brings the record,
                                          the last member asks

What the broker does with the proof itself is not the call's own work: its log counts it as waiting, too.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from kwsniff.timelines.evidence import Mark, Moment, Place
from kwsniff.timelines.held_rows import LOCAL_NS

AFTER_US: Final = 50_000.0
"""A broker that answers so long after the proof was busy with something else, or waited for somebody else."""
_LOCAL_US: Final = LOCAL_NS / 1000

Marks = Callable[[Place, bool], Iterable[Mark]]
Own = Sequence[tuple[Place, int, int]]
"""Partitions of a call, the first record that it brought, and the number behind the last."""


class Held(NamedTuple):
    """A call that may have waited; microseconds."""

    call_id: int
    moment: Moment
    turn: float
    done: float
    network: float
    is_replica: bool
    is_line: bool
    """It is held for the call in front of it alone."""


class Asked(NamedTuple):
    """A member that asked, when, and when the answer was there."""

    member: str
    time: int
    moment: Moment


class Proof(NamedTuple):
    """What the broker did for the call itself before it waited, and when the wait was over."""

    own: float
    until: float

    @property
    def waited_us(self) -> float:
        """How long it waited; nothing above 0: it did not."""
        return self.until - self.own


NO_WAIT: Final = Proof(0.0, 0.0)
"""There was nobody to wait for."""


def followed(held: Held, own: Own, marks: Marks) -> Proof | None:
    """Of a Produce: until the last of the followers, as far as they were seen, had all records."""
    latest, written = 0.0, held.turn + _LOCAL_US
    for place, base, reached in own:
        first: dict[int, float] = {}
        for mark in marks(place, True):
            arrived = mark.time + held.network
            if not mark.moment.proves(held.moment):
                continue
            if mark.asked >= reached and arrived <= held.done:
                first[mark.connection_id] = min(arrived, first.get(mark.connection_id, arrived))
            if mark.base == base and arrived <= held.turn:
                # It had waited for these very records: they were written when it was answered.
                written = max(written, min(float(mark.moment.end), held.done))
        latest = max(latest, *first.values(), 0.0)
    if latest <= written:
        return None
    return Proof(written, _until(held, latest))


def brought(held: Held, own: Own, marks: Marks) -> Proof | None:
    """Of a fetch: until the Produce of the first record that it brought was there.

    A Produce that had come before may have stood in line: that it had been answered says that it had not.
    """
    earliest: float | None = None
    for place, base, _ in own:
        when = None
        for mark in marks(place, False):
            arrived = mark.time + held.network
            if mark.base <= base < mark.reached and arrived <= held.done and mark.moment.proves(held.moment):
                when = arrived if arrived > held.turn else float(mark.moment.end)
                if arrived <= held.turn < when:
                    when = None
        if when is None:
            return None
        earliest = when if earliest is None else min(earliest, when)
    if earliest is None:
        return None
    return Proof(held.turn + _LOCAL_US, _until(held, earliest) if earliest > held.turn else held.turn)


def gathered(held: Held, member: str, others: Iterable[Asked]) -> Proof | None:
    """Of a member: until the last of the others had asked."""
    latest = 0.0
    for other in others:
        arrived = other.time + held.network
        if other.member != member and held.turn < arrived <= held.done and other.moment.proves(held.moment):
            latest = max(arrived, latest)
    if latest == 0.0 or held.done - latest > AFTER_US:
        return None
    return Proof(held.turn + _LOCAL_US, held.done)


def _until(held: Held, proof: float) -> float:
    return held.done if held.done - proof <= AFTER_US else proof
