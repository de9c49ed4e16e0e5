"""Scenes in the clear and inside TLS, and what of their tables must be the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.compare import Row, Tables, capture_of, decoded
from tests.traffic import messages, tls
from tests.traffic.peers import Peers
from tests.traffic.records import batch
from tests.traffic.tcp import MILLISECOND, Packet, Scene

BOTH = pytest.mark.parametrize("version", tls.VERSIONS, ids=lambda version: version.name)

# What the handshake's packets change: frames, positions in streams, and what acknowledgements took.
PLACES = {"capture", "frame", "stream_offset", "first_frame", "last_frame", "broker_round_trip_error_ns"} | {
    f"{side}_{which}frame" for side in ("request", "response") for which in ("", "end_")
}
TABLES = (
    "api_calls", "latencies", "error_codes", "partitions", "record_batches", "groups", "members",
    "transactions", "commits", "deliveries", "brokers", "leaders", "api_ranges", "clients", "servers",
)  # fmt: skip
_CALLS = (
    "call_id", "first_call_id", "last_call_id", "high_watermark_call_id", "queued_behind", "produced_call_id",
    "visible_call_id", "fetched_call_id", "committed_call_id",
)  # fmt: skip


def wide(size: int = 30_000, calls: int = 4) -> Scene:
    """Messages over many segments and several records, questions and answers on two connections at once."""
    scene = Scene()
    for number in range(2):
        script = scene.connection(mss=(1448, 536)[number])
        script.open(at=number * 1000)
        for call in range(1, calls + 1):
            data = {"orders": {0: batch([bytes([call]) * (size + call)])}}
            at = 10 * call * MILLISECOND + number * 333
            ask = (messages.produce, messages.fetch)[(call + number) % 2]
            script.call(ask(7 if call % 2 else 8, call, data), at=at, answer_at=at + 4 * MILLISECOND)
        script.close(at=(calls + 2) * 10 * MILLISECOND)
    return scene


def facts(rows: Sequence[Row], without: set[str] = PLACES) -> list[Row]:
    """Calls and connections are numbered by packets: what must be the same is which comes before which."""
    found = [{name: value for name, value in row.items() if name not in without} for row in rows]
    calls = _places(
        [row[name] for row in found for name in _CALLS if name in row]
        + [number for row in found for number in row.get("call_ids", ())]
    )
    connections = _places([row["connection_id"] for row in found if "connection_id" in row])
    for row in found:
        row |= {name: calls[row[name]] for name in _CALLS if name in row}
        if "call_ids" in row:
            row["call_ids"] = [calls[number] for number in row["call_ids"]]
        if "connection_id" in row:
            row["connection_id"] = connections[row["connection_id"]]
    return found


def _places(numbers: Sequence[int | None]) -> dict[int | None, int | None]:
    known = {number for number in numbers if number is not None}
    return {number: place for place, number in enumerate(sorted(known))} | {None: None}


def timings(rows: Sequence[Row]) -> set[str]:
    """Columns that change when a message takes a packet more, as records do."""
    return {name for row in rows for name in row if name.endswith(("time", "_ns"))}


def written(path: Path, packets: Sequence[Packet]) -> Path:
    return capture_of(path, packets)


def both(
    folder: Path, keys: tls.KeyLog | Peers, plain: Scene, encrypted: Scene, **options: Any
) -> tuple[Tables, Tables]:
    """The tables of the plain scene, and those of the encrypted one with its key log."""
    return (
        decoded(written(folder / "plain.pcap", plain.packets()), **options),
        decoded(written(folder / "tls.pcap", encrypted.packets()), tls_keylog=keys.path, **options),
    )
