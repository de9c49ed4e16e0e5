"""Takes out of a pcapng file what says on which machine it was recorded."""

from __future__ import annotations

import struct

SECTION, INTERFACE = 0x0A0D0D0A, 1
# bytes before the options and the option codes kept: the application; name, filter, time resolution
KEPT = {SECTION: (16, (4,)), INTERFACE: (8, (2, 9, 11))}


def scrubbed(data: bytes) -> bytes:
    """The same little-endian pcapng without the options for hardware and operating system."""
    out = bytearray()
    at = 0
    while at < len(data):
        kind, total = struct.unpack_from("<II", data, at)
        body = data[at + 8 : at + total - 4]
        if kind in KEPT:
            fixed, codes = KEPT[kind]
            body = body[:fixed] + _options(body[fixed:], codes)
        if kind == SECTION:
            body = body[:8] + struct.pack("<q", -1) + body[16:]
        size = len(body) + 12
        out += struct.pack("<II", kind, size) + body + struct.pack("<I", size)
        at += total
    return bytes(out)


def _options(data: bytes, codes: tuple[int, ...]) -> bytes:
    out = b""
    at = 0
    while at < len(data):
        code, length = struct.unpack_from("<HH", data, at)
        end = at + 4 + length + -length % 4
        if code in codes:
            out += data[at:end]
        at = end
    return out + bytes(4)
