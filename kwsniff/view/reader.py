"""Reads captures as a stream of calls with their messages' bytes, for `kwsniff show`.

The core keeps messages until their call ends, then delivers those of calls that may match. It keeps at most
`in_flight_bytes_total`; beyond that it delivers the oldest request alone, and later its response alone.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, Final

from kwsniff.analyzers import start_analyzer
from kwsniff.errors import CaptureError
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.limits import Limits
from kwsniff.sources.files import CaptureFile
from kwsniff.sources.order import find_in_order, size_of
from kwsniff.sources.ports import AskedPorts
from kwsniff.sources.times import TimeRange
from kwsniff.sources.tls import KeyLog, Secrets
from kwsniff.view.encrypted import Closed, closed_connections, ports_of
from kwsniff.view.selection import Call, Ended, EveryCall, Packet, Selection

Progress = Callable[[str, int, int | None], None]
_MOST_BROKERS: Final = 10_000
MOST_CLOSED: Final = 10
"""Maximum brokers in notes on TLS without keys."""


class CallReader:
    """Reads captures, in the order of their first packets as parts of one, call by call.

    `selection` tells which calls come; all of them by default. Calls that wait for the names of their
    topics come last. After the last call, ``notes`` lists problems with the files.
    """

    def __init__(
        self,
        paths: Sequence[str],
        *,
        ports: Sequence[int] = (),
        catalog: Catalog | None = None,
        tls_keylog: KeyLog = None,
        limits: Limits | None = None,
        times: TimeRange | None = None,
        selection: Selection | None = None,
        progress: Progress | None = None,
    ) -> None:
        """`progress`: called with a capture's name, the bytes read of all captures, and their total if
        known."""
        found = find_in_order(paths)
        self.captures = found.captures
        self.unread = found.unread
        """Files among the captures that cannot be read."""
        self.notes: list[str] = []
        self.topics: dict[str, str] = {}
        """Topic id -> name, from the messages so far."""
        self.packets = 0
        """Packets read within the time range."""
        self.dropped: int | None = None
        """Packets that the capturing systems dropped, as far as captures say so."""
        self.broken: set[str] = set()
        """What is wrong with the ends of captures: truncated, damaged."""
        self.is_complete = False
        """Whether everything was read."""
        self.ports = AskedPorts(ports)
        self._progress = progress
        self._done = 0
        """Raw bytes of the captures before the current one."""
        self._total: int | None = None
        self._secrets = None if tls_keylog is False else Secrets(tls_keylog)
        self._times = times or TimeRange()
        self._begun = False
        self._held: list[Call] = []
        self._held_bytes = 0
        self._lacked_room = False
        self._closed: Counter[Closed] = Counter()
        self._catalog = catalog or load_catalog()
        limits = limits or Limits()
        self._most_bytes = limits.in_flight_bytes_total
        self._selection = selection or EveryCall()
        self._tables = self._selection.tables
        self._analyzer = start_analyzer(
            self._catalog, (*self._tables, "connections"), ports=ports, limits=limits.as_dict(), messages=True
        )

    def calls(self) -> Iterator[Call]:
        """Calls in the order in which they ended; those that end within one MiB of capture, by their first
        frame.

        Raises CaptureError for a file that is not a capture or cannot be read.
        """
        if self._secrets:
            self._analyzer.open_tls(self._secrets)
        self._total = size_of(self.captures) if self._progress else None
        try:
            for name in self.captures:
                try:
                    capture = CaptureFile(name)
                except CaptureError as error:  # deleted since it was listed
                    if len(self.captures) == 1:
                        raise
                    self.notes.append(str(error))
                    continue
                with capture:
                    if not self._begun:
                        self._begin(capture)
                    yield from self._read(capture)
        finally:
            if self._secrets:
                self.notes += self._secrets.notes(self._analyzer.tls_opened)
        self._analyzer.finish()
        yield from self._over()
        yield from self._calls_of(Ended(b"", {}), None)
        yield from self._settle()
        self.is_complete = True
        self.notes += (_closed_note(*item) for item in self._closed.most_common(MOST_CLOSED))

    def _begin(self, capture: CaptureFile) -> None:
        self._begun = True
        if self._times:
            self._times.resolve(self.captures, capture)
            self._analyzer.bound(self._times.since, self._times.until)
        if choice := self._selection.begin(self.captures, capture):
            self._analyzer.choose_calls(choice)

    def _settle(self) -> Iterator[Call]:
        """Calls that waited for the names of their topics."""
        chosen = self._selection.select_late(self._analyzer.late_topics())
        yield from (call for call in self._held if call.id in chosen)
        self._held.clear()

    def _read(self, capture: CaptureFile) -> Iterator[Call]:
        self._analyzer.open_capture(capture.name)
        try:
            for buffer in capture.readable():
                self._analyzer.feed(buffer)
                yield from self._over()
                if self._progress:
                    self._progress(capture.name, self._done + capture.consumed, self._total)
                if self._analyzer.stopped:
                    break
            self._done += capture.consumed
            self._note(capture, self._analyzer.close_capture())
        except CaptureError as error:
            raise CaptureError(f"{capture.name}: {error}") from error

    def _note(self, capture: CaptureFile, facts: dict[str, Any]) -> None:
        self._times.add_facts(facts)
        self.packets += facts["packets"] - facts["packets_other_time"]
        if facts["dropped_by_kernel"] is not None:
            self.dropped = (self.dropped or 0) + facts["dropped_by_kernel"]
        self.broken |= {end for end in ("truncated", "damaged") if facts[end]}
        if capture.truncated:
            self.broken.add("truncated")
        if capture.note:
            self.notes.append(f"{capture.name}: {capture.note}")
        if facts["damaged"]:
            self.notes.append(f"{capture.name} is damaged; kwsniff did not read the part after the damage")
        elif facts["truncated"] and not capture.truncated:
            self.notes.append(f"{capture.name}: ends inside a packet")

    def _over(self) -> list[Call]:
        ended = Ended(b"", {})
        if any(self._analyzer.rows(table) for table in self._tables):
            ended = self._selection.select({table: self._analyzer.drain(table) for table in self._tables})
        if self._analyzer.rows("connections"):
            connections = self._analyzer.drain("connections")
            if self.ports.absent:
                self.ports.add(ports_of(connections))
            for broker, count in closed_connections(connections).items():
                if broker in self._closed or len(self._closed) < _MOST_BROKERS:
                    self._closed[broker] += count
        return self._calls_of(ended, self._most_bytes)

    def _calls_of(self, ended: Ended, most: int | None) -> list[Call]:
        packets = self._analyzer.drain_messages(ended.calls, alone=self._selection.alone, most=most)
        found: dict[int, Call] = {}
        over: list[Call] = []
        for packet in packets:
            call_id, kind = packet["call_id"], packet["kind"]
            if call_id is None or kind not in ("request", "response"):
                over.append(_alone(packet))
                continue
            if call_id not in found:
                found[call_id] = Call(call_id, None, None, *ended.statuses.get(call_id, (None, None)))
                over.append(found[call_id])
            setattr(found[call_id], kind, packet)
        if over:
            self.topics.update(self._analyzer.topic_names())
        over.sort(key=_first_frame)
        return self._without_waiting(over, ended.waiting) if ended.waiting else over

    def _without_waiting(self, over: Sequence[Call], waiting: Set[int]) -> list[Call]:
        """Keeps those that wait, while there is room."""
        left = []
        for call in over:
            if call.id not in waiting:
                left.append(call)
                continue
            self._held_bytes += sum(len(packet["data"]) for packet in call.packets)
            if self._held_bytes <= self._most_bytes:
                self._held.append(call)
            elif not self._lacked_room:
                self._lacked_room = True
                self.notes.append(
                    "some calls have topic ids that no earlier message names; kwsniff left out those that "
                    "take more than --limit in_flight_bytes_total=N"
                )
        return left


def _alone(packet: Packet) -> Call:
    if packet["direction"]:
        alone = packet["kind"] == "unexpected_response"
        return Call(packet["call_id"], None, packet, "response_only" if alone else None)
    return Call(packet["call_id"], packet)


def _closed_note(closed: Closed, count: int) -> str:
    many, to = "s" * (count != 1), f"to {closed.broker}:{closed.port}"
    if closed.unanswered:
        return f"{count} ClientHello{many} {to} without ServerHello: see tls_alert, closed_by"
    version = f", TLS {closed.version}" if closed.version else ""
    why = "handshake not captured" if closed.midway else "without keys"
    return f"{count} TLS connection{many} {to}{version}, {why}: see --tls-keylog"


def _first_frame(call: Call) -> tuple[int, int]:
    packet = call.packets[0]
    return packet["capture"], packet["first_frame"]
