"""Captures too large to script packet by packet: one frame, stamped again and again."""

import struct
from collections.abc import Iterator

HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 101)
_RECORD = struct.Struct("<IIII")
_IP_TCP = struct.Struct(">BBHHHBBH4s4sHHIIBBHHH")


def packet(
    client: int,
    port: int,
    payload: bytes = b"",
    *,
    flags: int = 24,
    seq: int = 0,
    ack: int = 0,
    back: bool = False,
) -> bytes:
    """A record with IPv4 and TCP: from 10.0.0.0 + `client` to 11.0.0.1:9092, or `back`."""
    here, there = struct.pack(">I", 0x0A000000 + client), b"\x0b\0\0\1"
    ports = (9092, port) if back else (port, 9092)
    addresses = (there, here) if back else (here, there)
    total = 40 + len(payload)
    head = _IP_TCP.pack(
        0x45, 0, total if total < 65_536 else 0, 0, 0, 64, 6, 0, *addresses, *ports,
        seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, 0x50, flags, 65_535, 0, 0,
    )  # fmt: skip
    return _RECORD.pack(1, 0, total, total) + head + payload


def handshake(client: int = 1, port: int = 50_000) -> bytes:
    """Both sides begin at sequence number 1."""
    return b"".join(
        [
            packet(client, port, flags=2),
            packet(client, port, flags=18, ack=1, back=True),
            packet(client, port, flags=16, seq=1, ack=1),
        ]
    )


def stream(
    data: bytes,
    at: int = 0,
    *,
    client: int = 1,
    port: int = 50_000,
    back: bool = False,
    ack: int = 1,
    mss: int = 60_000,
) -> Iterator[bytes]:
    """Packets that carry `data` from stream offset `at` on."""
    for start in range(0, len(data), mss):
        yield packet(client, port, data[start : start + mss], seq=1 + at + start, ack=ack, back=back)


def half_open(num: int, each: int = 20_000) -> Iterator[bytes]:
    """`num` connections that are a SYN and nothing else, in chunks of `each`."""
    for start in range(0, num, each):
        yield b"".join(packet(n // 50_000, 1024 + n % 50_000, flags=2) for n in range(start, start + each))


def rss() -> int:
    """Bytes of memory this process has now."""
    with open("/proc/self/statm") as words:  # noqa: PTH123
        return int(words.read().split()[1]) * 4096
