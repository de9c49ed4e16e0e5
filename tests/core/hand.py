"""Packets put together by hand, field by field, and what the analyzer says of them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any

from tests.pipeline.running import CORE_TABLES, analyzer, rows_of, run
from tests.traffic.files import Frame, pcap

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
CLIENT, BROKER = ("10.0.0.1", 50_000), ("10.0.0.2", 9092)
START_NS = 1_700_000_000 * 10**9

Rows = dict[str, list[dict[str, Any]]]


def tcp(
    payload: bytes = b"",
    seq: int = 1,
    ack: int = 0,
    flags: int = ACK,
    *,
    ports: tuple[int, int] = (50_000, 9092),
    options: bytes = b"",
    window: int = 512,
) -> bytes:
    """A segment (RFC 9293 3.1), with options of a multiple of four bytes; the checksum is left 0."""
    words = (20 + len(options)) // 4 << 4
    return struct.pack(">HHIIBBHHH", *ports, seq, ack, words, flags, window, 0, 0) + options + payload


def sack(*blocks: tuple[int, int]) -> bytes:
    """TCP's option with these blocks (RFC 2018 3)."""
    edges = [edge % 2**32 for block in blocks for edge in block]
    return struct.pack(f">BBBB{len(edges)}I", 1, 1, 5, 2 + 4 * len(edges), *edges)


def ipv4(
    payload: bytes, *, protocol: int = 6, source: str = "10.0.0.1", target: str = "10.0.0.2",
    total: int | None = None, ident: int = 1, fragment: int = 0, options: bytes = b"",
) -> bytes:  # fmt: skip
    """RFC 791 3.1; `fragment` is the word of flags and offset."""
    length = 20 + len(options) + len(payload) if total is None else total
    head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, 0, length, ident, fragment, 64, protocol, 0)
    return head + ip_address(source).packed + ip_address(target).packed + options + payload


def ipv6(
    payload: bytes,
    *,
    following: int = 6,
    source: str = "fd00::1",
    target: str = "fd00::2",
    length: int | None = None,
) -> bytes:
    """RFC 8200 3; `payload` begins with the extension headers."""
    size = len(payload) if length is None else length
    head = struct.pack(">IHBB", 6 << 28, size, following, 64)
    return head + ip_address(source).packed + ip_address(target).packed + payload


def facts_of(data: bytes, **options: Any) -> Mapping[str, Any]:
    """What the analyzer says of a capture file as a whole."""
    _, facts = run([data], **options)
    return facts


def verdicts_of(packets: Sequence[bytes], link: int = 101, **options: Any) -> dict[str, int]:
    """How many packets got which verdict (those that none got are left out)."""
    data = pcap([Frame(START_NS, packet, len(packet)) for packet in packets], link)
    return verdicts_in(facts_of(data, **options))


def verdicts_in(facts: Mapping[str, Any]) -> dict[str, int]:
    found = {key[8:]: num for key, num in facts.items() if key.startswith("packets_") and num}
    assert sum(found.values()) == facts["packets"]
    return found


def tables_of(
    packets: Sequence[bytes], *, times_ns: Sequence[int] = (), link: int = 101, **options: Any
) -> Rows:
    """Rows of every table for raw IP packets, one millisecond apart unless their times are given."""
    times = times_ns or [START_NS + number * 1_000_000 for number in range(len(packets))]
    frames = [Frame(time, packet, len(packet)) for time, packet in zip(times, packets, strict=True)]
    engine = analyzer(**options)
    engine.open_capture("capture")
    engine.feed(pcap(frames, link, nanoseconds=True))
    facts = engine.close_capture()
    engine.finish()
    assert sum(engine.accounting(0).values()) == facts["tcp_payload_bytes"]
    return rows_of({name: engine.drain(name) for name in CORE_TABLES})


class Talk:
    """One connection of 10.0.0.1:50000 with the broker 10.0.0.2:9092, segment by segment; numbers move on by
    themselves, and every segment acknowledges what the other side has sent so far."""

    def __init__(self, client_isn: int = 999, broker_isn: int = 4_999) -> None:
        self.next = {True: client_isn, False: broker_isn}
        self.packets: list[bytes] = []

    def send(
        self,
        from_client: bool,
        payload: bytes = b"",
        flags: int = ACK,
        *,
        seq: int | None = None,
        ack: int | None = None,
        options: bytes = b"",
        window: int = 512,
        keep: bool = True,
    ) -> bytes:
        """Adds a segment (`seq`: not the next number, which then stays as it is; `ack`: not all that the
        other side has sent); returns its packet."""
        number = self.next[from_client] if seq is None else seq
        ack = (self.next[not from_client] if ack is None else ack) % 2**32 if flags & ACK else 0
        ends = (CLIENT, BROKER) if from_client else (BROKER, CLIENT)
        segment = tcp(
            payload,
            number % 2**32,
            ack,
            flags,
            ports=(ends[0][1], ends[1][1]),
            options=options,
            window=window,
        )
        packet = ipv4(segment, source=ends[0][0], target=ends[1][0])
        if seq is None:
            self.next[from_client] = number + len(payload) + bool(flags & SYN) + bool(flags & FIN)
        if keep:
            self.packets.append(packet)
        return packet

    def open(self) -> Talk:
        self.send(True, flags=SYN)
        self.send(False, flags=SYN | ACK)
        self.send(True)
        return self


def request(number: int, name: bytes = b"client") -> bytes:
    """ApiVersions 0 with its size."""
    body = struct.pack(">hhih", 18, 0, number, len(name)) + name
    return struct.pack(">i", len(body)) + body


def response(number: int) -> bytes:
    """No error, no APIs."""
    return struct.pack(">iihi", 10, number, 0, 0)


def assert_answered(tables: Rows, *numbers: int, name: str = "client") -> None:
    """These calls, whole, in this order, and no other."""
    rows = sorted(tables["api_calls"], key=lambda row: (row["request_frame"], row["correlation_id"]))
    assert [(row["correlation_id"], row["status"], row["reason"], row["client_id"]) for row in rows] == [
        (number, "answered", None, name) for number in numbers
    ]
    assert {row["client_port"] for row in rows} <= {50_000}


def connection_of(tables: Rows) -> dict[str, Any]:
    (row,) = tables["connections"]
    return row


def names(tables: Rows) -> list[str]:
    return sorted(row["name"] for row in tables["anomalies"])


def at_ms(number: int) -> datetime:
    """A moment as rows have it, so many milliseconds after the first packet's."""
    return datetime.fromtimestamp(START_NS // 10**9, UTC) + timedelta(milliseconds=number)


def ask(talk: Talk, number: int) -> None:
    talk.send(True, request(number))
    talk.send(False, response(number))
