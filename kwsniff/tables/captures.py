"""Rows of the captures table, from the core's facts on a file and those of its source."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from kwsniff.sources.files import Unread
from kwsniff.tables.enums import WORDS
from kwsniff.tables.rows import batch_of
from kwsniff.tables.schema import TABLES
from kwsniff.tables.skipped_protocols import encapsulations, format_counts, not_read

CaptureRow = dict[str, Any]

_COUNTS = ("tcp", "not_ip", "not_tcp", "fragment", "malformed", "unknown_link_type", "other_time")


class Source(Protocol):
    """A source's facts on a capture that are not in its bytes; see kwsniff/sources/files.py."""

    name: str
    compression: str | None
    truncated: bool
    note: str | None


@dataclass(slots=True)
class CaptureName:
    """The facts on a capture without its file."""

    name: str
    compression: str | None = None
    truncated: bool = False
    note: str | None = None


def capture_row(source: Source, facts: Mapping[str, Any]) -> CaptureRow:
    """One row, by column name, times in nanoseconds. `facts`: the result of the core's `close_capture()`."""
    row: CaptureRow = {column.name: facts.get(column.name) for column in TABLES["captures"].own}
    for reason in ("not_ip", "not_tcp", "fragment", "malformed", "unknown_link_type", "other_time"):
        row[f"skipped_{reason}"] = facts[f"packets_{reason}"]
    row["not_read"] = format_counts(not_read(facts))
    row["encapsulations"] = format_counts(encapsulations(facts))
    row["capture"] = printable(source.name)
    row["compression"] = source.compression
    row["snaplen"] = facts["snaplen"] or None
    row["tcp_packets"] = facts["packets_tcp"]
    row["truncated"] = facts["truncated"] or source.truncated
    row["notes"] = [source.note] if source.note else []
    return row


def unread_row(unread: Unread) -> CaptureRow:
    """The row of an unreadable file."""
    facts: dict[str, Any] = dict.fromkeys(
        ["packets", *(f"packets_{why}" for why in _COUNTS), "tcp_payload_bytes", "snaplen"], 0
    )
    facts |= {"bytes": unread.size or 0, "truncated": False, "damaged": unread.size is not None}
    row = capture_row(CaptureName(unread.name, note=unread.why), facts)
    account(row, dict.fromkeys(WORDS["bin"], 0))
    return row


def unread_anomalies(unread: Iterable[Unread]) -> list[dict[str, Any]]:
    """Rows of anomalies for files that could not be read at all."""
    columns = [column.name for column in TABLES["anomalies"].columns]
    return [
        {**dict.fromkeys(columns), "capture": printable(each.name), "name": "capture_damaged", "value": 0}
        for each in unread
        if each.size is not None
    ]


def account(row: CaptureRow, payload: Mapping[str, int]) -> None:
    """Adds the parts of the payload to the row; they are known at the end of the analysis."""
    row.update({f"{name}_bytes": num_bytes for name, num_bytes in payload.items()})


def printable(name: str) -> str:
    """A file name as text: bytes that are not UTF-8 become U+FFFD, as in the core's columns."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def captures_batch(rows: Sequence[CaptureRow]) -> pa.RecordBatch:
    """The whole table, in its coded schema."""
    return batch_of("captures", rows)
