"""Open connections of any protocol: endpoints, protocol, round trip, retransmissions, bytes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import whole_numbers
from kwsniff.tables.rows import pick
from kwsniff.texts import in_bytes, plural

MOST_SHOWN: Final = 1_000
_COLUMNS: Final = (
    "client_address", "client_port", "broker_address", "broker_port", "protocol", "client_id", "tls_version",
    "tls_server_name", "client_round_trip_ns", "broker_round_trip_ns", "client_bytes", "broker_bytes",
    "client_packets", "broker_packets", "client_retransmitted_bytes", "broker_retransmitted_bytes",
    "client_software_name", "client_software_version", "ending", "tls_cipher", "client_tls_records",
    "broker_tls_records",
)  # fmt: skip
_SENT: Final = ("client_bytes", "client_tls_records", "broker_bytes", "broker_tls_records")

Row = Mapping[str, Any]


def open_connections(batch: pa.RecordBatch | None) -> Sequence[Row]:
    """Rows of the connections table, those with most bytes first, as values by name."""
    if batch is None or not batch.num_rows:
        return ()
    carried = whole_numbers(batch["client_bytes"], null=0) + whole_numbers(batch["broker_bytes"], null=0)
    chosen = np.zeros(batch.num_rows, np.bool_)
    chosen[np.argsort(-carried, kind="stable")[:MOST_SHOWN]] = True
    rows = [dict(zip(_COLUMNS, values, strict=True)) for values in pick(batch, chosen, _COLUMNS)]
    return sorted(rows, key=lambda row: -(row["client_bytes"] + row["broker_bytes"]))


def not_opened(rows: Sequence[Row]) -> dict[str, int]:
    """TLS connections that are not decrypted: their number, and the bytes and records of each side."""
    sealed = [row for row in rows if row["protocol"] == "tls"]
    sums = {name: sum(row[name] or 0 for row in sealed) for name in _SENT}
    return {"connections": len(sealed), **sums}


def not_opened_words(rows: Sequence[Row]) -> str:
    """The same as a text; empty when there are none."""
    sums = not_opened(rows)
    sent = (
        f"{side} sent {in_bytes(sums[f'{side}_bytes'])} in {plural(sums[f'{side}_tls_records'], 'record')}"
        for side in ("client", "broker")
    )
    return (
        f"{plural(number, 'connection')}, not decrypted: {', '.join(sent)}"
        if (number := sums["connections"])
        else ""
    )
