"""One live capture: a thread reads packets into the core; the caller takes rows at its own pace.

    tool ─ pipe ─▶ thread: feed, keep raw packets ─▶ core's tables ─▶ take(): batches ─▶ files, view, metrics,
    iterator

A session drops no packets. While too many rows wait, the thread stops reading, then the pipe fills, and then
the kernel's buffer, which counts its drops. At the end the session compares the packets written and read.
"""

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from kwsniff.analysis.summary import Summary
from kwsniff.analyzers import core_tables, start_analyzer
from kwsniff.errors import CaptureError, OutputError
from kwsniff.layout.catalog import Layouts, load_catalog
from kwsniff.live.batches import Batches, append_batches, concat_batches, one_batch
from kwsniff.live.late_secrets import LateSecrets, has_bytes
from kwsniff.live.overdue_responses import (
    MOST_OWED,
    Drops,
    OverdueResponses,
    Wait,
    count_overdue,
    grace_of,
    not_lost,
    rendezvous,
)
from kwsniff.live.ring_buffer import PacketRing
from kwsniff.live.snapshot import Snapshot, make_batches
from kwsniff.sources.live_source import LiveSource
from kwsniff.sources.tls import KeyLog, Secrets
from kwsniff.tables.captures import CaptureName, account, capture_row, captures_batch
from kwsniff.tables.schema import TABLES
from kwsniff.timelines.groups.rebalances import Standing
from kwsniff.timelines.row_path import Columns, RowPath, public_rows, take_rows
from kwsniff.timelines.timelines import HELD, Timelines, sources_of
from kwsniff.timelines.waits.pending_rows import UNSETTLED

MOST_ROWS: Final = 1 << 18
"""Maximum rows of a table that wait; the thread then stops reading until the caller takes them."""

_BUFFER_BYTES = 1 << 20
_GLANCE_S = 0.05
_FEW_BYTES = 1 << 16
_GATHER_S = 0.01
_EVERYTHING = tuple(TABLES)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a live capture. Counts are packets unless the name has another unit."""

    packets: int
    capture_bytes: int
    waiting_calls: int
    """Requests in flight."""
    oldest_wait_ns: int | None
    """Age of the oldest request in flight, by the packets' clock; a Fetch may wait for max_wait_ms."""
    dropped_by_kernel: int | None
    """None until the tool reports it; dumpcap does at the end."""
    dropped_here: int | None
    """Packets that the tool wrote and the core did not read: always 0, known at the end."""


class Session:
    """Captures from one source. Use as a context manager, or call `close`.

    `tables`: names of the tables to make, all by default. `ring`: also keeps the raw packets.
    `layouts`: a folder of a vendor's layouts. `tls_keylog`: key logs, which may still grow.
    """

    def __init__(
        self,
        source: LiveSource,
        *,
        ports: Sequence[int] = (),
        limits: Mapping[str, int] | None = None,
        tables: Sequence[str] = _EVERYTHING,
        ring: PacketRing | None = None,
        layouts: Layouts | None = None,
        tls_keylog: KeyLog = None,
    ) -> None:
        self._catalog = catalog = load_catalog(layouts)
        self.source = source
        self.summary = Summary()
        self.tables = tuple(tables)
        delivered = {*tables, "api_calls", "latencies", "connections", "anomalies", *sources_of(self.tables)}
        self._delivered = core_tables(delivered)
        self._analyzer = start_analyzer(catalog, self._delivered, ports=ports, limits=limits)
        self._analyzer.when_full = self._make_room
        if source.bounds != (None, None):
            self._analyzer.bound(*source.bounds)
        self._late = LateSecrets(Secrets(tls_keylog, follow=bool(tls_keylog)), self._analyzer)
        self._analyzer.open_capture(source.interface)
        self._path = RowPath(catalog, self.tables)
        self._timelines = Timelines(catalog, (limits or {}).get("memory"))
        self._ring = ring
        self.ring_trouble: str | None = None
        """Why the ring has stopped."""
        self._joins = rendezvous(catalog)
        self._drops = Drops()
        self._clock: int | None = None
        self._heard_ns = time.monotonic_ns()
        self._bytes = self._packets = 0
        self.ended_by_itself = False
        """Whether the capture ended before the caller stopped it. Known after `finish`."""
        self._finished = self._midway = self._stopping = self._closed = False
        self._first_time: int | None = None
        self._failure: BaseException | None = None
        self._ending: str | None = None
        self._overflow: list[Columns] = []
        # Held while the core works or is read; waited on while too many rows wait.
        self._turn = threading.Condition()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="kwsniff-live", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop(self) -> None:
        """Stops capturing; packets already captured are still read. Returns immediately."""
        self._stopping = True
        self.source.stop()

    def wait(self, seconds: float) -> bool:
        """Waits until the capture has ended, up to a timeout; returns whether it has."""
        return self._ended.wait(seconds)

    @property
    def ending(self) -> str | None:
        """Why the capture ended by itself: the interface vanished, the tool failed. Known after `finish`."""
        return self._ending

    def drain(self) -> Batches:
        """The rows since the last call. Re-raises an exception of the thread."""
        return self._take()[0]

    def drain_with_snapshot(self) -> tuple[Batches, Snapshot | None]:
        """The same, and a snapshot of unfinished calls and connections. Before `finish` only. None before
        the first packet."""
        batches, state = self._take(save=True)
        if state is None:
            return batches, None
        silent_ns = time.monotonic_ns() - self._heard_ns
        return batches, Snapshot(state, self._path.state(), deepcopy(self._timelines.state()), silent_ns)

    def _take(self, *, save: bool = False) -> tuple[Batches, bytes | None]:
        with self._turn:
            taken = [self._take_rows()]
            while save and self._midway:  # paused in the middle of a packet: the state cannot be saved now
                self._turn.notify()
                self._turn.wait(_GLANCE_S)
                taken.append(self._take_rows())
            state = self._analyzer.save(ended=False) if save and self._analyzer.packets else None
            self._packets = self._packets if self._finished else self._analyzer.packets
            self._turn.notify()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return concat_batches(map(self._batches, taken)), state

    def read_snapshot(self, snapshot: Snapshot) -> Batches:
        """The rows if the capture had ended with the snapshot: calls in flight, open connections, the
        state of
        groups. Thread-safe: it does not access the running capture."""
        return make_batches(snapshot, self._catalog, self._delivered, self.source)

    def find_watermark(self) -> int | None:
        """The capture's clock: all packets before this time (nanoseconds since the epoch) have been read."""
        with self._turn:
            return self._read_watermark()

    @property
    def begun(self) -> int | None:
        """Time of the first packet, nanoseconds since the epoch."""
        with self._turn:
            return None if self._finished else self._analyzer.times[0]

    @property
    def first_time(self) -> int | None:
        """The same, also after the end."""
        return self._first_time if self._finished else self.begun

    def _read_watermark(self) -> int | None:
        if not self._finished:
            silent_ns = time.monotonic_ns() - self._heard_ns
            self._clock = self.source.find_watermark(self._bytes, self._analyzer.times[1], silent_ns)
        return self._clock

    def find_overdue(self) -> OverdueResponses:
        """Overdue responses, and calls that wait for their group."""
        with self._turn:
            now = self._read_watermark() or 0
            grace = grace_of(self.source.delay_ns)
            rows = [] if self._finished else self._analyzer.waits(now - grace, self._joins, MOST_OWED)
            names = self._analyzer.late_topics() if rows else {}
        waits = not_lost((Wait(*row) for row in rows), self._drops.since)
        return count_overdue(now, waits, self._catalog, names, grace)

    def standing(self, group_id: str) -> Standing | None:
        """The current state of a classic group, from the rows taken so far."""
        return self._timelines.rebalances.standing(group_id)

    def progress(self) -> Progress:
        """Current figures, including those of the tool if it reports them."""
        with self._turn:
            now = self._read_watermark()
            if not self._finished:
                self._late.decrypt_waiting()  # even without further packets
            waiting, oldest = (0, None) if self._finished else self._analyzer.waiting()
            packets = self._packets = self._packets if self._finished else self._analyzer.packets
        if not self._ended.is_set():
            self.source.request_drops()
            self._drops.set_count(self.source.dropped, time.time_ns())
        captured = self.source.captured if self._finished else None
        lost = None if captured is None else captured - packets
        return Progress(
            packets=packets,
            capture_bytes=self._bytes,
            waiting_calls=waiting,
            oldest_wait_ns=None if oldest is None or now is None else max(now - oldest, 0),
            dropped_by_kernel=self.source.dropped,
            dropped_here=lost,
        )

    def late_topics(self) -> dict[str, str]:
        """Topic id -> name, for ids in rows whose name became known later."""
        with self._turn:
            return self._analyzer.late_topics()

    def finish(self) -> Batches:
        """The last rows: calls in flight, open connections, the capture itself. Ends the
        capture."""
        parts: dict[str, list[pa.RecordBatch]] = {}
        self.ended_by_itself = self._ended.is_set() and not self._stopping
        if not self.ended_by_itself:
            self.stop()
        while not self._ended.wait(_GLANCE_S):
            append_batches(parts, self.drain())  # the thread waits for this if many rows wait
        self.source.close()
        if self.ended_by_itself:
            self._ending = self._why_ended()
        if self._ring:
            self._ring.close()
        append_batches(parts, self.drain())
        if not self._finished:
            self.find_watermark()
            self._first_time = self.begun
            self._finished = True
            for rows in self._last_rows():
                append_batches(parts, rows)
        return {table: one_batch(batches) for table, batches in parts.items() if table in self.tables}

    def _why_ended(self) -> str | None:
        if self.source.ending:
            return self.source.ending
        if self.source.complete and not self._analyzer.stopped:
            if not self._bytes or self._analyzer.unfinished == 0:
                return None
            return f"{self.source.tool} ended in the middle of a packet; kwsniff read all packets before it"
        return f"the output of {self.source.tool} became unreadable"

    def close(self) -> None:
        """Ends the capture without its last rows, unless it was finished."""
        if self._closed:
            return
        self._closed = True
        self.stop()
        with self._turn:
            self._turn.notify()
        self._ended.wait()
        self.source.close()
        if self._ring:
            self._ring.close()

    def _follow(self) -> None:
        buffer = memoryview(bytearray(_BUFFER_BYTES))
        try:
            while self._await_packets() and (size := os.readv(self.source.fileno(), [buffer])):
                with self._turn:
                    self._wait_for_room()
                    self._analyzer.feed(buffer[:size])
                    self._bytes += size
                    self._heard_ns = time.monotonic_ns()
                    self._late.decrypt_waiting()
                    unfinished = self._analyzer.unfinished
                self._keep(buffer[:size], unfinished)
                if self._closed or self._analyzer.stopped:
                    break
                if size < _FEW_BYTES:
                    time.sleep(_GATHER_S)  # the tool writes packet by packet: let some accumulate in the pipe
        except BaseException as error:  # take() re-raises it
            self._failure = error
            self.source.stop()
        finally:
            self._ended.set()

    def _await_packets(self) -> bool:
        """Waits until they are taken, and checks for secrets meanwhile. False: the session is closing."""
        while self._late.may_come and not has_bytes(self.source.fileno()):
            with self._turn:
                self._wait_for_room()
                self._late.decrypt_waiting()
            if self._closed:
                return False
        return True

    def _keep(self, data: memoryview, unfinished: int | None) -> None:
        """A ring that cannot be written does not end the capture."""
        if self._ring:
            try:
                self._ring.write(data, unfinished)
            except OutputError as error:
                self.ring_trouble, self._ring = str(error), None

    def _wait_for_room(self) -> None:
        while not self._closed and self._is_full():
            self._turn.wait()

    def _make_room(self) -> None:
        """Callback of the core, in the middle of a packet."""
        if threading.current_thread() is self._thread:
            self._midway = True
            self._wait_for_room()
            self._midway = False
        else:  # the thread that takes the last rows cannot wait for itself
            self._overflow.append(self._take_rows())

    def _is_full(self) -> bool:
        return self._analyzer.is_full or any(
            self._analyzer.rows(table) >= MOST_ROWS for table in self._delivered
        )

    def _take_rows(self) -> Columns:
        return take_rows(self._analyzer, self._delivered)

    def _last_rows(self) -> Iterator[Batches]:
        """Rows that only exist at the end of the capture."""
        self._packets = self._analyzer.packets
        if not self._bytes:  # the tool was stopped before its first output
            return
        try:
            facts = self._analyzer.close_capture()
        except CaptureError as error:
            raise CaptureError(f"the output of {self.source.tool} is not a capture: {error}") from error
        self.source.add_facts(facts)
        self._late.decrypt_waiting(last=True)
        self._analyzer.finish()
        while self._overflow:
            yield self._batches(self._overflow.pop(0))
        yield self.drain()
        self._timelines.finish()
        yield concat_batches(self._timeline_rows())
        self.summary.late_topics = self._analyzer.late_topics()
        yield {"captures": self._captures(facts)}

    def _batches(self, columns: Columns) -> Batches:
        batches = self._path.build_all(columns)
        calls, now = batches.get("api_calls"), batches.get(HELD)
        noted = self._path.extract(batches)
        for table, batch in batches.items():
            self.summary.add(table, batch, calls)
            if self._path.follows:
                self._timelines.add_rows(table, batch)
        found: list[Batches] = [batches]
        if noted:
            self._timelines.add(noted)
            found += self._timeline_rows()
            if now is not None and noted.timed is not None:
                found.append({UNSETTLED: now})
        return {table: batch for table, batch in concat_batches(found).items() if batch.num_rows}

    def _captures(self, facts: Mapping[str, Any]) -> pa.RecordBatch:
        row = capture_row(self.source.capture or CaptureName(self.source.interface), facts)
        dropped = [told for told in (row["dropped_by_kernel"], self.source.dropped) if told is not None]
        row["dropped_by_kernel"] = max(dropped, default=None)
        account(row, self._analyzer.accounting(0))
        self.summary.captures.append(row)
        return captures_batch([row])

    def _timeline_rows(self) -> Iterator[Batches]:
        for table, rows in self._timelines.drain(1):
            self.summary.add(table, rows, rows)
            yield {table: public_rows(table, rows)}
