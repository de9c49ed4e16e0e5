"""Writes the table of hops: calls that several places captured, with clocks aligned by their packets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.memory import memory_left
from kwsniff.tables.arrays import numbers, texts
from kwsniff.tables.hops import NONE
from kwsniff.tables.schema import TABLES, coded_schema
from kwsniff.tables.write import TableWriter

if TYPE_CHECKING:
    from kwsniff.analysis.capture_points import CapturePoints
    from kwsniff.analysis.places import Places
    from kwsniff.analysis.rows import Rows

READ: Final = ("api_calls", "connections", "tcp_events")
"""Tables that hops are made of."""

Numbers = np.ndarray[Any, Any]


def measure_hops(
    writer: TableWriter | None, rows: "Rows", points: "CapturePoints", limit: int
) -> list[dict[str, Any]]:
    """Writes the rows of hops, and says in rows of captures what their clocks are; returns the places for the
    summary. `limit`: bytes of memory for the process."""
    from kwsniff.analysis.shared_calls import SharedCalls

    tables: dict[str, Any] = {name: [path] for name, path in writer.complete(READ).items()} if writer else {}
    for name in () if writer else READ:
        tables[name] = pa.Table.from_batches(rows.batches[name], coded_schema(TABLES[name]))
    with SharedCalls(tables, points.printable, f"{memory_left(limit) // 1_000_000}MB") as calls:
        places = calls.solve(points.names)
        for columns in calls.hops():
            rows.add("hops", hops_batch(columns, places))
    places.fill_clocks(rows.summary.captures, points.printable)
    return places.as_dicts(rows.summary.captures)


def hops_batch(rows: Mapping[str, Numbers], places: "Places") -> pa.RecordBatch:
    """Rows of `SharedCalls.hops` as a batch of the table, in its coded schema."""
    schema = coded_schema(TABLES["hops"])
    near, far = rows["nearer"], rows["farther"]
    asked, asked2, answered, answered2 = (rows[name] for name in ("asked", "asked2", "answered", "answered2"))
    is_told = np.logical_and(*(_each(places, side, lambda place: place.is_told) for side in (near, far)))
    is_asked = is_told & (asked != NONE) & (asked2 != NONE)
    is_answered = is_told & (answered != NONE) & (answered2 != NONE)
    base = _each(places, near, lambda place: place.base)
    request = asked2 - asked - _apart(places, near, far, asked - base)
    response = answered - answered2 + _apart(places, near, far, answered - base)
    columns = {
        "call_id": numbers(pa.int64(), rows["counted_id"]),
        "connection_id": numbers(pa.int64(), rows["conversation"]),
        "from_place": _name_places(places, near, schema.field("from_place").type),
        "to_place": _name_places(places, far, schema.field("to_place").type),
        "request_ns": _in_nanoseconds(request, is_asked),
        "response_ns": _in_nanoseconds(response, is_answered),
        "lost_packets": numbers(pa.int64(), rows["lost"]),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _name_places(places: "Places", column: Numbers, type_: pa.DictionaryType) -> pa.Array:
    order = [*places.found]
    codes = np.searchsorted(order, column).astype(f"i{type_.index_type.bit_width // 8}")
    names = texts([places.found[number].name for number in order])
    return pa.DictionaryArray.from_arrays(numbers(type_.index_type, codes), names, safe=False)


def _in_nanoseconds(microseconds: Numbers, valid: Numbers) -> pa.Array:
    whole = np.where(valid, np.rint(1000 * microseconds), 0).astype(np.int64)
    return numbers(pa.int64(), whole, valid)


def _each(places: "Places", column: Numbers, value: Any) -> Numbers:
    found = np.zeros(len(column))
    for number, place in places.found.items():
        found[column == number] = value(place)
    return found


def _apart(places: "Places", near: Numbers, far: Numbers, times: Numbers) -> Numbers:
    """How far the clock of the farther place is ahead, at times of the reference."""
    found = np.zeros(len(near))
    for number in places.found:
        for column, sign in ((far, 1), (near, -1)):
            chosen = column == number
            if chosen.any():
                found[chosen] += sign * places.ahead(number, times[chosen])
    return found
