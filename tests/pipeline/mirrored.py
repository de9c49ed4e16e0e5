"""Recorded captures as mirrors and overlays would have sent them, and what must come out all the same."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.pipeline.running import chunks, rows_of, run
from tests.traffic.files import Frame, pcap, read_frames

ROOT = Path(__file__).parents[2] / "captures"
ETHERNET = 1
Rows = dict[str, list[dict[str, Any]]]


@cache
def recorded(name: str) -> tuple[Frame, ...]:
    """The Ethernet frames of a recorded capture."""
    link, found = read_frames((ROOT / name / "capture.pcap").read_bytes())
    assert link == ETHERNET
    return tuple(found)


def tables(data: bytes, **options: Any) -> tuple[Rows, dict[str, Any]]:
    columns, facts = run(chunks(data, [65_536]), **options)
    return rows_of(columns), dict(facts)


def of_frames(rows: Iterable[Frame], link: int = ETHERNET, **options: Any) -> tuple[Rows, dict[str, Any]]:
    return tables(pcap(rows, link, nanoseconds=True), **options)


def timed(row: Frame, pieces: Sequence[bytes]) -> list[Frame]:
    """The frames that carry a frame, at its time."""
    return [Frame(row.time_ns, piece, len(piece)) for piece in pieces]


def calls(rows: Rows, *, frames: bool = True) -> list[dict[str, Any]]:
    """Rows of calls without what packet numbers give, unless frames are the same."""
    hidden = {"capture"} if frames else {"capture", "call_id", "connection_id"}
    return [
        {
            name: value
            for name, value in row.items()
            if name not in hidden and (frames or not name.endswith("_frame"))
        }
        for row in rows["api_calls"]
    ]


def by_interface(rows: Iterable[tuple[int, Frame]], interfaces: int = 4, link: int = ETHERNET) -> bytes:
    """A pcapng in which every frame has its interface."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + size + body + size

    out = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    nanoseconds = struct.pack("<HHBxxx", 9, 1, 9)
    out += [block(1, struct.pack("<HHI", link, 0, 0) + nanoseconds) for _ in range(interfaces)]
    for interface, row in rows:
        time, size = row.time_ns, len(row.data)
        head = struct.pack("<IIIII", interface, time >> 32, time & 0xFFFFFFFF, size, row.length)
        out.append(block(6, head + row.data))
    return b"".join(out)
