"""Offsets in partitions of calls, in the order in which the calls ended.

The input of committed lag and of proofs for waits.
"""

from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.keyed_rows import number_rows
from kwsniff.core.columns.passes import follow
from kwsniff.layout.catalog import Catalog
from kwsniff.layout.traits import COMMITTED
from kwsniff.tables.arrays import Bits, Numbers, numbers, valid_rows, whole_numbers
from kwsniff.tables.compute import filter_rows
from kwsniff.timelines.decoded_messages import PLACE

OFFSETS: Final = pa.schema(
    [
        (PLACE, pa.int64()),
        *((name, pa.string()) for name in ("capture", "client_id", "group_id", "topic", "topic_id")),
        ("broker_address", pa.string()),
        *((name, pa.int64()) for name in ("call_id", "connection_id")),
        *(("api_key", pa.int16()), ("partition", pa.int32()), ("broker_port", pa.int32())),
        *((name, pa.timestamp("us", tz="UTC")) for name in ("time", "response_end_time")),
        *((name, pa.int64()) for name in ("committed", "reached", "base", "fetched")),
    ]
)
"""What `told` gives, texts as dictionaries: rows commit an offset, tell how far a partition reaches, with
which record it begins what it brings (`base`) or from where on a follower asks (`fetched`); or not (-1)."""

NO_OFFSETS: Final = pa.RecordBatch.from_arrays(
    [
        pa.nulls(0, pa.dictionary(pa.int32(), each.type) if each.type == pa.string() else each.type)
        for each in OFFSETS
    ],
    names=OFFSETS.names,
)

_OWN: Final = (
    "capture", "client_id", "group_id", "topic", "topic_id", "broker_address", "call_id", "connection_id",
    "api_key", "partition", "broker_port", "time",
)  # fmt: skip
_TOLD: Final = ("committed", "reached", "base", "fetched")
COMMITS, LISTS, PRODUCES, FETCHES = 1, 2, 3, 4
_MOST = 0.75


def extract_offsets(calls: pa.RecordBatch, partitions: pa.RecordBatch, catalog: Catalog) -> pa.RecordBatch:
    """What rows of partitions commit and tell; `calls`: the rows of their calls in api_calls."""
    kinds = roles_of_offsets(catalog)[whole_numbers(partitions["api_key"], null=-1)]
    roles = np.where(whole_numbers(partitions["error_code"], null=-1) == 0, kinds, 0)
    offset = whole_numbers(partitions["requested_offset"], null=-1)
    committed = np.where((roles == COMMITS) & valid_rows(partitions["group_id"]), offset, -1)
    reached = whole_numbers(partitions["high_watermark"], null=-1)
    base, count = (whole_numbers(partitions[name], null=-1) for name in ("base_offset", "record_count"))
    # A message set without a count has at least one record.
    produced = (roles == PRODUCES) & (base >= 0)
    reached = np.maximum(reached, np.where(produced, base + np.maximum(count, 1), -1))
    reached = np.maximum(reached, np.where(roles == LISTS, offset, -1))
    base = np.where(produced | (roles == FETCHES), base, -1)
    named = valid_rows(partitions["topic"]) | valid_rows(partitions["topic_id"])
    ids = whole_numbers(calls["call_id"], null=-1)
    wanted = whole_numbers(partitions["call_id"], null=-2)
    places, known = find_places(ids, wanted)
    asks = known & (kinds == FETCHES)
    if asks.any():
        asks[asks] = are_replicas(calls)[places[asks]]
    # In a fetch session a request omits unchanged partitions: the records begin at the earlier requested
    # offset.
    fetched = np.where(asks, np.where(offset >= 0, offset, base), -1)
    chosen = (committed >= 0) | (reached >= 0) | (fetched >= 0)
    chosen &= named & valid_rows(partitions["partition"]) & known
    part = partitions.select(list(_OWN))
    if known.all() and np.count_nonzero(chosen) > _MOST * len(chosen):
        # Keeping all is cheaper than filtering out a few.
        told = [committed, reached, base, fetched]
        left_out = np.flatnonzero(~chosen)
        for values in told if len(left_out) else ():
            values[left_out] = -1
    else:
        part = filter_rows(part, chosen)
        told = [values[chosen] for values in (committed, reached, base, fetched)]
        places = places[chosen]
    columns = {
        **{name: part[name] for name in _OWN},
        PLACE: numbers(pa.int64(), places),
        "response_end_time": _take(calls["response_end_time"], places),
        **{
            name: numbers(pa.int64(), values.astype(np.int64))
            for name, values in zip(_TOLD, told, strict=True)
        },
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in OFFSETS.names], names=OFFSETS.names)


def find_places(ids: Numbers, wanted: Numbers) -> tuple[Numbers, Bits]:
    """The index of each of `wanted` in `ids`, and whether it is there; arbitrary otherwise."""
    places = np.empty(len(wanted), np.int64)
    if follow(ids, wanted, places):  # they are in the order of their calls
        return places, np.ones(len(wanted), np.bool_)
    both = np.concatenate([ids, wanted]).astype(np.int64, copy=False)
    ranks, firsts = np.empty((2, len(both)), np.int64)
    number_rows((both,), ranks, firsts)
    places = firsts[ranks[len(ids) :]]
    known = places < len(ids)
    return np.where(known, places, 0), known


def _take(times: pa.Array, places: Numbers) -> pa.Array:
    valid = valid_rows(times)[places] if times.null_count else None
    return numbers(times.type, whole_numbers(times, null=0)[places], valid)


@lru_cache(maxsize=4)
def roles_of_offsets(catalog: Catalog) -> Numbers:
    """Roles of an API's partitions, by key; negative keys count from the end, as in any array."""
    roles = np.zeros(1 << 16, np.int8)
    for key, api in catalog.apis.items():
        if api.traits.offsets == COMMITTED:
            roles[key] = COMMITS
        elif api.traits.offsets == "listed":
            roles[key] = LISTS
        elif api.traits.records == "produced":
            roles[key] = PRODUCES
        elif api.traits.records == "fetched":
            roles[key] = FETCHES
    return roles


def are_replicas(calls: pa.RecordBatch) -> Bits:
    callers = calls["caller"].dictionary.to_pylist()
    if "replica" not in callers:
        return np.zeros(calls.num_rows, np.bool_)
    found: Bits = whole_numbers(calls["caller"].indices, null=-1) == callers.index("replica")
    return found
