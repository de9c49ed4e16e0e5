"""Scripted TCP connections: who says what when, cut into segments.

A `Script` collects what both sides write; `packets()` cuts each direction's byte stream into segments of at
most `mss` bytes. Bytes written by one side at the same instant share segments, as a real stack would send
them. A packet remembers which stream bytes it carries, so the truth can be computed after any damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.traffic.exchange import Exchange

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MODULUS = 1 << 32
MICROSECOND = 1_000
MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Endpoint:
    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Packet:
    """One TCP segment; ``offset`` is the stream offset of the payload's first byte."""

    time_ns: int
    source: Endpoint
    target: Endpoint
    seq: int
    ack: int
    flags: int
    payload: bytes
    connection: int
    from_client: bool
    offset: int
    window: int = 501

    @property
    def end(self) -> int:
        return self.offset + len(self.payload)


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes [start, end) of one direction's stream."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Call:
    """One scripted call: where its bytes are in the two streams (None: never sent)."""

    exchange: Exchange
    connection: int
    client: Endpoint
    broker: Endpoint
    request: Span
    response: Span | None


@dataclass(slots=True)
class _Side:
    """One direction: its writes as (time, order, bytes) and the stream they make."""

    isn: int
    writes: list[tuple[int, int, bytes]] = field(default_factory=list)
    length: int = 0
    last: int = -1

    def write(self, at: int, order: int, data: bytes) -> Span:
        if at < self.last:
            raise ValueError("a side writes in the order of its stream: times may not go back")
        self.last = at
        self.writes.append((at, order, data))
        span = Span(self.length, self.length + len(data))
        self.length = span.end
        return span


class Script:
    """One connection. Times are nanoseconds after ``epoch_ns``."""

    def __init__(
        self,
        number: int,
        client: Endpoint,
        broker: Endpoint,
        *,
        mss: int = 1448,
        client_isn: int = 1_000,
        broker_isn: int = 4_000_000_000,
        gap_ns: int = MICROSECOND,
        epoch_ns: int = 1_700_000_000 * 10**9,
    ) -> None:
        self.number = number
        self.client = client
        self.broker = broker
        self.mss = mss
        self.gap_ns = gap_ns
        self.epoch_ns = epoch_ns
        self.calls: list[Call] = []
        self._sides = {True: _Side(client_isn), False: _Side(broker_isn)}
        self._controls: list[tuple[int, int, bool, int]] = []
        self._windows: dict[int, int] = {}
        self._order = 0

    def emptied(self) -> Script:
        """The same connection before anything was said."""
        client, broker = (self._sides[side].isn for side in (True, False))
        return Script(
            self.number,
            self.client,
            self.broker,
            mss=self.mss,
            client_isn=client,
            broker_isn=broker,
            gap_ns=self.gap_ns,
            epoch_ns=self.epoch_ns,
        )

    def open(self, at: int = 0, round_trip_ns: int = 200 * MICROSECOND) -> None:
        """SYN, SYN+ACK, ACK as seen at the client."""
        self._control(at, True, SYN)
        self._control(at + round_trip_ns, False, SYN | ACK)
        self._control(at + round_trip_ns + MICROSECOND, True, ACK)

    def call(self, exchange: Exchange, at: int, answer_at: int | None = None) -> Call:
        """The request is written at ``at``; its response, if there is one, at ``answer_at``."""
        request = self.write(exchange.request, at, from_client=True)
        response = None
        if exchange.response is not None and answer_at is not None:
            response = self.write(exchange.response, answer_at, from_client=False)
        made = Call(exchange, self.number, self.client, self.broker, request, response)
        self.calls.append(made)
        return made

    def write(self, data: bytes, at: int, *, from_client: bool) -> Span:
        """Raw bytes of one side."""
        self._order += 1
        return self._sides[from_client].write(at, self._order, data)

    def close(self, at: int, *, from_client: bool = True) -> None:
        """FIN both ways and the last ACK."""
        self._control(at, from_client, FIN | ACK)
        self._control(at + MICROSECOND, not from_client, FIN | ACK)
        self._control(at + 2 * MICROSECOND, from_client, ACK)

    def reset(self, at: int, *, from_client: bool = False) -> None:
        self._control(at, from_client, RST | ACK)

    def acknowledge(self, at: int, *, from_client: bool, window: int = 501) -> None:
        """An ACK without payload, of everything the other side has sent until then."""
        self._control(at, from_client, ACK)
        self._windows[self._order] = window

    def _control(self, at: int, from_client: bool, flags: int) -> None:
        self._order += 1
        self._controls.append((at, self._order, from_client, flags))

    def _segments(self, from_client: bool) -> Iterator[tuple[int, int, bool, int, bytes]]:
        """(time, order, direction, flags, payload) of the data segments of one side."""
        pending: list[tuple[int, int, bytes]] = []
        for write in [*self._sides[from_client].writes, (-1, 0, b"")]:
            if pending and write[0] != pending[0][0]:
                data = b"".join(part for _, _, part in pending)
                for index, start in enumerate(range(0, len(data), self.mss)):
                    piece = data[start : start + self.mss]
                    last = start + self.mss >= len(data)
                    when = pending[0][0] + index * self.gap_ns
                    yield when, pending[0][1], from_client, ACK | (PSH if last else 0), piece
                pending = []
            pending.append(write)

    def packets(self) -> list[Packet]:
        """The connection's packets in the order of their times."""
        events = [(at, order, side, flags, b"") for at, order, side, flags in self._controls]
        events += [*self._segments(True), *self._segments(False)]
        events.sort(key=lambda event: event[:2])
        sent = {True: 0, False: 0}  # stream bytes of each side so far
        ended = {True: 0, False: 0}  # 1 once a side sent FIN, which takes a sequence number
        out = []
        for at, order, side, flags, payload in events:
            mine, other = self._sides[side], self._sides[not side]
            seq = mine.isn + (0 if flags & SYN else 1) + sent[side] + ended[side]
            ack = other.isn + 1 + sent[not side] + ended[not side] if flags & ACK else 0
            source, target = (self.client, self.broker) if side else (self.broker, self.client)
            packet = Packet(
                self.epoch_ns + at,
                source,
                target,
                seq % MODULUS,
                ack % MODULUS,
                flags,
                payload,
                self.number,
                side,
                sent[side],
                self._windows.get(order, 501),
            )
            out.append(packet)
            sent[side] += len(payload)
            ended[side] |= flags & FIN
        return out


class Scene:
    """Several connections in one capture."""

    def __init__(self) -> None:
        self.scripts: list[Script] = []

    def connection(
        self,
        client: Endpoint | None = None,
        broker: Endpoint | None = None,
        *,
        mss: int = 1448,
        client_isn: int = 1_000,
        broker_isn: int = 4_000_000_000,
    ) -> Script:
        number = len(self.scripts)
        script = Script(
            number,
            client or Endpoint("10.1.0.7", 50_000 + number),
            broker or Endpoint("10.1.0.92", 9092),
            mss=mss,
            client_isn=client_isn,
            broker_isn=broker_isn,
        )
        self.scripts.append(script)
        return script

    @property
    def calls(self) -> list[Call]:
        return [call for script in self.scripts for call in script.calls]

    def packets(self) -> list[Packet]:
        """All packets in the order of their times (connections in order at the same instant)."""
        merged = [packet for script in self.scripts for packet in script.packets()]
        merged.sort(key=lambda packet: packet.time_ns)
        return merged
