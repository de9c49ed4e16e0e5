"""Compares the tables of a live run with those of a recording that another tool made of the same traffic.

The kernel gives every packet socket its own time stamp, so times differ by what lies between two sockets:
less than a microsecond, more when the processor is taken away in between; and packets that two processors
send at the same moment may reach two sockets in different order, so the order in which they came is not
compared, and numbers of calls, which follow that order, stand for the calls that they mean. Everything else
must be equal.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import kwsniff
from kwsniff.tables.column import RUN

from .running import table

TABLES = (
    "api_calls",
    "latencies",
    "error_codes",
    "connections",
    "partitions",
    "record_batches",
    "tcp_events",
    "stalls",
    "groups",
    "transactions",
)
APART = timedelta(milliseconds=100)
_NUMBERING = {"capture", "call_id", "connection_id", RUN}
# Computed of times: which side a capture point is nearer to, whether a wait was as long as was allowed.
_TIMED = {"time", "capture_point", "wait", "queued_behind", "queued_behind_wait"}
_CALLS = "call_ids"
_CALL = ("client_address", "client_port", "broker_port", "correlation_id", "api_key")
_KEY = ("client_port", "broker_port", "correlation_id", "api_key", "api_version", "status")


def differences(live: Path, recording: Path, *, ports: list[int]) -> dict[str, str]:
    """Table -> what differs, for tables in DIR as `kwsniff live` writes them and one capture file."""
    expected = kwsniff.analyze(recording, ports=ports)
    found = {}
    ours = table(live, "api_calls")
    for name in TABLES:
        mine = _untimed(with_calls_named(table(live, name), ours))
        theirs = _untimed(with_calls_named(expected.table(name), expected.api_calls))
        if mine != theirs:
            found[name] = f"only live: {list(mine - theirs)[:2]}; only recorded: {list(theirs - mine)[:2]}"
    if not found and (late := _apart(ours, expected.api_calls)):
        found["times"] = late
    return found


def different_rows(live: Path, recording: Path, *, ports: list[int]) -> tuple[dict[str, int], int]:
    """For millions of rows: table -> how many rows only one of the two has; and the recorded calls."""
    import duckdb

    expected = kwsniff.analyze(recording, ports=ports)
    found = {}
    for name in TABLES:
        theirs = expected.table(name)
        columns = ", ".join(f'"{column}"' for column in theirs.column_names if not _varies(column))
        with duckdb.connect() as connection:
            source = f"read_parquet('{live / name}/*.parquet')"
            if _CALLS in theirs.column_names:
                source = "ours"
                theirs = with_calls_named(theirs, expected.api_calls)
                connection.register("ours", with_calls_named(table(live, name), table(live, "api_calls")))
            connection.register("theirs", theirs)
            mine = f"select {columns} from {source}"  # noqa: S608
            other = f"select {columns} from theirs"  # noqa: S608
            number = connection.execute(
                f"select (select count(*) from ({mine} except all {other}))"  # noqa: S608
                f" + (select count(*) from ({other} except all {mine}))"
            ).fetchone()
        if number and number[0]:
            found[name] = int(number[0])
    return found, expected.api_calls.num_rows


def with_calls_named(rows: pa.Table, calls: pa.Table) -> pa.Table:
    """The rows with connection and correlation id of each call of `call_ids`, in an order of their own; a
    number that no call has stays one."""
    if _CALLS not in rows.column_names:
        return rows
    asked = rows[_CALLS].to_pylist()
    wanted = pa.array({number for numbers in asked for number in numbers}, calls["call_id"].type)
    chosen = calls.select(["call_id", *_CALL]).filter(pc.is_in(calls["call_id"], wanted))
    names = {number: str(values) for number, *values in zip(*chosen.to_pydict().values(), strict=True)}
    named = [sorted(names.get(number, str(number)) for number in numbers) for numbers in asked]
    place = rows.column_names.index(_CALLS)
    return rows.set_column(place, _CALLS, pa.array(named, pa.list_(pa.string())))


def _untimed(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    names = sorted(name for name in rows.column_names if not _varies(name))
    return Counter(
        zip(*([_hashable(value) for value in rows[name].to_pylist()] for name in names), strict=True)
    )


def _varies(name: str) -> bool:
    if name in _NUMBERING | _TIMED or name.endswith(("_frame", "_ns", "_out_of_order")):
        return True
    return name.endswith("_time")


def _apart(mine: pa.Table, theirs: pa.Table) -> str:
    """Calls whose times differ by more than two sockets can explain."""
    names = ("request_time", "request_end_time", "response_time", "response_end_time")
    order = [(name, "ascending") for name in (*_KEY, "request_time", "response_time")]
    for one, other in zip(mine.sort_by(order).to_pylist(), theirs.sort_by(order).to_pylist(), strict=True):
        for name in names:
            if (one[name] is None) != (other[name] is None):
                return f"{name} of {one}: {other[name]}"
            if one[name] is not None and abs(one[name] - other[name]) > APART:
                return f"{name} of {one}: {other[name]}"
    return ""


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
