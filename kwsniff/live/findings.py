"""Findings of a running capture: the rules of kwsniff/findings over the rows of the last minute.

    run loop ─ add: rows ─▶ steps of the window ─┐
             ─ look: snapshot ────────────────────┴▶ thread: tables, bounds, rules ─▶ held: current findings

Calls in flight and open connections come from a snapshot of the capture: the rows if it ended now. The run
loop passes references and never waits; the thread works at most every few seconds, and less often the longer
it takes.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.errors import KwsniffError
from kwsniff.findings.client_settings import queries_of_settings
from kwsniff.findings.evaluate import TOTAL, evaluate
from kwsniff.findings.finding import Finding
from kwsniff.findings.finding_calls import Entries, calls_batch, list_entries, queries_for
from kwsniff.findings.harm import FoundHarm
from kwsniff.findings.prefilter.figures import COUNTED, Figures
from kwsniff.findings.rule import load_rules
from kwsniff.findings.views import READ, columns_named, open_tables
from kwsniff.limits import Limits
from kwsniff.live.batches import Batches, one_batch
from kwsniff.live.snapshot import Snapshot
from kwsniff.memory import memory_left, release_memory, resident_bytes
from kwsniff.tables.arrays import whole_numbers
from kwsniff.tables.harm import KEYS, HeldHarm, keys_of

WINDOW_S: Final = 60.0
EVERY_S: Final = 3.0
MOST_HELD: Final = 100
"""Maximum number of current findings, worst first."""
MOST_NOTED: Final = 1000
"""Maximum number of findings kept until they are written."""
MOST_NOTED_CALLS: Final = 1 << 20
"""Maximum number of their calls kept until then; 16 bytes each."""
_REST: Final = 10  # seconds of rest for a second of work
_LEAST_ROWS: Final = 20_000
"""A window of so few rows needs little memory, and yields few findings."""
_TO_LOOK: Final = 70_000_000
"""Memory for queries, in addition to copies of rows: a quarter of a million rows took 25 to 55 MB while
others
arrived."""
_MB: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class CurrentFinding:
    """A current finding. `since`: its earliest time since it became current."""

    finding: Finding
    since: datetime | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON; times as ISO 8601 in UTC."""
        found = self.finding
        return {
            "finding": found.finding,
            "severity": found.severity,
            "confidence": found.confidence,
            "blames": found.blames,
            "subject_kind": found.subject_kind,
            "subject": found.subject,
            "since": _format_time(self.since),
            "last_time": _format_time(found.last_time),
            "value": found.value,
            "expected": found.expected,
            "unit": found.unit,
            "calls": found.calls,
            "explained_by": found.explained_by,
            "text": found.text,
            "advice": found.advice,
        }


@dataclass(slots=True)
class _Step:
    time: float
    rows: int
    size: int
    """Bytes."""
    batches: Batches


@dataclass(frozen=True, slots=True)
class _Noted:
    """A finding to write, and its calls since the last time: rows of call and connection."""

    finding: Finding
    calls: Entries


_NO_CALLS: Final = np.zeros((0, 3), np.int64)


class Watch:
    """Use as a context manager. `read_snapshot`: Session.read_snapshot; `most_rows`: limit finding_rows;
    `memory`: size of the process in bytes above which fewer rows are evaluated."""

    def __init__(
        self,
        read_snapshot: Callable[[Snapshot], Batches],
        *,
        most_rows: int,
        memory: int = Limits().memory,
        seconds: float = WINDOW_S,
        every: float = EVERY_S,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.held: tuple[CurrentFinding, ...] = ()
        """Current findings, worst first."""
        self.trouble: str | None = None
        """Why the search for findings has stopped, in one line."""
        self.shortened = False
        """Whether a window had more rows than are evaluated."""
        self.lacked_memory = False
        """Whether that is because the process reached its memory limit."""
        self.connections: pa.RecordBatch | None = None
        """Connections open at the last snapshot, of any protocol."""
        self._read_snapshot = read_snapshot
        self._most_rows = most_rows
        self._memory = memory
        self._noted: dict[tuple[str, str], _Noted] = {}
        self._harm = HeldHarm(MOST_NOTED_CALLS)
        self._written = 0
        self._seconds = seconds
        self._every = every
        self._now = now
        self._due = now() + every
        self._steps: deque[_Step] = deque()
        self._rows = 0
        self._job: tuple[tuple[_Step, ...], Snapshot | None] | None = None
        self._turn = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="kwsniff-findings", daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._turn:
            self._closed = True
            self._turn.notify_all()
        self._thread.join()

    @property
    def is_due(self) -> bool:
        """Whether a snapshot is due and the previous one is done."""
        return self._now() >= self._due and self._job is None and self.trouble is None

    def add(self, batches: Batches) -> None:
        """Rows of one interval."""
        kept = {
            name: _add_columns(batch) for name, batch in batches.items() if name in READ and batch.num_rows
        }
        if kept:
            rows = sum(batch.num_rows for batch in kept.values())
            size = sum(batch.nbytes for batch in kept.values())
            self._steps.append(_Step(self._now(), rows, size, kept))
            self._rows += rows
        while self._steps and (self._is_full() or self._steps[0].time < self._now() - self._seconds):
            self.shortened |= self._is_full()
            self._rows -= self._steps.popleft().rows

    def _is_full(self) -> bool:
        """The newest step stays, whatever its number of rows: otherwise nothing would be evaluated."""
        return self._rows > self._most_rows and len(self._steps) > 1

    def pop_findings(self) -> tuple[list[Finding], list[pa.RecordBatch]]:
        """Findings since the last call, each as last found, and the calls of all of them: batches of
        `finding_calls`."""
        with self._turn:
            noted, self._noted = self._noted, {}
        findings, batches = [], []
        for each in noted.values():
            self._written += 1
            findings.append(replace(each.finding, finding_id=self._written))
            if len(each.calls):
                numbers = np.full((len(each.calls), 1), self._written, np.int64)
                batches.append(calls_batch(np.concatenate([numbers, each.calls], axis=1)))
        return findings, batches

    def pop_harm(self) -> HeldHarm:
        """What calls and connections suffered, as far as it was found since the last call."""
        with self._turn:
            harm, self._harm = self._harm, HeldHarm(MOST_NOTED_CALLS)
        return harm

    def evaluate(self, snapshot: Snapshot | None) -> None:
        """Makes the thread evaluate the current window."""
        with self._turn:
            self._job = tuple(self._steps), snapshot
            self._turn.notify_all()

    def conclude(self) -> None:
        """Evaluates the window once more, and waits for the result: unfinished calls have their rows now."""
        with self._turn:
            self._turn.wait_for(lambda: self._job is None)
            if self.trouble is None:
                self._job = tuple(self._steps), None
                self._turn.notify_all()
                self._turn.wait_for(lambda: self._job is None)

    def _work(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._job is not None or self._closed)
                if self._job is None or self._closed:
                    self._job = None
                    self._turn.notify_all()
                    return
                steps, snapshot = self._job
            started = self._now()
            try:
                self._hold(*self._judge(steps, snapshot))
            except (KwsniffError, MemoryError, OSError, RuntimeError, ValueError, _errors()) as error:
                self.held, self.trouble = (), f"the search for findings has stopped: {error}"
            release_memory()
            took = self._now() - started
            with self._turn:
                self._due = self._now() + max(self._every, took * _REST)
                self._job = None
                self._turn.notify_all()

    def _judge(self, steps: Sequence[_Step], snapshot: Snapshot | None) -> tuple[list[Finding], Entries]:
        unfinished = {} if snapshot is None else self._read_snapshot(snapshot)
        self.connections = unfinished.get("connections")
        release_memory()
        steps = self._fitting(steps, resident_bytes() + _TO_LOOK + _bytes(steps))
        parts: dict[str, list[pa.RecordBatch]] = {}
        for batches in (*(step.batches for step in steps), unfinished):
            for name, batch in batches.items():
                if name in READ and batch.num_rows:
                    parts.setdefault(name, []).append(_add_columns(batch))
        figures = Figures()
        for name, each in parts.items():
            for batch in each:
                figures.add(name, batch)
        rules = figures.worth_asking()
        if not rules:
            keyed = {name: pa.Table.from_batches([one_batch(parts[name])]) for name in KEYS if name in parts}
            self._note_harm(keyed, unfinished, None)
            return [], _NO_CALLS
        tables = {name: _with_plain_lists(one_batch(each)) for name, each in parts.items()}
        room = f"{memory_left(self._memory) // _MB}MB"
        queries = [TOTAL, *(rule.query for rule in rules), *queries_for(rules), *queries_of_settings(rules)]
        with open_tables(tables, queries, room) as database:
            found = evaluate(database, rules=rules, total=figures.total_ns())
            calls = [*list_entries(database, found)]
            self._note_harm(tables, unfinished, FoundHarm(database, found))
            self._fitting(steps, resident_bytes())
        return found, np.concatenate(calls) if calls else _NO_CALLS

    def _note_harm(self, tables: Mapping[str, pa.Table], unfinished: Batches, harm: FoundHarm | None) -> None:
        """That of rows which are final: what becomes of unfinished calls and connections shows later."""
        for table in KEYS.keys() & tables.keys():
            rows = keys_of(table, tables[table])
            if table in unfinished:
                left = whole_numbers(unfinished[table].column(KEYS[table]), null=-1)
                rows = rows[~np.isin(rows, left)]
            keys, codes = rows[:0], rows[:0].astype(np.int8)
            if harm and table in harm.tables:
                keys, codes = harm.all_of(table)
                final = np.isin(keys, rows)
                keys, codes = keys[final], codes[final]
            with self._turn:
                self._harm.judge(table, rows, keys, codes)

    def _fitting(self, steps: Sequence[_Step], taken: int) -> Sequence[_Step]:
        """All steps, or only the newer ones if the process is too large; from then on, only that many are
        kept."""
        excess, size, rows = taken - self._memory, _bytes(steps), sum(step.rows for step in steps)
        # Dropped rows are not copied for evaluation either.
        most = max(rows * (size - excess // 2) // max(size, 1), _LEAST_ROWS)
        if excess <= 0 or rows <= most:
            return steps
        self._most_rows, self.lacked_memory, self.shortened = most, True, True
        younger: deque[_Step] = deque()
        for step in reversed(steps):
            most -= step.rows
            if most < 0 and younger:
                break
            younger.appendleft(step)
        return younger

    def _hold(self, findings: Sequence[Finding], calls: Entries) -> None:
        before = {(each.finding.finding, each.finding.subject): each.since for each in self.held}
        held: dict[tuple[str, str], CurrentFinding] = {}
        for finding in findings[:MOST_HELD]:
            key = (finding.finding, finding.subject)
            times = [time for time in (before.get(key), finding.first_time) if time is not None]
            held.setdefault(key, CurrentFinding(finding, min(times, default=None)))
        self.held = tuple(held.values())
        with self._turn:
            room = MOST_NOTED_CALLS - sum(len(each.calls) for each in self._noted.values())
            for key, each in held.items():
                earlier = self._noted.pop(key, None)
                kept = _NO_CALLS[:, 1:] if earlier is None else earlier.calls
                own = calls[calls[:, 0] == each.finding.finding_id][:, 1:]
                both = np.unique(np.concatenate([kept, own]), axis=0)
                if len(both) - len(kept) <= room:
                    room -= len(both) - len(kept)
                    kept = both
                self._noted[key] = _Noted(each.finding, kept)
            while len(self._noted) > MOST_NOTED:
                del self._noted[next(iter(self._noted))]


@cache
def _columns() -> frozenset[str]:
    counted = {name for names in COUNTED.values() for name in names}
    rules = load_rules()
    return frozenset(counted | columns_named([*(rule.query for rule in rules), *queries_for(rules)]))


def _add_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Adds the columns that rules read."""
    return batch.select([name for name in batch.schema.names if name in _columns()])


def _bytes(steps: Iterable[_Step]) -> int:
    return sum(step.size for step in steps)


def _with_plain_lists(batch: pa.RecordBatch) -> pa.Table:
    """DuckDB cannot read lists of dictionary values that are all empty."""
    fields = [
        pa.field(field.name, pa.list_(field.type.value_type.value_type))
        if pa.types.is_list(field.type) and pa.types.is_dictionary(field.type.value_type)
        else field
        for field in batch.schema
    ]
    return pa.Table.from_batches([batch]).cast(pa.schema(fields))


def _errors() -> type[Exception]:
    from duckdb import Error

    return Error


def _format_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()
