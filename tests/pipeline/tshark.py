"""tshark as a second reader of packets: what it finds in a capture, without kwsniff's help."""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

Way = tuple[str, int, str, int]
"""One direction: address and port of its sender, then of its receiver."""
_FIELDS = (
    "frame.time_epoch", "frame.protocols", "tcp.stream", "tcp.seq_raw", "tcp.flags", "tcp.len",
    "tcp.payload", "ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport", "ip.proto",
    "ip.flags.mf", "ip.frag_offset", "ipv6.fraghdr.nxt", "ipv6.fraghdr.more", "ipv6.fraghdr.offset",
)  # fmt: skip

_ELSEWHERE = ("sflow:", "gre:wlan", "udp:gre:")
"""Layers before TCP that make it traffic inside something which kwsniff does not open."""
_JOINED = {"4", "6", "41", "47"}
"""IP protocols whose fragments are put together; those of UDP, too, when it may be a tunnel."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Captured payload of one segment, by position after the first number its direction showed."""

    seq: int
    data: bytes


@dataclass(slots=True)
class View:
    """What tshark says of a capture."""

    packets: int = 0
    tcp_packets: int = 0
    elsewhere: int = 0
    fragments: int = 0
    times_ns: list[int] = field(default_factory=list)
    streams: set[str] = field(default_factory=set)
    pieces: dict[Way, list[Piece]] = field(default_factory=lambda: defaultdict(list))
    unsupported: str | None = None


def _nanoseconds(text: str) -> int:
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])


def _last(cell: str) -> str:
    return cell.rpartition(",")[2]


def _is_fragment(row: dict[str, str]) -> bool:
    if row["ipv6.fraghdr.nxt"] in _JOINED:
        return row["ipv6.fraghdr.more"] == "1" or row["ipv6.fraghdr.offset"] != "0"
    if row["ipv6.fraghdr.nxt"] == "17":
        return row["ipv6.fraghdr.offset"] != "0"
    if _last(row["ip.proto"]) == "17":  # the first one has ports, which are none of a tunnel
        return _last(row["ip.frag_offset"]) != "0"
    return _last(row["ip.proto"]) in _JOINED and (
        _last(row["ip.flags.mf"]) == "1" or _last(row["ip.frag_offset"]) != "0"
    )


def tshark_view(path: Path) -> View:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    command = ["tshark", "-n", "-o", "tcp.desegment_tcp_streams:FALSE", "-r", str(path), "-T", "fields"]
    command += ["-E", "separator=|"] + [part for name in _FIELDS for part in ("-e", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    view = View()
    if "TShark doesn't support" in done.stderr:
        view.unsupported = done.stderr
    for line in done.stdout.splitlines():
        row = dict(zip(_FIELDS, line.split("|"), strict=True))
        view.packets += 1
        if row["frame.time_epoch"]:
            view.times_ns.append(_nanoseconds(row["frame.time_epoch"]))
        layers = row["frame.protocols"].split(":")
        if "tcp" not in layers:
            view.fragments += _is_fragment(row)
        elif any(layers_ in row["frame.protocols"] for layers_ in _ELSEWHERE):
            view.elsewhere += 1
        else:
            view.tcp_packets += 1
            _add_segment(view, row)
    return view


def _add_segment(view: View, row: dict[str, str]) -> None:
    if not row["tcp.stream"]:
        return
    view.streams.add(row["tcp.stream"])
    layers = row["frame.protocols"].split(":")
    innermost = next(layer for layer in reversed(layers[: layers.index("tcp")]) if layer in ("ip", "ipv6"))
    source, target = (_last(row[f"{innermost}.{end}"]) for end in ("src", "dst"))
    data = bytes.fromhex(row["tcp.payload"])
    if data:
        way = source, int(row["tcp.srcport"]), target, int(row["tcp.dstport"])
        syn = int(row["tcp.flags"], 16) >> 1 & 1
        view.pieces[way].append(Piece(int(row["tcp.seq_raw"]) + syn, data))


def distinct_bytes(pieces: Sequence[Piece]) -> int:
    """Positions that at least one piece carries; numbers are taken modulo 2^32 around the first piece."""
    first = pieces[0].seq
    spans = []
    for piece in pieces:
        start = (piece.seq - first + (1 << 31)) % (1 << 32) - (1 << 31)
        spans.append((start, start + len(piece.data)))
    total = 0
    reached = min(start for start, _ in spans)
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
