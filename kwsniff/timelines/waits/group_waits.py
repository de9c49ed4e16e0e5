"""Members of groups that wait for each other: the request of the last one ends the wait of the others."""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from kwsniff.timelines.waits import evidence
from kwsniff.timelines.waits.evidence import WINDOW_US
from kwsniff.timelines.waits.proofs import AFTER_US

MOST_AT_ONCE: Final = 32
"""Maximum members with requests at a suitable time that are checked."""

Meeting = tuple[str, int, int]
"""Group, API and generation."""
Party = tuple[Meeting, str]


class Moment(NamedTuple):
    """The time of a fact: end of its call (microseconds), number, clock; see `Clock`."""

    end: int
    number: int
    clock: int

    def proves(self, other: "Moment") -> bool:
        """Whether one may prove the other, in either order."""
        return (
            abs(self.end - other.end) <= WINDOW_US
            and abs(self.number - other.number) <= evidence.MOST_EVENTS
            and self.clock <= other.end + WINDOW_US
            and other.clock <= self.end + WINDOW_US
        )


class Asked(NamedTuple):
    """The request of a member, with its time and that of the response."""

    member: str
    time: int
    moment: Moment


_TIME: Final = attrgetter("time")


class _Told:
    """The requests of one rendezvous, in order and by time."""

    def __init__(self, asked: Sequence[Asked] = ()) -> None:
        self.asked = deque(asked)
        self._sorted: list[Asked] | None = None

    def add(self, asked: Asked) -> None:
        self.asked.append(asked)
        self._sorted = None

    def by_time(self) -> list[Asked]:
        if self._sorted is None:
            self._sorted = sorted(self.asked, key=_TIME)
        return self._sorted

    def forget(self, least: int, last: int) -> None:
        while self.asked and (self.asked[0].moment.end < least or self.asked[0].moment.number < last):
            self.asked.popleft()
            self._sorted = None


class Meetings:
    """Recent requests by rendezvous."""

    def __init__(self) -> None:
        self._told: dict[Meeting, _Told] = {}

    def add(self, meeting: Meeting, asked: Asked) -> None:
        """Adds the request of a member, in the order of responses."""
        self._told.setdefault(meeting, _Told()).add(asked)

    def forget(self, least: int, last: int) -> None:
        """Drops facts that ended before that time or have a lower number: they can no longer prove
        anything."""
        for meeting in [*self._told]:
            told = self._told[meeting]
            told.forget(least, last)
            if not told.asked:
                del self._told[meeting]

    def is_ended(self, party: Party, moment: Moment, turn: float, done: float, network: float) -> bool:
        """Whether another member's request arrived while this one waited, right before its response."""
        meeting, member = party
        told = self._told.get(meeting)
        others = told.by_time() if told else []
        stop = bisect_right(others, done, key=lambda each: each.time + network)
        for other in reversed(others[max(stop - MOST_AT_ONCE, 0) : stop]):
            arrived = other.time + network
            if arrived <= turn or done - arrived > AFTER_US:
                return False
            if other.member != member and other.moment.proves(moment):
                return True
        return False

    def state(self) -> list[tuple[Any, ...]]:
        """The state for `resume`."""
        return [
            (meeting, [(each.member, each.time, tuple(each.moment)) for each in told.asked])
            for meeting, told in self._told.items()
        ]

    def resume(self, state: list[tuple[Any, ...]]) -> None:
        """Continues from a saved state."""
        self._told = {
            tuple(meeting): _Told([Asked(member, time, Moment(*at)) for member, time, at in asked])
            for meeting, asked in state
        }
