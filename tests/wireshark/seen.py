"""What tshark shows of packets, with and without the plugin, and what tables say of the same packets."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kwsniff

PLUGIN = Path(kwsniff.__file__).parent / "wireshark" / "kwsniff.lua"
PARTS = (
    "request_transmission", "network", "queue_wait", "broker", "deliberate_wait", "response_transmission",
)  # fmt: skip
FIELDS = (
    "kwsniff.call", "kwsniff.api", "kwsniff.version", "kwsniff.latency",
    *(f"kwsniff.latency.{part}" for part in PARTS), "kwsniff.finding",
)  # fmt: skip
ALONE = {**os.environ, "HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}
"""Without plugins and settings of the user."""
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


class Packet(NamedTuple):
    """Of one TCP layer: addresses and ports as texts, payload in bytes."""

    sender: tuple[str, str]
    receiver: tuple[str, str]
    payload: int


def run_tshark(capture: Path, *words: str, fields: Sequence[str]) -> dict[int, list[list[str]]]:
    """Number of a packet -> the values of each field."""
    asked = [word for field in ("frame.number", *fields) for word in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-n", "-r", str(capture), *words, "-T", "fields", "-E", "occurrence=a", *asked],
        capture_output=True, text=True, check=False, env=ALONE,
    )  # fmt: skip
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {int(row[0]): [cell.split(",") if cell else [] for cell in row[1:]] for row in rows}


def shown(capture: Path, index: Path, *words: str) -> dict[int, list[list[str]]]:
    """Packets of which the plugin says something, with the values of FIELDS, sorted."""
    words = ("-X", f"lua_script:{PLUGIN}", "-o", f"kwsniff.index:{index}", *words)
    seen = run_tshark(capture, *words, fields=FIELDS)
    return {frame: [sorted(cell) for cell in row] for frame, row in seen.items() if any(row)}


def read_packets(capture: Path) -> dict[int, Packet]:
    """The TCP packets as tshark sees them: the innermost layer of each."""
    fields = ("ip.src", "ipv6.src", "ip.dst", "ipv6.dst", "tcp.srcport", "tcp.dstport", "tcp.len")
    seen = {}
    for frame, row in run_tshark(capture, fields=fields).items():
        v4, v6, to_v4, to_v6, source, target, size = (cell[-1] if cell else "" for cell in row)
        if source:
            seen[frame] = Packet((v4 or v6, source), (to_v4 or to_v6, target), int(size or 0))
    return seen


def _messages(call: Mapping[str, Any]) -> Iterable[tuple[int, int, tuple[str, str], tuple[str, str]]]:
    client = (call["client_address"], str(call["client_port"]))
    broker = (call["broker_address"], str(call["broker_port"]))
    if call["request_frame"] is not None:
        yield call["request_frame"], call["request_end_frame"] or call["request_frame"], client, broker
    if call["response_frame"] is not None:
        yield call["response_frame"], call["response_end_frame"] or call["response_frame"], broker, client


def _seconds(nanoseconds: int) -> str:
    sign, number = "-" if nanoseconds < 0 else "", abs(nanoseconds)
    return f"{sign}{number // 10**9}.{number % 10**9:09d}"


def told(tables: Path, packets: Mapping[int, Packet]) -> dict[int, list[list[str]]]:
    """The same as `shown`, from the tables of one capture."""
    rows = kwsniff.open(tables)
    latencies = {row["call_id"]: row for row in rows.latencies.to_pylist()}
    names, found = {}, defaultdict(set)
    for finding in rows.findings.to_pylist():
        names[finding["finding_id"]] = finding["finding"]
        for call in finding["call_ids"]:
            found["call", call].add(finding["finding"])
        for frame in finding["frames"]:
            found["frame", frame].add(finding["finding"])
    first = {row["connection_id"]: row["first_frame"] for row in rows.connections.to_pylist()}
    for row in rows.finding_calls.to_pylist():
        if row["call_id"] is not None:
            found["call", row["call_id"]].add(names[row["finding_id"]])
        else:
            found["first", first[row["connection_id"]]].add(names[row["finding_id"]])
    said: dict[int, list[list[str]]] = defaultdict(lambda: [[] for _ in FIELDS])
    for call in rows.api_calls.to_pylist():
        parts = latencies.get(call["call_id"])
        values = [call["call_id"], call["api_name"], call["api_version"], call["latency_ns"]]
        values += [parts and parts[f"{part}_ns"] for part in PARTS]
        for begin, end, sender, receiver in _messages(call):
            for frame in range(min(begin, end), max(begin, end) + 1):
                packet = packets.get(frame)
                between = packet and packet.payload and packet[:2] == (sender, receiver)
                if frame not in (begin, end) and not between:
                    continue
                for position, value in enumerate(values):
                    if value is not None:
                        text = _seconds(value) if position >= 3 else str(value)
                        said[frame][position].append(text)
                said[frame][-1] += found["call", call["call_id"]]
    for (kind, frame), some in found.items():
        if kind != "call":
            said[frame][-1] += some
    return {frame: [sorted(cell) for cell in row] for frame, row in said.items() if any(row)}
