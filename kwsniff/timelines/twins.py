"""Connections that carry the same bytes at two places, under other addresses: before and behind NAT, a proxy.

What proves it, and nothing less does:

- the initial sequence numbers of both sides are the same (64 bits that both sides drew), as are the messages,
  where both connections have a hash of them, and the lengths, where both were seen to their end: NAT leaves
  them as they are;
- or the messages are the same, the one's broker is at the address of the other's client, as a proxy is, and
  both begin together; and no third connection would do as well: clients that start alike say the same.

Both ask for times that overlap. The first seen of them is the one that counts.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import numbers, whole_numbers

COLUMNS: Final = (
    "connection_id", "client_address", "client_port", "broker_address", "broker_port", "first_time",
    "last_time", "client_isn", "broker_isn", "messages_hash", "end", "client_bytes", "client_missing_bytes",
    "broker_bytes", "broker_missing_bytes",
)  # fmt: skip
"""What `find_twins` reads of the table of connections."""

_SLACK: Final = 1_000_000  # microseconds that the clocks of two captures may be apart

Row = dict[str, Any]


def find_twins(connections: pa.Table) -> dict[int, int]:
    """connection_id -> that of the first connection that carries the same, for all but the first.

    `connections`: rows of COLUMNS in any order, of one run; null and other values as the table has them.
    """
    twins: dict[int, int] = {}
    for group in _alike(connections, ("client_isn", "broker_isn")):
        _join(twins, ((a, b) for a, b in _pairs(group) if _same_numbers(a, b)))
    for group in _alike(connections, ("messages_hash",)):
        firsts = [row for row in group if row["connection_id"] not in twins]
        _join(twins, _proxied(firsts))
    return twins


def mark_twins(connections: pa.Table, twins: Mapping[int, int]) -> pa.Table:
    """The table with `twin_of`."""
    at = connections.column_names.index("twin_of")
    found = pa.array([twins.get(number) for number in connections["connection_id"].to_pylist()], pa.int64())
    return connections.set_column(at, connections.schema.field(at), found)


def with_twins(connections: pa.Table) -> pa.Table:
    """The whole table of a run with `twin_of`."""
    twins = find_twins(connections.select(COLUMNS))
    return mark_twins(connections, twins) if twins else connections


def _alike(connections: pa.Table, keys: tuple[str, ...]) -> Iterable[list[Row]]:
    """Groups of two rows or more that have the same values, none of them null; each in the order of ids."""
    values = [whole_numbers(connections[key].combine_chunks(), null=-1) for key in keys]
    known = np.flatnonzero(np.logical_and.reduce([each >= 0 for each in values]))
    order = known[np.lexsort([each[known] for each in values])]
    same = np.logical_and.reduce([each[order][1:] == each[order][:-1] for each in values])
    several = np.append(same, False) | np.append(False, same) if len(order) else same
    if not several.any():
        return []
    rows = connections.select(COLUMNS).take(numbers(pa.int64(), np.sort(order[several])))
    rows = rows.set_column(*_micros(rows, "first_time")).set_column(*_micros(rows, "last_time"))
    groups: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows.sort_by("connection_id").to_pylist():
        groups[tuple(row[key] for key in keys)].append(row)
    return groups.values()


def _micros(rows: pa.Table, name: str) -> tuple[int, str, pa.ChunkedArray]:
    return rows.column_names.index(name), name, rows[name].cast(pa.int64())


def _pairs(group: list[Row]) -> Iterable[tuple[Row, Row]]:
    """Of neighbours only: the same numbers in more places are a chain of them."""
    return pairwise(group)


def _join(twins: dict[int, int], pairs: Iterable[tuple[Row, Row]]) -> None:
    for first, other in pairs:
        number: int = first["connection_id"]
        twins[other["connection_id"]] = twins.get(number, number)


def _ends(row: Row) -> tuple[Any, ...]:
    return tuple(row[key] for key in COLUMNS[1:5])


def _overlap(a: Row, b: Row) -> bool:
    if a["first_time"] is None or b["first_time"] is None:
        return False
    latest = max(a["first_time"], b["first_time"])
    return bool(latest <= min(a["last_time"], b["last_time"]) + _SLACK)


def _same_numbers(a: Row, b: Row) -> bool:
    hashes = {a["messages_hash"], b["messages_hash"]} - {None}
    return _ends(a) != _ends(b) and len(hashes) < 2 and _overlap(a, b) and _fit(_lengths(a), _lengths(b))


def _fit(a: tuple[int, int] | None, b: tuple[int, int] | None) -> bool:
    return a is None or b is None or a == b


def _lengths(row: Row) -> tuple[int, int] | None:
    """Of both streams, where they were seen to their end."""
    if row["end"] not in ("fin", "reset"):
        return None
    return (
        row["client_bytes"] + row["client_missing_bytes"],
        row["broker_bytes"] + row["broker_missing_bytes"],
    )


def _proxied(group: list[Row]) -> Iterable[tuple[Row, Row]]:
    """Pairs of the connection before a proxy and that behind it, where each has no other choice."""
    pairs = (
        [(a, b) for a in group for b in group if _stands_before(a, b)] if len(group) <= _MOST_ALIKE else []
    )
    choices = Counter(before["connection_id"] for before, _ in pairs)
    places = Counter(behind["connection_id"] for _, behind in pairs)
    for before, behind in pairs:
        if choices[before["connection_id"]] == places[behind["connection_id"]] == 1:
            yield (before, behind) if before["connection_id"] < behind["connection_id"] else (behind, before)


_MOST_ALIKE: Final = 64  # more that are alike prove nothing of any two


def _stands_before(a: Row, b: Row) -> bool:
    return (
        a["broker_address"] == b["client_address"]
        and _ends(a) != _ends(b)
        and (a["client_address"], a["broker_address"]) != (b["client_address"], b["broker_address"])
        and _overlap(a, b)
        and abs(a["first_time"] - b["first_time"]) <= _SLACK
    )
