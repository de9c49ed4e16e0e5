"""What the batches of a producer show of its settings, by connection."""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import Numbers, valid_rows, whole_numbers
from kwsniff.tables.compute import dictionary_encode
from kwsniff.tables.grouping import Groups, count_rows

_MOST_DELAYS: Final = 128
_NEVER, _ALWAYS = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_SMALL_BYTES: Final = 8192
"""A batch below half of the usual batch.size of 16,384 was sent because its time was over, not because it
was full."""


@dataclass(slots=True)
class Produced:
    """The batches of a connection."""

    codecs: dict[str, int] = field(default_factory=dict)
    idempotent: dict[bool, int] = field(default_factory=dict)
    bytes: int = 0
    delays: list[tuple[int, int]] = field(default_factory=list)
    """Time of the request and delay since the first record, of small batches: the first ones."""


def make_room(known: dict[int, Any], connection: int, most: int) -> bool:
    """Whether a connection is among the first `most`; a later one makes room for it."""
    if connection in known or len(known) < most:
        return True
    last = max(known)
    if connection > last:
        return False
    del known[last]
    return True


def add_batches(produced: dict[int, Produced], batch: pa.RecordBatch, most: int) -> None:
    """Takes produced batches, of the first `most` connections."""
    groups = Groups(batch, ("connection_id",))
    for (connection,) in sorted(groups.labels()):
        if not make_room(produced, connection, most):
            break
        produced.setdefault(connection, Produced())
    found = [produced.get(connection) for (connection,) in groups.labels()]
    told = count_rows(batch, ("connection_id", "codec"), "time")
    for connection, codec, number in zip(
        *(told.rows[name].to_pylist() for name in ("connection_id", "codec")),
        told.counts.tolist(),
        strict=True,
    ):
        if codec is not None and (each := produced.get(connection)):
            each.codecs[codec] = each.codecs.get(codec, 0) + number
    known = valid_rows(batch["producer_id"])
    for group, (named, number) in enumerate(
        zip(groups.counts(known).tolist(), groups.counts().tolist(), strict=True)
    ):
        if each := found[group]:
            for value, count in ((True, named), (False, number - named)):
                if count:
                    each.idempotent[value] = each.idempotent.get(value, 0) + count
    sizes = np.maximum(*(whole_numbers(batch[name], null=0) for name in ("bytes", "uncompressed_bytes")))
    largest = np.zeros(len(found), np.int64)
    np.maximum.at(largest, groups.numbers, sizes)
    for each, size in zip(found, largest.tolist(), strict=True):
        if each:
            each.bytes = max(each.bytes, size)
    _add_delays(batch, groups, found, sizes)


def _add_delays(batch: pa.RecordBatch, groups: Groups, found: list[Produced | None], sizes: Numbers) -> None:
    kinds = batch["timestamp_type"]
    kinds = kinds if pa.types.is_dictionary(kinds.type) else dictionary_encode(kinds)
    words = kinds.dictionary.to_pylist()
    chosen = valid_rows(batch["time"]) & valid_rows(batch["first_timestamp"]) & (sizes < _SMALL_BYTES)
    chosen &= whole_numbers(kinds.indices, null=-1) == (
        words.index("create_time") if "create_time" in words else -2
    )
    times, firsts = (whole_numbers(batch[name], null=0) for name in ("time", "first_timestamp"))
    # Where the first ones are there already, later ones need not be sorted.
    latest = np.array([_latest(each) for each in found] or [0], np.int64)
    rows = np.flatnonzero(chosen & (times <= latest[groups.numbers]))
    numbers = groups.numbers[rows]
    rows = rows[np.lexsort((times[rows], numbers))]
    moments, delays = times[rows].tolist(), (times[rows] - firsts[rows]).tolist()
    ends = np.cumsum(np.bincount(numbers, minlength=len(found))).tolist()
    for each, begin, end in zip(found, [0, *ends], ends, strict=False):
        if each and end > begin:
            if len(each.delays) == _MOST_DELAYS and each.delays[-1][0] <= moments[begin]:
                continue
            part = slice(begin, min(end, begin + _MOST_DELAYS))
            told = zip(moments[part], delays[part], strict=True)
            each.delays = sorted([*each.delays, *told])[:_MOST_DELAYS]


def _latest(produced: Produced | None) -> int:
    """Until when the time of a batch counts."""
    if produced is None:
        return _NEVER
    return produced.delays[-1][0] if len(produced.delays) == _MOST_DELAYS else _ALWAYS
