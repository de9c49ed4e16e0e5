"""Record batches of format 2, written by hand, with their CRC-32C."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Sequence

from tests.traffic.wire import zigzag

_POLYNOMIAL = 0x82F63B78


def _table() -> tuple[int, ...]:
    rows = []
    for start in range(256):
        value = start
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        rows.append(value)
    return tuple(rows)


_CRC_TABLE = _table()


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli, RFC 3720 B.4)."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _CRC_TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def record(value: bytes | None, offset_delta: int, key: bytes | None = None) -> bytes:
    body = b"\0" + zigzag(offset_delta) + zigzag(offset_delta)
    for part in (key, value):
        body += zigzag(-1) if part is None else zigzag(len(part)) + part
    body += zigzag(0)
    return zigzag(len(body)) + body


def batch(
    values: Sequence[bytes],
    *,
    base_offset: int = 0,
    gzipped: bool = False,
    compress: tuple[int, Callable[[bytes], bytes]] | None = None,
    time_ms: int = 1_700_000_000_000,
    producer: tuple[int, int, int] = (-1, -1, -1),
    flags: int = 0,
) -> bytes:
    """One batch of ``values`` without keys; ``gzipped`` compresses the records (codec 1), ``compress``
    does it with another codec.

    ``producer``: id, epoch, first sequence. ``flags``: 8 the broker's time, 16 transactional, 32 control.
    """
    records = b"".join(record(value, delta) for delta, value in enumerate(values))
    if gzipped:
        records = gzip.compress(records, mtime=0)
    if compress:
        flags |= compress[0]
        records = compress[1](records)
    last = max(len(values) - 1, 0)
    tail = (
        struct.pack(">hiqqqhii", flags | gzipped, last, time_ms, time_ms + last, *producer, len(values))
        + records
    )
    after_size = struct.pack(">ibI", 0, 2, crc32c(tail)) + tail
    return struct.pack(">qi", base_offset, len(after_size)) + after_size


def count_records(data: bytes | None) -> int:
    """Records in a set of whole batches, as the batch headers say."""
    total = 0
    at = 0
    while data and at < len(data):
        size = struct.unpack_from(">i", data, at + 8)[0]
        total += struct.unpack_from(">i", data, at + 57)[0]
        at += 12 + size
    return total
