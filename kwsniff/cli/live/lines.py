"""The output of ``kwsniff live`` without a terminal: JSON per call, or a line per interval."""

import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Self

from kwsniff.live.batches import Batches
from kwsniff.live.connections import not_opened, not_opened_words
from kwsniff.live.findings import CurrentFinding
from kwsniff.live.lines import call_lines
from kwsniff.live.overdue_responses import OverdueResponses
from kwsniff.live.rebalances import UnderWay
from kwsniff.live.session import Progress, Session
from kwsniff.live.window import Window, rank_figures
from kwsniff.texts import JSON_VERSION, clean, in_time, json_text, plural
from kwsniff.zones import UTC_ZONE, Zone

_WHOLE = 1e9  # a window without expiry: each line has its own


class JsonLines:
    """One JSON object per call, printed immediately."""

    def __init__(self, interval: float) -> None:
        self.interval = interval

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def pause(self, session: Session, seconds: float) -> bool:
        """Waits; whether the capture has ended."""
        return session.wait(seconds)

    def show(self, batches: Batches, progress: Progress, *, last: bool) -> None:
        """Prints the calls among the rows."""
        if "api_calls" in batches:
            sys.stdout.write("".join(f"{line}\n" for line in call_lines(batches["api_calls"])))
            sys.stdout.flush()


class IntervalLines:
    """A line of figures per interval, and one immediately when a broker's responses become overdue."""

    def __init__(
        self, window: Window, interval: float, line: "Callable[[Window, Progress], str] | None" = None
    ) -> None:
        self.interval = interval
        self._all = window
        self._line = line or interval_line
        self._window = Window(_WHOLE, window.now, window.begun)
        self._window.clock = window.clock
        self._due = time.monotonic() + interval
        self._told: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def pause(self, session: Session, seconds: float) -> bool:
        """Waits; whether the capture has ended."""
        return session.wait(min(seconds, max(self._due - time.monotonic(), 0.001)))

    def _empty(self) -> Window:
        window = Window(_WHOLE, self._all.now)
        window.begun, window.clock = self._all.begun, self._all.clock
        return window

    def show(self, batches: Batches, progress: Progress, *, last: bool) -> None:
        """Prints a line when it is due, and at the end."""
        self._window.add(batches)
        self._window.held, self._window.overdue = self._all.held, self._all.overdue
        self._window.under_way, self._window.connections = self._all.under_way, self._all.connections
        late = {*self._window.overdue.by_dimension["brokers"]}
        due = last or time.monotonic() >= self._due
        if not due and late <= self._told:
            return
        if due:
            self._due = max(self._due + self.interval, time.monotonic())
        self._told = late if due else self._told | late
        window, self._window = self._window, self._empty()
        print(self._line(window, progress), flush=True)


def interval_line(window: Window, progress: Progress, zone: Zone = UTC_ZONE) -> str:
    """Rates and percentiles of the window, calls in flight, the slowest API, dropped packets."""
    apis = window.figures("apis")
    brokers = window.figures("brokers")
    calls = sum(found.calls for found in brokers.values())
    errors = sum(found.errors for found in brokers.values())
    parts = [
        zone.moment(int(window.clock() * 1e9), 0),
        f"calls/s {calls / window.span:.1f}",
        f"errors/s {errors / window.span:.1f}",
    ]
    slowest = next(rank_figures(apis, "p95"), None)
    if slowest and slowest[2][1] is not None:
        name, _, (_, p95, _) = slowest
        parts.append(f"slowest {name} p95 {in_time(p95)}")
    if found := window.error_counts().most_common(1):
        (error, api, about), number = found[0]
        parts.append(f"{number} {error} {api} {clean(about)}".rstrip())
    if words := overdue_words(window.overdue):
        parts.append(f"LATE {words}")
    parts += [f"REBALANCING {in_words(each, window.overdue.now)}" for each in window.under_way[:1]]
    parts += [in_short(each, zone) for each in pressing(window.held)[:1]]
    if words := not_opened_words(window.connections):
        parts.append(f"TLS {words}")
    parts.append(f"waiting {progress.waiting_calls}")
    if progress.dropped_by_kernel is not None:
        parts.append(f"dropped {progress.dropped_by_kernel}")
    return "  ".join(parts)


def overdue_words(overdue: OverdueResponses) -> str:
    """The longest overdue responses: number, age, broker and clients; "" if none is overdue."""
    if not overdue.total.calls:
        return ""
    parts = []
    for dimension, most in (("brokers", 2), ("clients", 2), ("topics", 1), ("apis", 2)):
        worst = overdue.worst(dimension)
        words = [clean(name) for name, _ in worst[:most]]
        words += [f"{len(worst) - most} more"] if len(worst) > most else []
        if words:
            parts.append(f"{'to ' if dimension == 'clients' else ''}{', '.join(words)}")
    return (
        f"{plural(overdue.total.calls, 'response')}, the oldest for {in_time(overdue.total.oldest_ns)}: "
        f"{'; '.join(parts)}"
    )


def in_words(each: UnderWay, now: int) -> str:
    """A rebalance in progress: its group, its duration, and the members it waits for."""
    lasts = in_time(max(now - each.since, 0))
    missing = [clean(name) for name in each.missing]
    if missing:
        names = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        tail = f"waits for {names}"
    else:
        tail = "waits for further members" if each.phase == "join" else "waits for its coordinator"
    return f"{clean(each.group_id)} for {lasts}, {tail} ({plural(len(each.waiting), 'member')} there)"


def pressing(held: Sequence[CurrentFinding]) -> list[CurrentFinding]:
    """Problems and warnings without a known cause among the findings."""
    return [each for each in held if each.finding.severity != "info" and each.finding.explained_by is None]


def in_short(held: CurrentFinding, zone: Zone = UTC_ZONE) -> str:
    """The finding, its subject, and its start."""
    found = held.finding
    return (
        f"{found.severity.upper()} {found.finding} {clean(found.subject)} since {zone.clock(held.since, 0)}"
    )


def interval_json(window: Window, progress: Progress) -> str:
    """The same as one JSON object, with errors by client and by broker; times in seconds or nanoseconds."""
    brokers = window.figures("brokers")
    return json_text(
        {
            "version": JSON_VERSION,
            "time": f"{datetime.fromtimestamp(window.clock(), UTC):%Y-%m-%dT%H:%M:%S.%f}Z",
            "seconds": round(window.span, 3),
            "calls": sum(found.calls for found in brokers.values()),
            "calls_with_errors": sum(found.errors for found in brokers.values()),
            "unanswered": window.unanswered,
            "waiting": progress.waiting_calls,
            "oldest_wait_ns": progress.oldest_wait_ns,
            **window.overdue.as_dict(),
            "rebalancing": [each.as_dict(window.overdue.now) for each in window.under_way],
            "dropped_by_kernel": progress.dropped_by_kernel,
            **window.failures().as_dict(),
            "findings": [each.as_dict() for each in window.held],
            "tls_not_opened": not_opened(window.connections),
        },
    )
