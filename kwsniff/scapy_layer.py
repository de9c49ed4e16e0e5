"""A layer for scapy sessions: Kafka packets that show the same tree as ``kwsniff show``.

    from scapy.all import TCPSession, sniff
    from kwsniff.scapy_layer import Kafka, bind_kafka

    bind_kafka(19092)                                  # 9092 is bound already
    for packet in sniff(offline="capture.pcap", session=TCPSession):
        if Kafka in packet:
            packet[Kafka].show()

With ``session=TCPSession``, frames that span several segments are reassembled and responses are matched to
requests. Without it, every segment counts as one frame and responses stay undecoded. Frames that end in the
same segment are nested as payloads: ``packet[Kafka:2]`` is the second. scapy's session does not notice lost
segments; ``kwsniff show`` does.

Secrets are redacted and records hidden, as in ``kwsniff show``; ``to_message()`` has everything.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Final

from scapy.config import conf
from scapy.fields import FieldLenField, StrLenField
from scapy.layers.inet import TCP
from scapy.packet import Packet, Raw, bind_bottom_up, split_bottom_up

from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import REQUEST
from kwsniff.view.call import Conversation, surroundings
from kwsniff.view.decode import Message, decode
from kwsniff.view.embedded import find_inner
from kwsniff.view.model import Surroundings
from kwsniff.view.redact import hide
from kwsniff.view.text import message_lines

__all__ = ["Kafka", "bind_kafka", "unbind_kafka"]

DEFAULT_PORT: Final = 9092

_MOST_IN_FLIGHT: Final = 4096
_MOST_FRAME_BYTES: Final = 512 << 20
_MOST_SEGMENTS: Final = 4096
# Below this size scapy calls after every segment, which is needed to detect retransmissions.
_LARGE_FRAME: Final = 1 << 20

_ports: set[int] = set()


@dataclass(frozen=True, slots=True)
class _Place:
    """A session's facts on a frame. ``api_key`` is None for a response whose request was not seen."""

    is_response: bool
    api_key: int | None = None
    api_version: int | None = None
    around: Surroundings | None = None
    is_token: bool = False


@dataclass(slots=True)
class _ConnectionState:
    """State of one connection, kept in scapy's session: correlation id -> place of its request."""

    is_response: bool = False
    in_flight: "OrderedDict[int, _Place]" = field(default_factory=OrderedDict)
    conversation: Conversation = field(default_factory=Conversation)
    tokens: bool = False
    segments: "OrderedDict[tuple[int, int, int], None]" = field(default_factory=OrderedDict)

    def has_seen(self, segment: Any, num_bytes: int) -> bool:
        """Record a segment; True if it repeats an earlier one, which scapy does not filter."""
        self.is_response = _is_response(segment)
        size = len(segment.payload)
        key = (segment.sport, segment.seq, size)
        is_known = key in self.segments
        self.segments[key] = None
        if len(self.segments) > _MOST_SEGMENTS:
            self.segments.popitem(last=False)
        return is_known and size == num_bytes

    def place(self, data: bytes) -> _Place:
        """The place of a frame (without its size), from the frames before it."""
        return self._response(data) if self.is_response else self._request(data)

    def _request(self, data: bytes) -> _Place:
        if self.tokens and decode(data).error is not None:
            return _Place(False, is_token=True)
        self.tokens = False
        if len(data) < 8:
            return _Place(False)
        key, version = (int.from_bytes(data[at : at + 2], "big", signed=True) for at in (0, 2))
        around = Surroundings(topics=self.conversation.topics)
        catalog = load_catalog()
        api = catalog.apis.get(key)
        said = catalog.meanings(key, REQUEST)
        if (api and api.traits.wraps) or Meaning.PROTOCOL_TYPE in said:
            message = decode(data)
            message.inner = find_inner(message, around)
            around = surroundings(message, self.conversation.topics)
        self.tokens = bool(api and api.traits.tokens and version in api.traits.tokens)
        if not (Meaning.ACKS in said and _has_no_acks(data)):
            self.in_flight[_correlation_id(data, 4)] = _Place(True, key, version, around)
        if len(self.in_flight) > _MOST_IN_FLIGHT:
            self.in_flight.popitem(last=False)
        return _Place(False, key, version, around)

    def _response(self, data: bytes) -> _Place:
        place = self.in_flight.pop(_correlation_id(data, 0), None) if len(data) >= 4 else None
        if place is None:
            return _Place(True, is_token=self.tokens)
        if place.api_key is not None and load_catalog().names_topics(place.api_key):
            self.conversation.learn(_decode(data, place))
        return place


class Kafka(Packet):  # type: ignore[misc, unused-ignore]
    """One frame: its length and the bytes of the message, shown as a tree."""

    name = "Kafka"
    __slots__ = ("place",)
    fields_desc: ClassVar[list[Any]] = [
        FieldLenField("length", None, length_of="message", fmt="!i"),
        StrLenField("message", b"", length_from=lambda packet: max(packet.length, 0)),
    ]

    def __init__(self, *args: Any, **fields: Any) -> None:
        self.place: _Place | None = None
        super().__init__(*args, **fields)

    @classmethod
    def tcp_reassemble(cls, data: bytes, metadata: dict[str, Any], session: dict[str, Any]) -> Packet | None:
        """The complete frames of a stream's bytes, in order, for scapy's TCPSession; None if there are
        none yet.

        Returns all of them in one call: the session miscounts if a second call meets an incomplete frame.
        """
        state: _ConnectionState = session.setdefault("kafka", _ConnectionState())
        if "original" in metadata and state.has_seen(metadata["original"][TCP], len(data)):
            return Raw(data)
        found: list[Packet] = []
        at = 0
        while len(data) - at >= 4:
            size = int.from_bytes(data[at : at + 4], "big", signed=True)
            if not 0 <= size <= _MOST_FRAME_BYTES:
                # Not Kafka, or no longer: the bytes pass unchanged.
                found.append(Raw(data[at:]))
                at = len(data)
                break
            if size > len(data) - at - 4:
                if size > _LARGE_FRAME:
                    metadata["tcp_min_len"] = size + 4
                break
            packet = cls(data[at : at + size + 4])
            packet.place = state.place(data[at + 4 : at + size + 4])
            found.append(packet)
            at += size + 4
        if not found:
            return None
        if at < len(data):
            found.append(conf.padding_layer(data[at:]))
        for before, behind in pairwise(found):
            before.add_payload(behind)
        return found[0]

    @property
    def side(self) -> str:
        """``request`` or ``response``; without a session, by which of the ports is bound to Kafka."""
        if self.place is not None:
            return "response" if self.place.is_response else "request"
        return "response" if isinstance(self.underlayer, TCP) and _is_response(self.underlayer) else "request"

    def to_message(self) -> Message:
        """The message with nothing hidden, as ``kwsniff.decode`` gives it."""
        place = self.place or _Place(self.side == "response")
        message = _decode(bytes(self.message), place)
        message.tree.topics = place.around.topics if place.around else {}
        message.inner = find_inner(message, place.around)
        return message

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """The payload of a frame is the next frame."""
        return b"", s

    def copy(self) -> "Kafka":
        """A deep copy, including the link to its request."""
        clone: Kafka = super().copy()
        clone.place = self.place
        return clone

    def mysummary(self) -> str:
        """One line: API, version, direction, size."""
        if self.place is not None and self.place.is_token:
            return f"Kafka SASL token, {len(self.message)} bytes"
        message = self.to_message()
        version = "" if message.api_version in (None, -1) else f" v{message.api_version}"
        return f"Kafka {message.api_name or 'unknown api'}{version} {self.side}, {len(self.message)} bytes"

    def _show_or_dump(
        self,
        dump: bool = False,
        indent: int = 3,
        lvl: str = "",
        label_lvl: str = "",
        first_call: bool = True,
    ) -> str | None:
        lines = [f"{label_lvl}###[ {self.mysummary()} ]###"]
        lines += [f"{label_lvl}{lvl}  {line}" for line in self._lines()]
        text = "\n".join(lines) + "\n"
        if self.payload:
            text += (
                self.payload._show_or_dump(
                    dump=dump, indent=indent, lvl=lvl, label_lvl=label_lvl, first_call=False
                )
                or ""
            )
        if dump or not first_call:
            return text
        print(text)  # noqa: T201 -- what show() of a packet does
        return None

    def _lines(self) -> list[str]:
        if self.place is not None and self.place.is_token:
            return [f"<redacted, {len(self.message)} bytes>"]
        message = self.to_message()
        hide(message, self.place.around if self.place else None)
        return list(message_lines(message))


def bind_kafka(*ports: int) -> None:
    """Make scapy dissect TCP segments from and to these ports as Kafka."""
    for port in ports:
        _ports.add(port)
        bind_bottom_up(TCP, Kafka, sport=port)
        bind_bottom_up(TCP, Kafka, dport=port)


def unbind_kafka(*ports: int) -> None:
    """Undo ``bind_kafka``, also for the default port."""
    for port in _ports.intersection(ports):
        _ports.remove(port)
        split_bottom_up(TCP, Kafka, sport=port)
        split_bottom_up(TCP, Kafka, dport=port)


def _is_response(segment: Any) -> bool:
    """A segment from a broker's port; if both ports are bound, the lower one is the broker's (not
    ephemeral)."""
    from_broker, to_broker = segment.sport in _ports, segment.dport in _ports
    return bool(segment.sport < segment.dport) if from_broker and to_broker else from_broker


def _decode(data: bytes, place: _Place) -> Message:
    if not place.is_response:
        return decode(data)
    key, version = (-1 if part is None else part for part in (place.api_key, place.api_version))
    return decode(data, direction="response", api_key=key, api_version=version)


def _has_no_acks(data: bytes) -> bool:
    body = decode(data).body
    return body is not None and any(child.name == "acks" and child.value == 0 for child in body.children)


def _correlation_id(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big", signed=True)


bind_kafka(DEFAULT_PORT)
