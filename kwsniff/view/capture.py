"""Captures to calls with their messages' bytes, in a stream: what `kwsniff show` is made of.

Requests wait for their response here (the compiled rooms keep facts only), so that both are handed out
together, when the call is over. Of the requests that wait, `waiting_bytes_total` at most are held; beyond it
the oldest is handed out alone and its response, later, alone as well.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kwsniff.core.analyzer import Analyzer
from kwsniff.core.declared import COLUMNS, ENUMS, TABLES
from kwsniff.errors import CaptureError
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.limits import Limits
from kwsniff.sources.files import CaptureFile
from kwsniff.sources.order import find_in_order
from kwsniff.sources.times import TimeRange
from kwsniff.sources.tls import Decryption
from kwsniff.view.closed import Closed, closed_connections

# What the dict of a message's facts takes.
_HELD_BYTES_EACH: Final = 2048
_MOST_BROKERS: Final = 10_000
MOST_CLOSED: Final = 10
"""Brokers that notes about TLS without keys name."""

Packet = dict[str, Any]
"""A message as ``Analyzer.take_messages`` gives it."""


@dataclass(slots=True)
class Call:
    """A call that is over, or a message that belongs to none.

    ``id`` is the tables' call_id, None for a message without a call. ``request`` or
    ``response`` may be missing: not captured, not sent, or handed out before. ``status`` and ``reason`` are
    words of the closed lists of docs/anomalies.md.
    """

    id: int | None
    request: Packet | None = None
    response: Packet | None = None
    status: str | None = None
    reason: str | None = None

    @property
    def packets(self) -> tuple[Packet, ...]:
        """Request and response, as far as they are there."""
        return tuple(packet for packet in (self.request, self.response) if packet is not None)


class CallReader:
    """Reads captures, in the order of their first packets as parts of one, call by call.

    After the last call, ``notes`` says what was wrong with the files.
    """

    def __init__(
        self,
        paths: Sequence[str],
        *,
        ports: Sequence[int] = (),
        catalog: Catalog | None = None,
        tls_keylog: str | None = None,
        limits: Limits | None = None,
        times: TimeRange | None = None,
    ) -> None:
        found = find_in_order(paths)
        self.captures = found.captures
        self.unread = found.unread
        """What stands among the captures and cannot be read."""
        self.notes: list[str] = []
        self._tls_keylog = tls_keylog
        self._times = times or TimeRange()
        self._bounded = not self._times
        self._closed: Counter[Closed] = Counter()
        self._catalog = catalog or load_catalog()
        limits = limits or Limits()
        self._most_held_bytes = limits.waiting_bytes_total
        self._analyzer = Analyzer(
            self._compile,
            self._catalog.spoken(),
            ports=ports,
            limits=limits.as_dict(),
            messages=True,
            compile_early=self._compile_early,
        )
        self._held: OrderedDict[int, Call] = OrderedDict()
        self._held_bytes = 0

    def calls(self) -> Iterator[Call]:
        """Calls in the order in which they were over; what one MiB of capture ended, by its first frame.

        Raises CaptureError for a file that is no capture or cannot be read.
        """
        decryption = Decryption(self.captures, self._tls_keylog)
        try:
            with decryption:
                for name in self.captures:
                    if pieces := decryption.begin(name):
                        self._analyzer.decrypt(pieces)
                    try:
                        capture = CaptureFile(name)
                    except CaptureError as error:  # gone since it was found
                        if len(self.captures) == 1:
                            raise
                        self.notes.append(str(error))
                        continue
                    with capture:
                        if not self._bounded:
                            self._bounded = True
                            self._times.resolve(self.captures, capture)
                            self._analyzer.bound(self._times.since, self._times.until)
                        yield from self._read(capture)
        finally:
            self.notes += decryption.notes
        self._analyzer.finish()
        yield from self._over()
        yield from sorted(self._held.values(), key=_first_frame)
        self._held.clear()
        self.notes += (_closed_note(*item) for item in self._closed.most_common(MOST_CLOSED))

    def _read(self, capture: CaptureFile) -> Iterator[Call]:
        self._analyzer.open_capture(capture.name)
        try:
            for buffer in capture.readable():
                self._analyzer.feed(buffer)
                yield from self._over()
                if self._analyzer.stopped:
                    break
            self._note(capture, self._analyzer.close_capture())
        except CaptureError as error:
            raise CaptureError(f"{capture.name}: {error}") from error

    def _compile(self, api_key: int, version: int, direction: int) -> tuple[bytes, tuple[str, ...]] | None:
        program = self._catalog.program(api_key, version, direction)
        return (program.code, program.paths) if program else None

    def _compile_early(
        self, api_key: int, version: int, direction: int
    ) -> tuple[bytes, tuple[str, ...]] | None:
        programs = self._catalog.alternates(api_key, version, direction)
        return (programs[0].code, programs[0].paths) if programs else None

    def _note(self, capture: CaptureFile, facts: dict[str, Any]) -> None:
        self._times.take(facts)
        if capture.note:
            self.notes.append(f"{capture.name}: {capture.note}")
        if facts["damaged"]:
            self.notes.append(f"{capture.name}: is damaged; what comes after the damage was not read")
        elif facts["truncated"] and not capture.truncated:
            self.notes.append(f"{capture.name}: ends inside a packet")

    def _over(self) -> list[Call]:
        over = list(self._pair(self._analyzer.take_messages()))
        ended = _ended(self._analyzer.take("api_calls"))
        if self._analyzer.rows("connections"):
            for broker, count in closed_connections(self._analyzer.take("connections")).items():
                if broker in self._closed or len(self._closed) < _MOST_BROKERS:
                    self._closed[broker] += count
        for table in TABLES:
            if self._analyzer.rows(table):
                self._analyzer.take(table)
        for call in over:
            if call.id in ended:
                call.status, call.reason = ended[call.id]
        over += [one for call_id in ended if (one := self._release(call_id, *ended[call_id]))]
        while self._held_bytes > self._most_held_bytes:
            call_id, _ = next(iter(self._held.items()))
            over += [one for one in (self._release(call_id, None, None),) if one]
        over.sort(key=_first_frame)
        return over

    def _pair(self, packets: Iterable[Packet]) -> Iterator[Call]:
        for packet in packets:
            call_id = packet["call_id"]
            if call_id is not None and packet["kind"] == "request":
                self._held[call_id] = Call(call_id, packet)
                self._held_bytes += _size(packet)
            elif call_id is not None and packet["kind"] == "response":
                answered = self._release(call_id, "answered", None) or Call(call_id, status="answered")
                answered.response = packet
                yield answered
            elif packet["direction"]:
                alone = packet["kind"] == "unexpected_response"
                yield Call(None, None, packet, "response_only" if alone else None)
            else:
                yield Call(None, packet)

    def _release(self, call_id: int, status: str | None, reason: str | None) -> Call | None:
        call = self._held.pop(call_id, None)
        if call is not None and call.request is not None:
            self._held_bytes -= _size(call.request)
            call.status, call.reason = status, reason
        return call


def _closed_note(closed: Closed, count: int) -> str:
    many, to = "s" * (count != 1), f"to {closed.broker}:{closed.port}"
    if closed.unanswered:
        return f"{count} ClientHello{many} {to} without ServerHello: see tls_alert, closed_by"
    version = f", TLS {closed.version}" if closed.version else ""
    return f"{count} TLS connection{many} {to}{version}, without keys: see --tls-keylog"


def _size(packet: Packet) -> int:
    return len(packet["data"]) + _HELD_BYTES_EACH


def _first_frame(call: Call) -> tuple[int, int]:
    packet = call.packets[0]
    return packet["capture"], packet["first_frame"]


def _ended(columns: Sequence[Any]) -> dict[int, tuple[str, str | None]]:
    """Call id -> status and reason of rows of the table api_calls."""
    names = [name for name, _, _ in COLUMNS["api_calls"]]
    by_name = dict(zip(names, columns, strict=True))
    ids = memoryview(by_name["call_id"][4]).cast("B").cast("q")
    statuses = memoryview(by_name["status"][4]).cast("B")
    reasons = memoryview(by_name["reason"][4]).cast("B")
    validity = by_name["reason"][3]
    valid = None if validity is None else memoryview(validity).cast("B")
    ended: dict[int, tuple[str, str | None]] = {}
    for row in range(by_name["call_id"][1]):
        has_reason = valid is None or valid[row >> 3] >> (row & 7) & 1
        reason = ENUMS["reason"][reasons[row]] if has_reason else None
        ended[ids[row]] = ENUMS["status"][statuses[row]], reason
    return ended
