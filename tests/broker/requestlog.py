"""The brokers' own log of the requests they answered, as rows: what kwsniff's calls are compared with."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MARK = "Completed request:"
Json = Any
# The parts of a request's time in Kafka's log (RequestChannel.Request.updateRequestMetrics), and our columns:
# read until taken up, worked on, waiting for others (data, members, followers), how long the connection stays
# muted for a quota, answered until taken up by the network thread, written. Without the quota's, their sum is
# the total: since KIP-219 the broker answers first. The clock starts when the whole request has been read,
# and a connection is read on only after its answer: what a request waits behind another is in no log.
PARTS = {
    "request_queue_us": "requestQueueTimeMs",
    "local_us": "localTimeMs",
    "remote_us": "remoteTimeMs",
    "throttle_us": "throttleTimeMs",
    "response_queue_us": "responseQueueTimeMs",
    "send_us": "sendTimeMs",
    "total_us": "totalTimeMs",
}
# The offset that says most about a call, per API: side of the call, name in Kafka's JSON, kwsniff's column.
OFFSETS = {
    0: ("response", "baseOffset", "base_offset"),
    1: ("response", "highWatermark", "high_watermark"),
    2: ("response", "offset", "requested_offset"),
    8: ("request", "committedOffset", "requested_offset"),
    9: ("response", "committedOffset", "requested_offset"),
}


@dataclass(frozen=True, slots=True)
class Logged:
    """One request as its broker logged it."""

    broker_port: int
    client_port: int
    api: str  # as the broker names it: API_VERSIONS
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    error_code: int  # first that is not 0, in the order of Kafka's JSON; 0 if none
    error_count: int
    throttle_time_ms: int
    record_bytes: int | None
    software: str
    offsets: tuple[int, ...]  # of the partitions, those that are not negative; see OFFSETS
    served_us: int  # from the whole request read to the answer made
    forwarded: bool  # it came inside an Envelope: no message of its own on the wire
    request_queue_us: int | None = (
        None  # this and what follows: see PARTS; recordings before had only the sum
    )
    local_us: int | None = None
    remote_us: int | None = None
    throttle_us: int | None = None
    response_queue_us: int | None = None
    send_us: int | None = None
    total_us: int | None = None


def _walk(value: Json) -> Iterator[tuple[str, Json]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from _walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner)


def _row(entry: Json) -> Logged:
    header, connection = entry["requestHeader"], entry["connection"].split("-")
    found = list(_walk(entry.get("response")))
    errors = [value for key, value in found if key.lower().endswith("errorcode") and value]
    body = entry.get("request") if header["requestApiKey"] == 0 else entry.get("response")
    side, key, _ = OFFSETS.get(header["requestApiKey"], ("response", "", ""))
    offsets = [value for name, value in _walk(entry.get(side)) if name == key and value >= 0]
    sizes = [value for key, value in _walk(body) if key == "recordsSizeInBytes"]
    return Logged(
        broker_port=int(connection[0].rsplit(":", 1)[1]),
        client_port=int(connection[1].rsplit(":", 1)[1]),
        api=header["requestApiKeyName"],
        api_key=header["requestApiKey"],
        api_version=header["requestApiVersion"],
        correlation_id=header["correlationId"],
        client_id=header.get("clientId") or "",
        error_code=errors[0] if errors else 0,
        error_count=len(errors),
        throttle_time_ms=max((value for key, value in found if key == "throttleTimeMs"), default=0),
        record_bytes=sum(sizes) if sizes else None,
        software=entry["clientInformation"]["softwareName"],
        offsets=tuple(sorted(offsets)),
        served_us=int(
            1000 * sum(entry[part] for part in ("requestQueueTimeMs", "localTimeMs", "remoteTimeMs"))
        ),
        forwarded=entry["isForwarded"],
        **{column: round(1000 * entry[name]) for column, name in PARTS.items()},
    )


def rows(paths: Iterable[Path], begin: datetime, end: datetime, *, on_the_wire: bool = False) -> list[Logged]:
    """Requests that came in and were answered between two moments; `on_the_wire`: from other hosts only."""
    found = []
    for path in paths:
        for line in path.read_text("utf-8", "replace").splitlines():
            stamp, mark, text = line.partition(MARK)
            if not mark:
                continue
            entry = json.loads(text)
            finished = datetime.strptime(stamp.strip(), "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
            started = finished.timestamp() - entry["totalTimeMs"] / 1000
            if (
                on_the_wire
                and len({side.rsplit(":", 1)[0] for side in entry["connection"].split("-")[:2]}) == 1
            ):
                continue  # a controller of ZooKeeper's time and its own broker
            if begin.timestamp() <= started and finished <= end:
                found.append(_row(entry))
    return found


def written(path: Path, logged: Iterable[Logged]) -> None:
    """Writes rows as tab-separated text."""
    names = [field.name for field in fields(Logged)]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, names, delimiter="\t", lineterminator="\n")
        table.writeheader()
        table.writerows(asdict(row) | {"offsets": " ".join(map(str, row.offsets))} for row in logged)


def read(path: Path) -> list[Logged]:
    """Rows back from `written`."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_restored(row) for row in csv.DictReader(file, delimiter="\t")]


def _restored(row: dict[str, str]) -> Logged:
    texts = {"api", "client_id", "software", "forwarded", "record_bytes", "offsets"}
    numbers = {key: int(value) for key, value in row.items() if key not in texts and value}
    return Logged(
        **numbers,
        api=row["api"],
        client_id=row["client_id"],
        software=row["software"],
        forwarded=row["forwarded"] == "True",
        offsets=tuple(map(int, row["offsets"].split())),
        record_bytes=int(row["record_bytes"]) if row["record_bytes"] else None,
    )
