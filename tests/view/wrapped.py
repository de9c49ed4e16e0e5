"""Messages and record sets around bytes that a test wants to see inside."""

import struct
from collections.abc import Sequence

from kwsniff.view.decode import Message, decode
from kwsniff.view.model import Inner
from tests.traffic.messages import produce
from tests.traffic.records import crc32c, record
from tests.traffic.wire import Encoder

KeyValue = tuple[bytes | None, bytes | None]


def record_set(records: Sequence[KeyValue], *, attributes: int = 0) -> bytes:
    """One batch of format 2."""
    body = b"".join(record(value, delta, key) for delta, (key, value) in enumerate(records))
    last = len(records) - 1
    tail = struct.pack(">hiqqqhii", attributes, last, 1000, 2000, 7, 3, -1, len(records)) + body
    after_size = struct.pack(">ibI", 0, 2, crc32c(tail)) + tail
    return struct.pack(">qi", 40, len(after_size)) + after_size


def produced(topic: str, records: bytes) -> Message:
    return decode(produce(9, 1, {topic: {0: records}}).request[4:])


def only(message: Message) -> Inner:
    """What is inside the one bytes field of a message."""
    (inner,) = message.found_inside().values()
    return inner


def request(key: int, version: int, body: Encoder | bytes, *, flexible: bool = False) -> bytes:
    """Header and body of a request, without the size."""
    head = struct.pack(">hhi", key, version, 9) + b"\0\2me" + (b"\0" if flexible else b"")
    return head + bytes(body.data if isinstance(body, Encoder) else body)


def response(body: Encoder | bytes, *, flexible: bool = False) -> bytes:
    head = struct.pack(">i", 9) + (b"\0" if flexible else b"")
    return head + bytes(body.data if isinstance(body, Encoder) else body)


def join_group(protocol_type: str, metadata: bytes) -> bytes:
    """JoinGroup request v0."""
    body = Encoder(False).string("g").i32(10).string("").string(protocol_type)
    return request(11, 0, body.count(1).string("range").blob(metadata))


def envelope(inner: bytes, principal: bytes | None) -> bytes:
    """Envelope request v0."""
    return request(58, 0, Encoder(True).blob(inner).blob(principal).blob(b"\x0a\0\0\7").tags(), flexible=True)
