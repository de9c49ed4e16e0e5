"""Connections that carry the same bytes at two places, under other addresses: before and behind NAT, a proxy.

What proves it, and nothing less does:

- the initial sequence numbers of both sides are the same (64 bits that both sides drew), as are the messages,
  or the lengths where these have no hash, and the lengths where both were seen to their end: NAT leaves
  them as they are;
- or the messages are the same, the one's broker is at the address of the other's client, as a proxy is, and
  both begin together; and no third connection would do as well: clients that start alike say the same. Where
  the other one names the client it is for (PROXY protocol), that is this one's; else, of conversations of
  fewer than four calls, the whole is the same, between three hosts, and by one clock the proxy's is later.

Both ask for times that overlap. The first seen of them is the one that counts.

Where captures of a run were taken at several places, their connections under the same addresses are one
conversation where sightings.py proves it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import Bits, Numbers, numbers, whole_numbers
from kwsniff.tables.compute import cast, filter_rows, take_rows
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.timelines.duplicates.fingerprints import ENDS, KEYS, Marks, hash_of_ends
from kwsniff.timelines.duplicates.sightings import count_calls, pair_sightings

COLUMNS: Final = (
    "connection_id", "capture", "client_address", "client_port", "broker_address", "broker_port",
    "first_time", "last_time", "client_isn", "broker_isn", "messages_hash", "ending", "client_bytes",
    "client_missing_bytes", "broker_bytes", "broker_missing_bytes", "syn_retries", "handshake", "calls",
    "proxied_address", "proxied_port", "client_retransmitted_bytes", "broker_retransmitted_bytes",
    "client_lost_before_bytes", "broker_lost_before_bytes",
)  # fmt: skip
"""What `find_twins` reads of the table of connections."""

_SLACK: Final = 1_000_000  # microseconds that the clocks of two captures may be apart
_HASHED: Final = 4  # calls: fewer prove less
_MOST_ALIKE: Final = 64  # more that are alike prove nothing of any two
_TOGETHER: Final = 4096  # rows that are looked at as Python objects at a time

Row = dict[str, Any]
Source = Callable[[Sequence[str]], Iterable[pa.RecordBatch]]
"""Batches of the table of connections, coded or plain, with these columns; it is asked more than once."""


class Twin(NamedTuple):
    """`of`: connection_id of the first that carries the same. `delay_us`: how much later this one's first
    packet was seen, by one clock; None where there is none."""

    of: int
    delay_us: int | None


@dataclass(slots=True)
class Twins:
    """Connection_id -> what it is the twin of.

    `left_out`: connections that were not compared. `repeated`: name of a capture -> bytes sent again that it
    has a second time, on twins of its own connections. `apart`: captures of twins, where they are of two.
    """

    found: dict[int, Twin] = field(default_factory=dict)
    left_out: int = 0
    repeated: Counter[str] = field(default_factory=Counter)
    apart: set[tuple[str, str]] = field(default_factory=set)
    _ids: Numbers | None = None

    def __bool__(self) -> bool:
        return bool(self.found)

    def without(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows, of any table, that are not about twins."""
        if not self.found or "connection_id" not in batch.schema.names:
            return batch
        if self._ids is None:
            self._ids = np.sort(np.fromiter(self.found, np.int64, len(self.found)))
        ids = whole_numbers(batch["connection_id"], null=-1)
        at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        twins = self._ids[at] == ids
        return filter_rows(batch, ~twins) if twins.any() else batch

    def mark(self, connections: pa.RecordBatch) -> pa.RecordBatch:
        """The connections with `twin_of` and `twin_delay_ns`."""
        twins = [self.found.get(number) for number in connections["connection_id"].to_pylist()]
        columns = {
            "twin_of": _nullable([twin and twin.of for twin in twins]),
            "twin_delay_ns": _nullable(
                [None if twin is None or twin.delay_us is None else 1000 * twin.delay_us for twin in twins]
            ),
        }
        arrays = [columns.get(name, connections[name]) for name in connections.schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=connections.schema)


def find_twins(connections: Source, most: int, places: Mapping[str, int] | None = None) -> Twins:
    """The twins among connections in any order, of one run; null and other values as the table has them.

    `most`: rows that are compared; of more that may be twins, those seen first. `places`: of captures, where
    they were taken at several.
    """
    marks = Marks(ends=bool(places))
    for batch in connections((*KEYS, *ENDS) if places else KEYS):
        marks.add(batch)
    if not marks.any:
        return Twins()
    rows, left_out = _candidates(connections, marks, most)
    twins = Twins(left_out=left_out)
    for group in _alike(rows, ("client_isn", "broker_isn")):
        _add_twins(twins.found, ((a, b, _delay(a, b)) for a, b in pairwise(group) if _same_numbers(a, b)))
    for group in _alike(rows, ("messages_hash",)):
        firsts = [row for row in group if row["connection_id"] not in twins.found]
        _add_twins(twins.found, ((a, b, None) for a, b in _pair_proxied(firsts)))
    if places:
        _join_places(twins, rows, places, count_calls(connections(("capture", "calls")), places))
    _count_repeated(twins, rows)
    return twins


def _count_repeated(twins: Twins, rows: pa.Table) -> None:
    if not twins:
        return
    columns = [
        whole_numbers(rows[f"{side}_{what}"].combine_chunks(), null=0)
        for what in ("retransmitted_bytes", "lost_before_bytes")
        for side in ("client", "broker")
    ]
    # What was lost before it was captured is there once, and counts as what it brought.
    repeated = (columns[0] + columns[1] - columns[2] - columns[3]).tolist()
    told = zip(rows["capture"].to_pylist(), repeated, strict=True)
    known = dict(zip(rows["connection_id"].to_pylist(), told, strict=True))
    for number, twin in twins.found.items():
        capture, num = known[number]
        if capture == known[twin.of][0]:
            twins.repeated[capture] += num
        else:
            twins.apart.add((known[twin.of][0], capture))


def _join_places(twins: Twins, rows: pa.Table, places: Mapping[str, int], calls: Mapping[int, int]) -> None:
    moved: dict[int, int] = {}
    rows = rows.append_column("ends", numbers(pa.int64(), hash_of_ends(rows)))
    for group in _alike(rows, ("ends",)):
        by_ends: dict[tuple[Any, ...], list[Row]] = {}
        for row in group:
            if row["connection_id"] not in twins.found:
                by_ends.setdefault(_ends(row), []).append(row)
        for found in by_ends.values():
            for first, other in pair_sightings(found, places, calls):
                moved[other["connection_id"]] = first["connection_id"]
    for number, twin in twins.found.items():
        if twin.of in moved:
            twins.found[number] = Twin(moved[twin.of], None)
    twins.found.update((number, Twin(of, None)) for number, of in moved.items())


def _nullable(values: Sequence[int | None]) -> pa.Array:
    known = np.array([value is not None for value in values], np.bool_)
    return numbers(pa.int64(), np.array([value or 0 for value in values], np.int64), known)


def _candidates(connections: Source, marks: Marks, most: int) -> tuple[pa.Table, int]:
    """The rows that may be twins, and how many there are beyond `most`."""
    schema = arrow_schema(TABLES["connections"])
    plain = pa.schema([schema.field(name) for name in COLUMNS])
    candidates: list[pa.Table] = []
    num = 0
    for batch in connections(COLUMNS):
        chosen = filter_rows(batch, marks.are_shared(batch))
        num += chosen.num_rows
        columns = [cast(chosen[field.name], field.type) for field in plain]
        candidates.append(pa.Table.from_arrays(columns, schema=plain))
        # What comes first in memory is not what was seen first: files of several tasks come in any order.
        if sum(map(len, candidates)) > 2 * most or len(candidates) > _TOGETHER:
            candidates = [_first(pa.concat_tables(candidates), most)]
    rows = _first(pa.concat_tables(candidates), most)
    return rows, num - rows.num_rows


def _first(rows: pa.Table, most: int) -> pa.Table:
    order = np.argsort(whole_numbers(rows["connection_id"].combine_chunks(), null=0), kind="stable")
    return take_rows(rows, order[:most]).combine_chunks()


def _alike(rows: pa.Table, keys: tuple[str, ...]) -> Iterator[list[Row]]:
    """Groups of two rows or more that have the same values, none of them null; each in the order of ids."""
    values = [whole_numbers(rows[key].combine_chunks(), null=-1) for key in keys]
    known: Bits = np.logical_and.reduce([each >= 0 for each in values])
    places = np.flatnonzero(known)
    order = places[np.lexsort([each[places] for each in values])]
    starts = np.flatnonzero(
        np.append(True, np.logical_or.reduce([each[order][1:] != each[order][:-1] for each in values]))
        if len(order)
        else np.zeros(0, np.bool_)
    )
    sizes = np.diff(np.append(starts, len(order)))
    wanted = (sizes > 1) & (sizes <= _MOST_ALIKE)
    chosen: list[Numbers] = []
    for start, size in zip(starts[wanted].tolist(), sizes[wanted].tolist(), strict=True):
        chosen.append(np.sort(order[start : start + size]))
        if sum(map(len, chosen)) >= _TOGETHER:
            yield from _read(rows, chosen)
            chosen = []
    yield from _read(rows, chosen)


def _read(rows: pa.Table, groups: Sequence[Numbers]) -> Iterator[list[Row]]:
    if not groups:
        return
    part = take_rows(rows, np.concatenate(groups))
    for name in ("first_time", "last_time"):
        part = part.set_column(part.column_names.index(name), name, cast(part[name], pa.int64()))
    found = iter(part.to_pylist())
    for group in groups:
        yield [next(found) for _ in range(len(group))]


def _add_twins(twins: dict[int, Twin], pairs: Iterable[tuple[Row, Row, int | None]]) -> None:
    for first, other, delay in pairs:
        number: int = first["connection_id"]
        before = twins.get(number, Twin(number, 0))
        known = None if delay is None or before.delay_us is None else before.delay_us + delay
        twins[other["connection_id"]] = Twin(before.of, known)


def _ends(row: Row) -> tuple[Any, ...]:
    return tuple(row[key] for key in ENDS)


def _overlap(a: Row, b: Row) -> bool:
    if a["first_time"] is None or b["first_time"] is None:
        return False
    latest = max(a["first_time"], b["first_time"])
    return bool(latest <= min(a["last_time"], b["last_time"]) + _SLACK)


def _same_numbers(a: Row, b: Row) -> bool:
    one, other = a["messages_hash"], b["messages_hash"]
    # Stacks draw their numbers, programs that write captures often do not: numbers alone prove nothing.
    same = _sizes(a) == _sizes(b) if one is None or other is None else one == other
    # A machine that changes only a port is not another place.
    moved = any(a[key] != b[key] for key in ("client_address", "broker_address"))
    return moved and same and _overlap(a, b) and _agree(_lengths(a), _lengths(b))


def _delay(a: Row, b: Row) -> int | None:
    """How much later `b` was seen: of the same SYN, by the clock of one capture."""
    with_syn = a["handshake"] and b["handshake"] and a["syn_retries"] == b["syn_retries"]
    if a["capture"] != b["capture"] or not with_syn:
        return None
    delay: int = b["first_time"] - a["first_time"]
    return delay


def _agree(a: tuple[int, int] | None, b: tuple[int, int] | None) -> bool:
    return a is None or b is None or a == b


def _lengths(row: Row) -> tuple[int, int] | None:
    """Of both streams, where they were seen to their end."""
    if row["ending"] not in ("fin", "reset"):
        return None
    return _sizes(row)


def _sizes(row: Row) -> tuple[int, int]:
    return (
        row["client_bytes"] + row["client_missing_bytes"],
        row["broker_bytes"] + row["broker_missing_bytes"],
    )


def _pair_proxied(group: list[Row]) -> Iterable[tuple[Row, Row]]:
    """Pairs of the connection before a proxy and that behind it, where each has no other choice."""
    pairs = [(a, b) for a in group for b in group if _stands_before(a, b)]
    choices = Counter(before["connection_id"] for before, _ in pairs)
    places = Counter(behind["connection_id"] for _, behind in pairs)
    for before, behind in pairs:
        if choices[before["connection_id"]] == places[behind["connection_id"]] == 1:
            yield (before, behind) if before["connection_id"] < behind["connection_id"] else (behind, before)


def _stands_before(a: Row, b: Row) -> bool:
    return (
        a["broker_address"] == b["client_address"]
        and _ends(a) != _ends(b)
        and (a["client_address"], a["broker_address"]) != (b["client_address"], b["broker_address"])
        and _overlap(a, b)
        and abs(a["first_time"] - b["first_time"]) <= _SLACK
        and (
            min(a["calls"], b["calls"]) >= _HASHED or _is_carried(a, b)
            if b["proxied_address"] is None
            else _names(b, a)
        )
    )


def _names(row: Row, other: Row) -> bool:
    """Whether the PROXY header of one names the other's client, or the one that this was for in its turn."""
    named = row["proxied_address"], row["proxied_port"]
    return named in (
        (other["client_address"], other["client_port"]),
        (other["proxied_address"], other["proxied_port"]),
    )


def _is_carried(a: Row, b: Row) -> bool:
    """Whether short `b` is all of `a`, begun by a host between theirs after `a` had begun."""
    return bool(
        len({a["client_address"], a["broker_address"], b["broker_address"]}) == 3
        and a["capture"] == b["capture"]
        and a["handshake"]
        and b["handshake"]
        and a["first_time"] <= b["first_time"]
        and abs(a["last_time"] - b["last_time"]) <= _SLACK
        and _sizes(a) == _sizes(b)
    )
