"""TLS hellos by hand, field by field (RFC 8446 4.1, 5246 7.4.1, 6066 3), and the records around them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

CLIENT, SERVER = 1, 2
GREASE = (0x0A0A, b"")


def vector(data: bytes, width: int) -> bytes:
    """Bytes behind their length."""
    return len(data).to_bytes(width, "big") + data


def extensions(*pairs: tuple[int, bytes]) -> bytes:
    return vector(b"".join(struct.pack(">H", kind) + vector(data, 2) for kind, data in pairs), 2)


def server_name(name: bytes) -> tuple[int, bytes]:
    return 0, vector(b"\0" + vector(name, 2), 2)


def message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + vector(body, 3)


def client_hello(name: bytes | None = b"kafka.example", session: bytes = b"", padding: int = 0) -> bytes:
    offered = [GREASE, (43, vector(b"\x03\x04\x03\x03", 1)), (21, bytes(padding))]
    if name is not None:
        offered.insert(1, server_name(name))
    body = b"\x03\x03" + bytes(range(32)) + vector(session, 1) + vector(b"\x13\x02\x13\x01", 2)
    return message(CLIENT, body + vector(b"\0", 1) + extensions(*offered))


def server_hello(
    suite: int = 0x1302, *, legacy: int = 0x0303, chosen: int | None = 0x0304, session: bytes = b"s" * 32
) -> bytes:
    body = struct.pack(">H", legacy) + b"R" * 32 + vector(session, 1) + struct.pack(">HB", suite, 0)
    if chosen is not None:
        body += extensions((51, b"k" * 36), (43, struct.pack(">H", chosen)))
    return message(SERVER, body)


def records(data: bytes, size: int = 1 << 14, kind: int = 22) -> bytes:
    """A message in records of at most `size` bytes."""
    parts: Iterable[bytes] = (data[at : at + size] for at in range(0, len(data), size))
    return b"".join(bytes([kind, 3, 1]) + vector(part, 2) for part in parts)
