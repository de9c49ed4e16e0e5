"""kwsniff's tables as plain rows, and a script's calls as the rows they must give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.tables.runs import of_any_run
from tests.traffic.files import Frame, frames, pcap
from tests.traffic.links import LINKS
from tests.traffic.tcp import Call, Packet, Scene
from tests.traffic.truth import Clock, Seen, TrueCall, microseconds, truth

Row = dict[str, Any]
Tables = Mapping[str, list[Row]]
TABLES = (
    "api_calls", "latencies", "error_codes", "connections", "anomalies", "partitions", "record_batches",
    "tcp_events", "stalls", "hops", "groups", "members", "transactions", "commits", "deliveries",
    "brokers", "leaders", "api_ranges", "clients", "servers", "captures",
)  # fmt: skip
# How a run numbers things and what file it read: not part of what a capture says.
NUMBERING = (
    "call_id",
    "call_ids",
    "first_call_id",
    "last_call_id",
    "high_watermark_call_id",
    "produced_call_id",
    "visible_call_id",
    "fetched_call_id",
    "committed_call_id",
    "connection_id",
    "capture",
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def analyzed(*paths: Path, **options: Any) -> Tables:
    """Runs kwsniff.analyze; every table as a list of rows."""
    pytest.importorskip("kwsniff.core.analyzer", reason="the analyzer is not built")
    import kwsniff

    result = kwsniff.analyze([str(path) for path in paths], **options)
    return {name: of_any_run(getattr(result, name)).to_pylist() for name in TABLES}


def decoded(*paths: Path, **options: Any) -> Tables:
    """As analyzed, without findings, which take longer than all else; the column `harm` is null."""
    return analyzed(*paths, **{"tables": TABLES, **options})


def capture_of(path: Path, packets: Sequence[Packet]) -> Path:
    """Writes a plain pcap of these packets."""
    path.write_bytes(pcap(frames(packets)))
    return path


def analyzed_packets(folder: Path, packets: Sequence[Packet], **options: Any) -> Tables:
    return decoded(capture_of(folder / "capture.pcap", packets), **options)


def written(path: Path, rows: Sequence[Frame], link: str = "ethernet") -> Path:
    path.write_bytes(pcap(rows, LINKS[link].number))
    return path


def moment(time_ns: int) -> datetime:
    """A time as the tables have it: whole microseconds, rounded down."""
    return EPOCH + timedelta(microseconds=time_ns // 1000)


def _message(side: str, seen: Seen | None, timed: bool) -> Row:
    row: Row = {
        f"{side}_frame": seen and seen.first_frame,
        f"{side}_end_frame": seen and seen.last_frame,
        f"{side}_bytes": seen and seen.size,
    }
    if timed:
        row[f"{side}_time"] = seen and moment(seen.first_ns)
        row[f"{side}_end_time"] = seen and moment(seen.last_ns)
    return row


def expected_call(true: TrueCall, *, timed: bool = True) -> Row:
    """The api_calls row of a call whose request was seen whole."""
    exchange, facts = true.call.exchange, true.call.exchange.facts
    answered = true.response is not None
    row: Row = {
        "client_address": true.call.client.address,
        "client_port": true.call.client.port,
        "broker_address": true.call.broker.address,
        "broker_port": true.call.broker.port,
        "api_key": exchange.api_key,
        "api_name": exchange.api,
        "api_version": exchange.version,
        "correlation_id": exchange.correlation_id,
        "client_id": exchange.client_id,
        "status": true.status,
        "error_code": true.error_code,
        "error_count": len(facts.errors) if answered else None,
        "throttle_time_ms": facts.throttle_time_ms if answered else None,
        "group_id": facts.group_id,
        "transactional_id": facts.transactional_id,
        "acks": facts.acks,
        "topics": facts.topics and list(facts.topics),
    }
    row |= _message("request", true.request, timed) | _message("response", true.response, timed)
    if timed and true.request and true.response:
        row["latency_ns"] = true.response.last_ns - true.request.first_ns
    if facts.partition_count is not None:
        row["partition_count"] = facts.partition_count
    if facts.record_bytes is not None and (answered or exchange.api_key == 0):
        row["record_bytes"] = facts.record_bytes
        row["record_count"] = facts.record_count
    return row


def expected_errors(rows: Iterable[TrueCall]) -> list[tuple[Any, ...]]:
    """(client port, correlation id, api, topic, partition, code), sorted as text."""
    found = [
        (true.call.client.port, true.call.exchange.correlation_id, true.call.exchange.api,
         error.topic, error.partition, error.code)
        for true in rows
        if true.response is not None
        for error in true.call.exchange.facts.errors
    ]  # fmt: skip
    return sorted(found, key=repr)


def found_errors(tables: Tables) -> list[tuple[Any, ...]]:
    ports = {row["call_id"]: row["client_port"] for row in tables["api_calls"]}
    found = [
        (ports[row["call_id"]], row["correlation_id"], row["api_name"], row["topic"], row["partition"],
         row["error_code"])
        for row in tables["error_codes"]
    ]  # fmt: skip
    return sorted(found, key=repr)


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Calls in the order of their requests on the wire."""
    return sorted(rows, key=lambda row: (row["request_frame"] or 0, row["call_id"]))


def assert_calls(
    tables: Tables,
    calls: Iterable[Call],
    packets: Sequence[Packet],
    *,
    clock: Clock = microseconds,
    timed: bool = True,
    without: Sequence[str] = (),
) -> None:
    """kwsniff's calls and errors are those of the script, one by one, field by field."""
    true = truth(calls, packets, clock)
    found = in_order(tables["api_calls"])
    wanted = [expected_call(row, timed=timed) for row in true]
    names = [f"{row['api_name']} {row['correlation_id']}" for row in found]
    assert names == [f"{row['api_name']} {row['correlation_id']}" for row in wanted]
    for got, want in zip(found, wanted, strict=True):
        keys = [key for key in want if key not in without]
        assert {key: got[key] for key in keys} == {key: want[key] for key in keys}
    assert found_errors(tables) == expected_errors(true)


def assert_scene(
    folder: Path, scene: Scene, packets: Sequence[Packet] | None = None, **options: Any
) -> Tables:
    """Writes a scene's packets to a capture and checks what kwsniff makes of it."""
    chosen = scene.packets() if packets is None else packets
    tables = analyzed_packets(folder, chosen)
    assert_calls(tables, scene.calls, chosen, **options)
    return tables


def content(tables: Tables, *, without: Sequence[str] = ()) -> dict[str, list[Row]]:
    """The tables without numbering, file facts and chosen columns: equal for equal traffic."""
    dropped = {*NUMBERING, *without}
    return {
        name: [{key: value for key, value in row.items() if key not in dropped} for row in rows]
        for name, rows in tables.items()
        if name != "captures"
    }
