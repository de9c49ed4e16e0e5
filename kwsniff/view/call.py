"""A call with its decoded messages and the facts from the capture, for display or as JSON.

A `Conversation` decodes calls in order and remembers the names of topic ids. Secrets are hidden when a call
is drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.limits import Limits
from kwsniff.texts import display_filter, in_time
from kwsniff.view.decode import Message, decode
from kwsniff.view.embedded import find_inner
from kwsniff.view.formats import plural
from kwsniff.view.model import Message as AnyMessage
from kwsniff.view.model import Surroundings
from kwsniff.view.redact import hide
from kwsniff.view.selection import Call, Packet
from kwsniff.view.text import message_lines
from kwsniff.zones import UTC_ZONE, Zone

_NO_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
# Kafka gives its metadata log a fixed id.
_METADATA_LOG: Final = {"AAAAAAAAAAAAAAAAAAAAAQ": "__cluster_metadata"}


class Part(NamedTuple):
    """A message of a call; ``message`` is None for bytes without a layout (a bare SASL token)."""

    packet: Packet
    message: Message | None

    @property
    def side(self) -> str:
        """``request`` or ``response``."""
        return "response" if self.packet["direction"] else "request"


@dataclass(frozen=True, slots=True)
class Drawing:
    """How calls are drawn: hidden content to show, messages to include, format."""

    payload: bool = False
    secrets: bool = False
    hexdump: bool = False
    sides: tuple[str, ...] = ("request", "response")
    captures: tuple[str, ...] = ()
    zone: Zone = UTC_ZONE
    """The zone of times in text; JSON has UTC."""


@dataclass(slots=True)
class DecodedCall:
    """A call with its messages decoded."""

    call: Call
    parts: tuple[Part, ...]

    def message(self, side: str) -> Message | None:
        """The decoded request or response."""
        return next((part.message for part in self.parts if part.side == side), None)

    def lines(self, drawing: Drawing) -> Iterator[str]:
        """The call as text: a heading, then each message with its frames, time, size and tree."""
        yield _heading(self.call)
        filters = self._display_filters(drawing)
        for one in filters:
            where = f", in {one['capture']}" if len(filters) > 1 and one["capture"] else ""
            yield f"  Wireshark: {one['filter']}{where}"
        for part in self._choose(drawing):
            yield f"  {_title(part, drawing)}"
            if part.message is None:
                data = part.packet["data"]
                yield f"    {data.hex() if drawing.secrets else f'<redacted, {len(data)} bytes>'}"
                continue
            tree = message_lines(part.message, drawing.zone)
            lines = part.message.hexdump().splitlines() if drawing.hexdump else tree
            yield from (f"    {line}" for line in lines)

    def _display_filters(self, drawing: Drawing) -> list[dict[str, str | None]]:
        """One for each capture with packets of the call: `capture`, None if unknown, and `filter`."""
        frames: dict[int, list[tuple[int, int | None]]] = {}
        for packet in self.call.packets:
            first, last = packet["first_frame"], packet["last_frame"]
            if last is not None and packet["last_capture"] != packet["capture"]:
                frames.setdefault(packet["last_capture"], []).append((last, last))
                last = first
            frames.setdefault(packet["capture"], []).append((first, last))
        port = self.call.packets[0]["client_port"]
        return [
            {
                "capture": drawing.captures[capture] if drawing.captures else None,
                "filter": display_filter(spans, port),
            }
            for capture, spans in sorted(frames.items())
        ]

    def documents(self, drawing: Drawing) -> Iterator[dict[str, Any]]:
        """The call's messages as JSON values: facts from the capture, then the format of ``kwsniff
        decode``."""
        filters = {"display_filters": self._display_filters(drawing)}
        for part in self._choose(drawing):
            yield {**_facts(self.call, part, drawing), **filters, **_contents(part, drawing)}

    def _choose(self, drawing: Drawing) -> Iterator[Part]:
        for part in self.parts:
            if part.side in drawing.sides:
                if part.message is not None:
                    hide(part.message, payload=drawing.payload, secrets=drawing.secrets)
                yield part


class Conversation:
    """Decodes calls in order. ``topics``: topic id -> name, known at the start."""

    def __init__(self, limits: Limits | None = None, topics: dict[str, str] | None = None) -> None:
        self.topics = {} if topics is None else topics
        self.topics.update(_METADATA_LOG)
        limits = limits or Limits()
        self._most_topics = limits.topic_ids
        # A tree takes a few hundred bytes per field.
        self._limits = replace(limits, message_fields=min(limits.message_fields, limits.shown_fields))

    def decode(self, call: Call) -> DecodedCall:
        """Decode the messages of a call, the response with facts from the request."""
        around = Surroundings(topics=self.topics)
        parts = []
        for packet in call.packets:
            message = _decode(packet, self._limits)
            if message is not None:
                self.learn(message)
                message.inner = find_inner(message, around)
                for one in message.inner.values():
                    if one.message is not None:
                        self.learn(one.message)
                if packet["kind"] == "request":
                    around = surroundings(message, self.topics)
            parts.append(Part(packet, message))
        return DecodedCall(call, tuple(parts))

    def learn(self, message: AnyMessage) -> None:
        """Keep the names that a message gives topic ids."""
        tree = message.tree
        tree.topics = self.topics
        fields = tree.shape.fields
        if not any(field is not None and field.meaning is Meaning.TOPIC_ID for field in fields):
            return
        for _, node in tree.walk():
            known: dict[Meaning, str] = {}
            for child in node.children:
                field = fields[child.op]
                if field is not None and isinstance(child.value, str):
                    known.setdefault(field.meaning, child.value)
            topic_id, name = known.get(Meaning.TOPIC_ID, _NO_TOPIC_ID), known.get(Meaning.TOPIC)
            if name and topic_id != _NO_TOPIC_ID and len(self.topics) < self._most_topics:
                self.topics[topic_id] = name


def surroundings(request: Message, topics: dict[str, str]) -> Surroundings:
    """Facts from a request for decoding its response."""
    around = Surroundings(topics=topics)
    for child in request.body.children if request.body else ():
        if child.name == "protocol_type" and isinstance(child.value, str):
            around.protocol_type = child.value
    for one in (request.inner or {}).values():
        inner = one.message
        if inner is not None and inner.api_key is not None and inner.api_version is not None:
            around.asked = (inner.api_key, inner.api_version)
    return around


def _decode(packet: Packet, limits: Limits) -> Message | None:
    if packet["kind"] == "sasl_token":
        return None
    if packet["kind"] == "request":
        return decode(packet["data"], limits=limits, catalog=catalog_of(packet))
    # Without the request, only the correlation id of a response can be read.
    key, version = (-1 if packet[name] is None else packet[name] for name in ("api_key", "api_version"))
    return decode(
        packet["data"],
        direction="response",
        api_key=key,
        api_version=version,
        limits=limits,
        catalog=catalog_of(packet),
    )


def catalog_of(packet: Packet) -> Catalog:
    """The layouts that a packet's call was read with."""
    return load_catalog().of_product(packet["product"])


def _heading(call: Call) -> str:
    packet = call.packets[0]
    title = f"call {call.id}" if call.id is not None else _no_call(packet)
    client = f"{packet['client_address']}:{packet['client_port']}"
    broker = f"{packet['broker_address']}:{packet['broker_port']}"
    parts = [f"{title}: {_api(packet)}", f"connection {packet['connection_id']}", f"{client} to {broker}"]
    latency = call.response["latency_ns"] if call.response else None
    if call.status:
        status = call.status.replace("_", " ")
        parts.append(f"{status} in {in_time(latency)}" if latency is not None else status)
    if call.reason:
        parts.append(call.reason.replace("_", " "))
    return ", ".join(part for part in parts if part)


def _no_call(packet: Packet) -> str:
    return {"sasl_token": "SASL token", "unexpected_response": "response of an unknown request"}.get(
        packet["kind"], "no call"
    )


def _api(packet: Packet) -> str:
    if packet["api_key"] is None:
        return (
            f"correlation id {packet['correlation_id']}"
            if packet["correlation_id"] is not None
            else "no layout"
        )
    api = catalog_of(packet).apis.get(packet["api_key"])
    return f"{api.name if api else 'unknown api'} v{packet['api_version']} (key {packet['api_key']})"


def _title(part: Part, drawing: Drawing) -> str:
    packet = part.packet
    first, last = packet["first_frame"], packet["last_frame"]
    frames = f"frame {first}" if last in (first, None) else f"frames {first} to {last}"
    parts = [part.side, frames]
    if len(drawing.captures) > 1:
        parts.append(f"of {drawing.captures[packet['capture']]}")
    if packet["first_time"] is not None:
        parts.append(drawing.zone.moment(packet["first_time"], 9))
    parts.append(plural(packet["length"], "byte"))
    if packet["torn"]:
        parts.append(f"only {len(packet['data'])} of them captured in one piece")
    return ", ".join(parts)


def _facts(call: Call, part: Part, drawing: Drawing) -> dict[str, Any]:
    packet = part.packet
    api = catalog_of(packet).apis.get(packet["api_key"]) if packet["api_key"] is not None else None
    times = {name: packet[name] for name in ("first_time", "last_time")}
    return {
        "call_id": call.id,
        "capture": drawing.captures[packet["capture"]] if drawing.captures else None,
        **{name: packet[name] for name in ("connection_id", "client_address", "client_port")},
        **{name: packet[name] for name in ("broker_address", "broker_port")},
        "kind": packet["kind"],
        "direction": part.side,
        "api_name": api.name if api else None,
        "correlation_id": packet["correlation_id"],
        **{name: None if time is None else _in_nanoseconds(time) for name, time in times.items()},
        **{name: packet[name] for name in ("first_frame", "last_frame")},
        "bytes": packet["length"],
        "torn": packet["torn"],
        "latency_ns": packet["latency_ns"],
        "status": call.status,
        "reason": call.reason,
    }


def _contents(part: Part, drawing: Drawing) -> dict[str, Any]:
    if part.message is not None:
        contents = part.message.as_full_dict()
        contents |= {name: part.packet[name] for name in ("api_key", "api_version")}
        return contents
    token = part.packet["data"].hex() if drawing.secrets else f"<redacted, {len(part.packet['data'])} bytes>"
    empty: dict[str, Any] = {"api_key": None, "api_version": None, "header": None, "body": None}
    return {**empty, "unknown_tags": [], "error": None, "inside": [], "token": token}


def _in_nanoseconds(time: int) -> str:
    """A capture's time (nanoseconds since the epoch) as ISO 8601 with nine digits."""
    seconds, rest = divmod(time, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"
