"""What a capture really holds, computed from the script and the packets that are in it.

The first byte of a message is seen in the first packet that carries it; likewise the last byte. Frame numbers
count packets from 1, as Wireshark does. Times are cut to the capture's resolution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tests.traffic.tcp import Call, Packet, Span

Clock = Callable[[int], int]


def microseconds(time_ns: int) -> int:
    """What is left of a time in a capture of microseconds."""
    return time_ns // 1_000 * 1_000


@dataclass(frozen=True, slots=True)
class Seen:
    """A message in a capture: frames and times (ns) of its first and last byte, and of the packet that
    completed it (later than the last byte's when segments were out of order)."""

    first_frame: int
    last_frame: int
    complete_frame: int
    first_ns: int
    last_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class TrueCall:
    """One call as it happened; ``request``/``response`` is None where a byte of it is not in the capture."""

    call: Call
    request: Seen | None
    response: Seen | None

    @property
    def status(self) -> str:
        if not self.call.exchange.expects_response:
            return "no_response_expected"
        return "answered" if self.request and self.response else "unanswered"

    @property
    def error_code(self) -> int | None:
        """First non-zero code of the response, 0 if it has none."""
        if self.response is None:
            return None
        errors = self.call.exchange.facts.errors
        return errors[0].code if errors else 0


def frame_of(packets: Sequence[Packet], connection: int, from_client: bool, byte: int) -> int | None:
    """Index of the first packet that carries a stream byte."""
    for index, packet in enumerate(packets):
        if (
            packet.connection == connection
            and packet.from_client == from_client
            and packet.offset <= byte < packet.end
        ):
            return index
    return None


def seen(
    packets: Sequence[Packet], call: Call, span: Span | None, from_client: bool, clock: Clock
) -> Seen | None:
    if span is None:
        return None
    missing = bytearray(b"\1" * (span.end - span.start))
    complete = None
    for index, packet in enumerate(packets):
        if packet.connection != call.connection or packet.from_client != from_client:
            continue
        start, end = max(packet.offset, span.start), min(packet.end, span.end)
        if start < end:
            missing[start - span.start : end - span.start] = bytes(end - start)
            if complete is None and 1 not in missing:
                complete = index
    if complete is None:
        return None
    first = frame_of(packets, call.connection, from_client, span.start)
    last = frame_of(packets, call.connection, from_client, span.end - 1)
    if first is None or last is None:
        raise AssertionError("every byte was seen, so the first and the last were")
    return Seen(
        first + 1,
        last + 1,
        complete + 1,
        clock(packets[first].time_ns),
        clock(packets[last].time_ns),
        span.end - span.start,
    )


def truth(calls: Iterable[Call], packets: Sequence[Packet], clock: Clock = microseconds) -> list[TrueCall]:
    """The calls in the order of their requests on the wire."""
    rows = [
        TrueCall(
            call,
            seen(packets, call, call.request, True, clock),
            seen(packets, call, call.response, False, clock),
        )
        for call in calls
    ]
    rows.sort(key=lambda row: (row.request.first_frame if row.request else 0, row.call.request.start))
    return rows
