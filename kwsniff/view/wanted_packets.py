"""The packets of selected calls, with a comment for each: the input of `kwsniff slice`."""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, ip_address
from typing import Final

from kwsniff.core.capture.packet_offsets import connection_number, endpoint_number
from kwsniff.sources.slices import Wanted
from kwsniff.texts import in_time
from kwsniff.view.call import catalog_of
from kwsniff.view.selection import Call, Packet

_ALL: Final = (1 << 63) - 1
_MAPPED: Final = bytes(10) + b"\xff\xff"


class WantedPackets:
    """Collects calls. `around`: nanoseconds of their connections' packets before and after each call, -1 for
    all; `handshakes`: includes the TCP handshakes of these connections; `finding`: what the calls prove."""

    def __init__(
        self,
        captures: Sequence[str],
        *,
        around: int | None = None,
        handshakes: bool = False,
        finding: str | None = None,
    ) -> None:
        self.captures = captures
        self.of = [Wanted(handshakes=handshakes) for _ in captures]
        """In the order of the captures."""
        self.calls = 0
        self._around = around
        self._finding = f"finding {finding}" if finding else ""
        self._everywhere = around is not None or handshakes

    def add(self, call: Call) -> None:
        """All packets with a call's bytes; the first packet of each message gets a comment."""
        self.calls += call.id is not None
        for packet in call.packets:
            client = end_number(packet["client_address"], packet["client_port"])
            broker = end_number(packet["broker_address"], packet["broker_port"])
            connection = connection_number(client, broker)
            sender = broker if packet["direction"] else client
            first, last = packet["capture"], max(packet["capture"], packet["last_capture"])
            for number in range(first, last + 1):
                begin = packet["first_frame"] if number == first else 0
                end = packet["last_frame"] or begin
                self.of[number].frames[connection, sender].append((begin, end if number == last else _ALL))
                self.of[number].connections.add(connection)
            proof = f"; {self._finding}" if self._finding else ""
            self.of[first].comments[packet["first_frame"]].append(_comment(call, packet) + proof)
            if self._everywhere:
                self._add_surroundings(connection, packet)

    def add_single(self, capture: str, frame: int) -> None:
        """A packet that proves the finding without a call."""
        wanted = self.of[self.captures.index(capture)]
        wanted.single.add(frame)
        wanted.comments[frame].append(self._finding)

    def _add_surroundings(self, connection: int, packet: Packet) -> None:
        times = [time for time in (packet["first_time"], packet["last_time"]) if time is not None]
        for wanted in self.of:
            wanted.connections.add(connection)
            if self._around == -1:
                wanted.frames[connection, 0] = [(0, _ALL)]
            elif self._around is not None and times:
                wanted.times[connection].append((min(times) - self._around, max(times) + self._around))

    @property
    def is_empty(self) -> bool:
        """Whether no packet was selected."""
        return all(wanted.is_empty for wanted in self.of)


@lru_cache(10_000)
def end_number(address: str, port: int) -> int:
    """The number of one end of a connection, as PacketPlaces has it."""
    known = ip_address(address)
    return endpoint_number((_MAPPED if isinstance(known, IPv4Address) else b"") + known.packed, port)


def _comment(call: Call, packet: Packet) -> str:
    key, version = packet["api_key"], packet["api_version"]
    api = None if key is None else catalog_of(packet).apis.get(key)
    name = "Kafka" if key is None else f"{api.name if api else f'API {key}'} v{version}"
    told = [f"{name} {'response' if packet['direction'] else 'request'}"]
    if packet["correlation_id"] is not None:
        told.append(f"correlation id {packet['correlation_id']}")
    if packet["direction"] and packet["latency_ns"] is not None:
        told.append(f"answered in {in_time(packet['latency_ns'])}")
    elif not packet["direction"] and call.status not in (None, "answered"):
        told.append(call.status.replace("_", " ") if call.status else "")
    return f"{'' if call.id is None else f'call {call.id}: '}{', '.join(told)}"
