"""Figures of the last seconds, by API, client, broker and topic; and the last calls.

Percentiles of broker time, queue wait and network time are separate: the long poll of an idle consumer is
not slowness, and a call queued behind it is not slowness of the broker.

Every batch of rows becomes a slice; slices older than the window are dropped. Memory is bounded by the number
of latencies per key and slice, of keys per slice, and of last calls.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.analysis.rollups.errors import Failures
from kwsniff.live.batches import Batches
from kwsniff.live.calls import NO_NAME, Times, endpoint, times_of, topics_of, with_labels
from kwsniff.live.findings import CurrentFinding
from kwsniff.live.overdue_responses import OverdueResponses
from kwsniff.live.rebalances import UnderWay
from kwsniff.tables.arrays import Bits, Numbers, whole_numbers
from kwsniff.tables.grouping import Groups
from kwsniff.tables.rows import pick

DIMENSIONS: Final = ("apis", "topics", "clients", "brokers")
MOST_KEYS: Final = 1000
"""Values of a dimension per slice; further values are counted together."""
OTHERS: Final = "(others)"
NO_API: Final = ""

_LOSSES = ("segment_not_captured", "cut_by_snaplen")
_SAMPLE = 1024
_LAST_ROWS = 50_000
PARTS: Final = ("active", "broker", "queue", "network")
"""Parts of latency: all without deliberate waits; broker time; queue wait; network time."""

CALL_COLUMNS: Final = (
    "request_time", "client_id", "client_address", "client_port", "broker_address", "broker_port", "api_name",
    "api_version", "correlation_id", "status", "reason", "latency_ns", "error_name", "error_count", "topics",
    "group_id",
)  # fmt: skip
_KEPT: Final = (*CALL_COLUMNS, "caller")


@dataclass(slots=True)
class Figures:
    """Calls of one key. `times` (nanoseconds, by part of PARTS) are a sample when there are many."""

    calls: int = 0
    errors: int = 0
    unanswered: int = 0
    times: dict[str, list[Numbers]] = field(default_factory=lambda: {part: [] for part in PARTS})

    def add(self, calls: int, errors: int, unanswered: int, times: Times) -> None:
        """Adds calls of this key."""
        self.calls += calls
        self.errors += errors
        self.unanswered += unanswered
        for part, kept in self.times.items():
            values: Numbers = getattr(times, part)
            values = values[values >= 0]
            if len(values):
                # A copy, because a view would keep the whole batch in memory.
                kept.append(values[:: -(-len(values) // _SAMPLE)].copy())

    def merge(self, other: "Figures") -> None:
        """Adds the calls of another one."""
        self.calls += other.calls
        self.errors += other.errors
        self.unanswered += other.unanswered
        for part, kept in self.times.items():
            kept.extend(other.times[part])

    def percentiles(self, percents: Sequence[int], part: str = "broker") -> list[int | None]:
        """By nearest rank, in nanoseconds; if the parts are unknown, of the whole latency."""
        found = self.times[part] or (self.times["active"] if part == "broker" else [])
        if not found:
            return [None] * len(percents)
        values = np.sort(np.concatenate(found))
        ranks = [max(-(-len(values) * percent // 100), 1) for percent in percents]
        return [int(values[rank - 1]) for rank in ranks]


_Outcome = tuple[Bits, Bits, Times]  # failed, unanswered
Slice = dict[str, dict[str, Figures]]


@dataclass(slots=True)
class _Step:
    time: float
    figures: Slice
    errors: Counter[tuple[str, str, str]]
    failures: Failures


class Window:
    """Takes batches as they arrive; gives figures of the last `seconds`, and totals since the start."""

    def __init__(
        self,
        seconds: float = 10.0,
        now: Callable[[], float] = time.monotonic,
        begun: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.seconds = seconds
        self.clock: Callable[[], float] = time.time
        """Seconds since the epoch, of this machine or of a replayed file."""
        self.calls = 0
        self.errors = 0
        self.unanswered = 0
        self.not_captured = 0
        """Calls with a missing packet, since the start."""
        self.rebalances: Sequence[Mapping[str, Any]] = ()
        """The latest completed calls, newest last."""
        self.under_way: Sequence[UnderWay] = ()
        """Rebalances in progress."""
        self.overdue = OverdueResponses()
        """Overdue responses."""
        self.held: Sequence[CurrentFinding] = ()
        """Current findings, worst first."""
        self.connections: Sequence[Mapping[str, Any]] = ()
        """Open connections, those with most bytes first."""
        self.names: Mapping[str, str] = {}
        """Topic id -> name, for ids in rows whose name became known later."""
        self.now = now
        self._started = begun() or now()
        self.begun = begun
        self._steps: deque[_Step] = deque()
        self._last: deque[pa.RecordBatch] = deque()
        self._last_rows = 0

    def add(self, batches: Batches) -> None:
        """Rows of one interval."""
        self._started = self._started or self.begun() or self.now()
        step = _Step(self.now(), {name: {} for name in DIMENSIONS}, Counter(), Failures(MOST_KEYS))
        if "api_calls" in batches:
            self._add_calls(step.figures, with_labels(batches["api_calls"]), times_of(batches))
            step.failures.add_calls(batches["api_calls"])
            self._remember(batches["api_calls"])
        if "error_codes" in batches:
            step.failures.add_errors(batches["error_codes"])
            groups = Groups(
                batches["error_codes"], ("error_name", "error_code", "api_name", "topic", "group_id")
            )
            for (name, code, api, topic, group), number in zip(groups.labels(), groups.counts(), strict=True):
                key = (name or f"error {code}", api or "", topic or group or "")
                if key in step.errors or len(step.errors) < MOST_KEYS:
                    step.errors[key] += int(number)
        self._steps.append(step)
        self._forget()

    @property
    def span(self) -> float:
        """Seconds that the figures cover: the window, or less shortly after the start."""
        return max(min(self.seconds, self.now() - self._started), 0.001)

    def figures(self, dimension: str) -> dict[str, Figures]:
        """Key -> figures of the window."""
        self._forget()
        merged: dict[str, Figures] = {}
        for step in self._steps:
            for word, found in step.figures[dimension].items():
                key = self.names.get(word, word) if dimension == "topics" else word
                merged.setdefault(key, Figures()).merge(found)
        return merged

    def frozen(self) -> "Window":
        """A frozen copy of the window, to display while this one continues."""
        now = self.now()
        snapshot = Window(self.seconds, now=lambda: now)
        snapshot.calls, snapshot.errors = self.calls, self.errors
        snapshot.unanswered, snapshot.not_captured = self.unanswered, self.not_captured
        snapshot.rebalances, snapshot.under_way = tuple(self.rebalances), self.under_way
        snapshot.overdue, snapshot.connections = self.overdue, self.connections
        snapshot.names, snapshot._started, snapshot.held = self.names, self._started, self.held
        snapshot.clock = self.clock
        snapshot._steps, snapshot._last = self._steps.copy(), self._last.copy()
        return snapshot

    def error_counts(self) -> Counter[tuple[str, str, str]]:
        """(error, API, topic or group) -> error codes in the window."""
        self._forget()
        total: Counter[tuple[str, str, str]] = Counter()
        for step in self._steps:
            total.update(step.errors)
        return total

    def failures(self) -> Failures:
        """Errors in the window by client and by broker."""
        self._forget()
        return Failures().merge(step.failures for step in self._steps)

    def last_calls(self, number: int, **wanted: str) -> list[dict[str, Any]]:
        """The latest calls, newest first, with CALL_COLUMNS (times in microseconds); `wanted`: only those
        of this
        `client`, `topic`, `api` or `broker`."""
        found: list[dict[str, Any]] = []
        for batch in reversed(self._last):
            chosen = np.ones(batch.num_rows, np.bool_)
            for dimension, value in wanted.items():
                same = [value, *(word for word, name in self.names.items() if name == value)]
                chosen &= _rows_of(batch, dimension, same if dimension == "topic" else [value])
            rows = np.flatnonzero(chosen)
            chosen[rows[: max(len(rows) - (number - len(found)), 0)]] = False
            calls = [dict(zip(CALL_COLUMNS, row, strict=True)) for row in pick(batch, chosen, CALL_COLUMNS)]
            found += reversed(calls)
            if len(found) >= number:
                break
        return found

    def _forget(self) -> None:
        oldest = self.now() - self.seconds
        while self._steps and self._steps[0].time < oldest:
            self._steps.popleft()

    def _remember(self, batch: pa.RecordBatch) -> None:
        self._last.append(batch.select(_KEPT))
        self._last_rows += batch.num_rows
        while len(self._last) > 1 and self._last_rows - self._last[0].num_rows >= _LAST_ROWS:
            self._last_rows -= self._last.popleft().num_rows

    def _add_calls(self, figures: Slice, batch: pa.RecordBatch, times: Times) -> None:
        failed = whole_numbers(batch["error_count"], null=0) > 0
        unanswered = _is_one_of(batch["status"], ("unanswered",))
        self.calls += batch.num_rows
        self.errors += int(failed.sum())
        self.unanswered += int(unanswered.sum())
        self.not_captured += int(_is_one_of(batch["reason"], _LOSSES).sum())
        for dimension, columns in (
            ("apis", ("api_name",)),
            ("clients", ("client_id",)),
            ("brokers", ("broker_address", "broker_port")),
        ):
            groups = Groups(batch, columns)
            keys = [_key(label) for label in groups.labels()]
            if dimension == "apis":
                keys = [NO_API if key == NO_NAME else key for key in keys]
            _count(figures[dimension], keys, groups.numbers, (failed, unanswered, times))
        rows, numbers, words = topics_of(batch)
        if len(rows):
            _count(figures["topics"], words, numbers, (failed[rows], unanswered[rows], times.take(rows)))


def _count(into: dict[str, Figures], keys: Sequence[str], numbers: Numbers, outcome: _Outcome) -> None:
    failed, unanswered, times = outcome
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        key = keys[int(numbers[rows[0]])]
        if key == NO_API:  # a response without its request
            continue
        if key not in into and len(into) >= MOST_KEYS:
            key = OTHERS
        into.setdefault(key, Figures()).add(
            len(rows), int(failed[rows].sum()), int(unanswered[rows].sum()), times.take(rows)
        )


def _key(label: tuple[Any, ...]) -> str:
    if len(label) == 2:
        return endpoint(*label)
    return NO_NAME if label[0] is None else str(label[0])


def _is_one_of(column: pa.DictionaryArray, words: Sequence[str]) -> Bits:
    chosen = np.array([*(word in words for word in column.dictionary.to_pylist()), False], np.bool_)
    result: Bits = chosen[whole_numbers(column.indices, null=-1)]
    return result


def _rows_of(batch: pa.RecordBatch, dimension: str, values: Sequence[str]) -> Bits:
    chosen = np.zeros(batch.num_rows, np.bool_)
    if dimension == "topic":
        rows, numbers, words = topics_of(batch)
        chosen[rows[np.array([word in values for word in words], np.bool_)[numbers]]] = True
        return chosen
    columns = {"client": ("client_id",), "api": ("api_name",), "broker": ("broker_address", "broker_port")}
    groups = Groups(with_labels(batch) if dimension == "api" else batch, columns[dimension])
    matching = np.array([_key(label) in values for label in groups.labels()], np.bool_)
    result: Bits = matching[groups.numbers]
    return result


def rank_figures(
    figures: Mapping[str, Figures], order: str, late: Callable[[str], int] = lambda _: 0
) -> Iterator[tuple[str, Figures, list[int | None]]]:
    """Key, figures, [p50, p95, p99], sorted by `order`: trouble, calls, errors, p50, p95, p99 (most first) or
    name. `late`: for how long (nanoseconds) a key has overdue responses, which sort first; then errors."""
    rows = [(key, found, found.percentiles((50, 95, 99))) for key, found in figures.items()]
    if order == "name":
        rows.sort(key=lambda row: row[0])
    elif order == "trouble":
        rows.sort(key=lambda row: (-late(row[0]), -row[1].errors - row[1].unanswered, -row[1].calls, row[0]))
    elif order in ("calls", "errors"):
        rows.sort(key=lambda row: (-getattr(row[1], order), row[0]))
    else:
        place = ("p50", "p95", "p99").index(order)
        rows.sort(key=lambda row: (-(row[2][place] or 0), row[0]))
    return iter(rows)
