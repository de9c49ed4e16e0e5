"""One rebalance of a group, a row of the groups table: members, times, reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kwsniff.timelines.call_ids import note_call
from kwsniff.timelines.memory_budget import RECORD, SHORT

MOST_MEMBERS = 1_000
"""Maximum members of a group with stored names; more are only counted."""

LONGEST_NAME = 256
"""Maximum characters kept of a member's or group's name."""
LONGEST_REASON = 1_024

SHORTEST_SESSION_US: Final[Mapping[str, int]] = {
    "classic": 6_000_000,  # group.min.session.timeout.ms; only the broker knows session_timeout_ms
    "consumer": 45_000_000,  # group.consumer.min.session.timeout.ms, and so on
    "share": 45_000_000,
    "streams": 45_000_000,
}

Row = dict[str, Any]


@dataclass(slots=True)
class Call:
    """One call of a group; times in microseconds.

    `role`: join, sync, heartbeat, leave, or the kind of a newer group.
    """

    role: str
    group_id: str
    member: str
    generation: int | None
    protocol_type: str | None
    begin: int | None
    end: int | None
    error_code: int | None
    capture: str
    call_id: int = 0
    reason_text: str | None = None
    session_timeout: int | None = None
    rebalance_timeout: int | None = None


@dataclass(slots=True)
class Rebalance:
    """One row in progress. `members`: names and join times; `known`: earlier members and their last
    sign of life; `session`: their session timeouts in milliseconds; `founded`: whether there were none;
    `causes`: possible triggers, as (time, reason, member)."""

    capture: str
    before: int | None
    generation: int | None = None
    begin: int | None = None
    end: int | None = None
    protocol_type: str | None = None
    members: dict[str, int | None] = field(default_factory=dict)
    unnamed: int = 0
    calls: int = 0
    errors: int = 0
    known: dict[str, int | None] = field(default_factory=dict)
    founded: bool = False
    session: int | None = None
    causes: list[tuple[int, str, str]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    session_timeout: int | None = None
    rebalance_timeout: int | None = None
    call_ids: list[int] = field(default_factory=list)

    def count(self, call: Call) -> None:
        """One more call."""
        self.calls += 1
        self.errors += bool(call.error_code)
        self.protocol_type = self.protocol_type or call.protocol_type
        note_call(self.call_ids, call.call_id)
        self.say(call)
        if call.session_timeout is not None:
            self.session_timeout = max(self.session_timeout or 0, call.session_timeout)
        if call.rebalance_timeout is not None and call.rebalance_timeout >= 0:
            self.rebalance_timeout = max(self.rebalance_timeout or 0, call.rebalance_timeout)

    def say(self, call: Call) -> None:
        """The reason text of a member; the first one of each counts."""
        if call.reason_text and len(self.texts) < MOST_MEMBERS:
            self.texts.setdefault(call.member, call.reason_text[:LONGEST_REASON])

    def begin_by(self, time: int | None) -> None:
        """Sets the begin to this time, or keeps an earlier one."""
        if time is not None:
            self.begin = time if self.begin is None else min(self.begin, time)

    def end_at(self, time: int | None) -> None:
        """Sets the end to this time, or keeps a later one."""
        if time is not None:
            self.end = time if self.end is None else max(self.end, time)

    def join(self, member: str, time: int | None) -> None:
        """Adds a member."""
        if member not in self.members and len(self.members) >= MOST_MEMBERS:
            self.unnamed += 1
            return
        self.members.setdefault(member, time)

    def cause(self, time: int | None, reason: str, member: str) -> None:
        """Adds a possible trigger."""
        if time is not None and len(self.causes) < MOST_MEMBERS:
            self.causes.append((time, reason, member))

    def size(self) -> int:
        """Approximate bytes that it takes."""
        names = len(self.members) + len(self.known) + len(self.causes)
        return 2 * RECORD + 2 * SHORT * names + 2 * LONGEST_REASON * len(self.texts)

    def row(self, group_id: str, kind: str) -> Row:
        """The row of the table; times in nanoseconds."""
        reason, who = self._reason(kind)
        joined = sorted((time, name) for name, time in self.members.items() if time is not None)
        first, last = (joined[0], joined[-1]) if joined else ((None, None), (None, None))
        ended = self.end if self.generation is not None else None
        took = None if ended is None or self.begin is None else ended - self.begin
        return {
            "capture": self.capture,
            "group_id": group_id,
            "kind": kind,
            "protocol_type": self.protocol_type,
            "generation_before": self.before,
            "generation": self.generation,
            "reason": reason,
            "reason_member": who,
            "reason_text": self.texts.get(who) if who else next(iter(self.texts.values()), None),
            "members": [*(name for _, name in joined), *(n for n, t in self.members.items() if t is None)],
            "member_count": len(self.members) + self.unnamed,
            "first_member": first[1],
            "first_join_time": to_nanoseconds(first[0]),
            "last_member": last[1],
            "last_join_time": to_nanoseconds(last[0]),
            "begin_time": to_nanoseconds(self.begin),
            "end_time": to_nanoseconds(ended),
            "duration_ns": None if took is None else max(took, 0) * 1000,
            "calls": self.calls,
            "error_count": self.errors,
            "session_timeout_ms": self.session_timeout,
            "rebalance_timeout_ms": self.rebalance_timeout,
            "call_ids": self.call_ids,
        }

    def _reason(self, kind: str) -> tuple[str, str | None]:
        causes = list(self.causes)
        for name, last in self.known.items():
            if name in self.members or last is None or self.begin is None:
                continue
            if self.session is not None and self.begin - last >= self.session * 1000:
                causes.append((last, "session_expired", name))
            elif self.session is None and self.begin - last >= SHORTEST_SESSION_US[kind]:
                causes.append((last, "heartbeat_gap", name))
        if self.known or self.founded or (kind == "classic" and self.generation == 1):
            new = [(time, name) for name, time in self.members.items() if name not in self.known and time]
            causes += [(time, "member_joined", name) for time, name in new]
        if causes:
            _, reason, who = min(causes)
            return reason, who
        if self.known and self.members:
            return "metadata_change", None
        return "unknown", None


def to_nanoseconds(time: int | None) -> int | None:
    """Of microseconds."""
    return None if time is None else time * 1000
