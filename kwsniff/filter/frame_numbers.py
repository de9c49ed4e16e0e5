"""Wireshark's numbers of packets and TCP streams in a filter (`--frame`, `--stream`), and their calls.

A number counts in one capture file. One reading of the file finds its connections, another one a packet's
sender: so a call is compared with the connection and the direction of the packet.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from kwsniff.analyzers import start_analyzer
from kwsniff.core.capture.packet_offsets import PacketPlaces, connection_number
from kwsniff.core.declared import ENUMS
from kwsniff.errors import CaptureError
from kwsniff.filter.attributes import FRAME
from kwsniff.filter.conditions import NumberCondition, PacketCondition, TextCondition
from kwsniff.filter.expression import Filter, Junction, Node
from kwsniff.layout.catalog import load_catalog
from kwsniff.sources.files import CaptureFile
from kwsniff.tables.build import PartBuilder
from kwsniff.view.wanted_packets import end_number

_COLUMNS: Final = (
    "client_address", "client_port", "broker_address", "broker_port", "first_frame", "last_frame",
)  # fmt: skip
_FRAME_AT: Final = 2
_NUMBERS: Final = 8
_NEVER: Final = NumberCondition("call_id", "=", ())

End = tuple[str, int]
"""Address and port."""


class _Packet(NamedTuple):
    """From PacketPlaces."""

    frame: int
    connection: int
    sender: int
    payload: int


@dataclass(frozen=True, slots=True)
class _Connection:
    """A connection of one file: its ends, and its first and last packet there."""

    ends: tuple[End, End]
    first: int
    last: int


def locate_packets(filter_: Filter, captures: Sequence[str]) -> Filter:
    """The filter with conditions on columns of api_calls in place of packets. Raises UsageError for captures
    that cannot be read twice, CaptureError for files that are none."""
    if not filter_.asks_packets:
        return filter_
    if not all(Path(name).is_file() for name in captures):
        filter_.check_located()
    return filter_.locate(lambda packets: _any([_locate(packets, name) for name in captures]))


def _locate(packets: PacketCondition, capture: str) -> Node:
    connections = _find_connections(capture)
    if packets.column == FRAME:
        found = [_of_packet(packet, connections) for packet in _find_packets(capture, packets.numbers)]
    else:
        streams = sorted(number for number in packets.numbers if number < len(connections))
        found = [_of_stream(connections[number]) for number in streams]
    return _all(TextCondition("capture", frozenset({capture}).__contains__), _any(found))


def _of_stream(connection: _Connection) -> Node:
    """Calls with a message between the connection's first and last packet."""
    times = [
        _all(_at_least(column, connection.first), _at_most(column, connection.last))
        for column in ("request_frame", "response_end_frame")
    ]
    return _all(_of_ends(*connection.ends), _any(times))


def _of_packet(packet: _Packet, connections: Iterable[_Connection]) -> Node:
    """Calls with bytes in the packet. One without bytes belongs to calls between request and response."""
    for connection in connections:
        one, other = connection.ends
        if (
            connection.first <= packet.frame <= connection.last
            and connection_number(end_number(*one), end_number(*other)) == packet.connection
        ):
            if not packet.payload:
                return _all(
                    _of_ends(one, other), _covers(packet.frame, "request_frame", "response_end_frame")
                )
            if end_number(*one) != packet.sender:
                one, other = other, one
            return _any([
                _all(_of_client(one, other), _covers(packet.frame, "request_frame", "request_end_frame")),
                _all(_of_client(other, one), _covers(packet.frame, "response_frame", "response_end_frame")),
            ])  # fmt: skip
    return _NEVER


def _find_connections(capture: str) -> list[_Connection]:
    """The TCP connections of a file in the order of their first packets, as Wireshark numbers them."""
    analyzer = start_analyzer(load_catalog(), ("connections",))
    builder = PartBuilder(load_catalog(), ENUMS)
    rows: list[dict[str, Any]] = []

    def drain() -> None:
        batch = builder.build_some("connections", analyzer.drain("connections"), set(_COLUMNS))
        rows.extend(batch.to_pylist())

    analyzer.when_full = drain
    with CaptureFile(capture) as opened:
        analyzer.open_capture(opened.name)
        try:
            for buffer in opened.readable():
                analyzer.feed(buffer)
                if analyzer.stopped:
                    break
            analyzer.close_capture()
        except CaptureError as error:
            raise CaptureError(f"{opened.name}: {error}") from error
    analyzer.finish()
    drain()
    found = [
        _Connection(
            ((row["client_address"], row["client_port"]), (row["broker_address"], row["broker_port"])),
            row["first_frame"],
            row["last_frame"],
        )
        for row in rows
    ]
    return sorted(found, key=lambda each: each.first)


def _find_packets(capture: str, frames: frozenset[int]) -> Iterator[_Packet]:
    """Packets with these numbers, as far as they are TCP segments."""
    places = PacketPlaces(None)
    wanted = np.array(sorted(frames), np.int64)
    rest = bytearray()
    with CaptureFile(capture) as opened:
        for buffer in opened.readable():
            rest += buffer
            used, packets, _ = places.feed(rest)
            del rest[:used]
            numbers = np.frombuffer(packets, np.int64).reshape(-1, _NUMBERS)
            for row in numbers[np.isin(numbers[:, _FRAME_AT], wanted)].tolist():
                yield _Packet(*islice(row, _FRAME_AT, _FRAME_AT + len(_Packet._fields)))
            if places.stopped or (len(numbers) and numbers[-1, _FRAME_AT] >= wanted[-1]):
                return


def _of_ends(one: End, other: End) -> Node:
    return _any([_of_client(one, other), _of_client(other, one)])


def _of_client(client: End, broker: End) -> Node:
    return _all(*_is_end("client", client), *_is_end("broker", broker))


def _is_end(side: str, end: End) -> tuple[Node, Node]:
    address, port = end
    return (
        TextCondition(f"{side}_address", frozenset({address}).__contains__),
        NumberCondition(f"{side}_port", "=", (Fraction(port),)),
    )


def _covers(frame: int, first: str, last: str) -> Node:
    return _all(_at_most(first, frame), _at_least(last, frame))


def _at_least(column: str, number: int) -> Node:
    return NumberCondition(column, ">=", (Fraction(number),))


def _at_most(column: str, number: int) -> Node:
    return NumberCondition(column, "<=", (Fraction(number),))


def _all(*parts: Node) -> Node:
    return Junction(parts, all=True)


def _any(parts: Sequence[Node]) -> Node:
    return Junction(tuple(parts), all=False) if parts else _NEVER
