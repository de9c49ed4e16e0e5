"""Rows of latencies whose waits other connections may prove: held until the proof may have arrived.

Produce, acks=all ............ fetches of followers show when they had the records
Fetch that waited for data ... the Produce of the records shows when they arrived
JoinGroup, SyncGroup ......... the request of the last member ends the wait of the others
calls queued behind these .... waited for the same
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.tables.arrays import Bits, Numbers, flags, numbers, whole_numbers
from kwsniff.tables.compute import filter_rows, take_rows
from kwsniff.tables.schema import TABLES, coded_schema
from kwsniff.timelines.decoded_messages import PLACE
from kwsniff.timelines.offsets import are_replicas

LOCAL_NS: Final = 1_000_000
"""Broker time of a call without a wait, as in core/rows/timing.pyx."""
_LONG_LINE_NS: Final = 10_000_000
"""Minimum queue wait for which the wait of the call ahead is determined."""

PRODUCED, FETCHED, RENDEZVOUS = 1, 2, 3
_WORDS: Final = {
    PRODUCED: ("none", "replicas_possible"),
    FETCHED: ("data_possible",),
    RENDEZVOUS: ("none", "group_possible"),
}
_LINE_WORDS: Final = ("none", "data_possible", "replicas_possible", "group_possible")
_ALL_FOLLOWERS: Final = -1

TIMED: Final = pa.schema(
    [
        *(
            pa.field(each.name, pa.string()) if pa.types.is_dictionary(each.type) else each
            for each in coded_schema(TABLES["latencies"])
        ),
        (PLACE, pa.int64()),
        ("is_replica", pa.bool_()),
        ("is_line", pa.bool_()),
    ]
)
"""Held rows, with dictionary-encoded texts: those of latencies, the positions of their calls, whether the
requester is a broker, and whether they are held only for the call ahead."""
UNSETTLED: Final = "unsettled"
"""Added to batches of a live capture: all rows from the core, for current figures."""
TOPICS: Final = "topics"
"""An extra column that the code that sums shares gets back with the rows."""


@lru_cache(maxsize=4)
def roles_of(catalog: Catalog) -> Numbers:
    """Possible waits of an API's calls, by key; negative keys count from the end, as in any array."""
    roles = np.zeros(1 << 16, np.int8)
    for key, api in catalog.apis.items():
        if api.traits.rendezvous:
            roles[key] = RENDEZVOUS
        elif api.traits.records == "produced":
            roles[key] = PRODUCED
        elif api.traits.records == "fetched":
            roles[key] = FETCHED
    return roles


def hold_back(
    latencies: pa.RecordBatch, calls: pa.RecordBatch | None, catalog: Catalog
) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Splits rows into final ones and held ones, in the formats of TIMED and TOPICS.

    `calls`: the rows of api_calls that were taken with them; all of `latencies` are among them.
    """
    if calls is None or not latencies.num_rows:
        return latencies, None
    rows, waits, line = _candidates(latencies, catalog)
    if not len(rows):
        return latencies, None
    places = _places(calls, whole_numbers(latencies["call_id"], null=0)[rows])
    real = waits & _is_open(latencies, rows, calls, places, catalog)
    held = real | line
    if not held.any():
        return latencies, None
    rows, places, real = rows[held], places[held], real[held]
    left = np.ones(latencies.num_rows, np.bool_)
    left[rows] = False
    took = take_rows(latencies, rows)
    at = numbers(pa.int64(), places.astype(np.int64))
    timed = pa.RecordBatch.from_arrays(
        [
            *took.columns,
            at,
            flags(are_replicas(calls)[places]),
            flags(~real),
            take_rows(calls["topics"], places),
        ],
        names=[*TIMED.names, TOPICS],
    )
    return filter_rows(latencies, left), timed


def _candidates(latencies: pa.RecordBatch, catalog: Catalog) -> tuple[Numbers, Bits, Bits]:
    """Rows that took long enough, those that may have waited, and those that may be queued behind them."""
    broker, meant, queue = (
        whole_numbers(latencies[name], null=0)
        for name in ("broker_ns", "deliberate_wait_ns", "queue_wait_ns")
    )
    rows = np.flatnonzero((broker + meant > LOCAL_NS) | (queue >= _LONG_LINE_NS))
    roles = roles_of(catalog)[whole_numbers(latencies["api_key"], null=0)[rows]]
    waits = np.zeros(len(rows), np.bool_)
    for role, those in _WORDS.items():
        waits |= (roles == role) & _match(latencies["wait"], rows, those)
    waits &= broker[rows] + meant[rows] > LOCAL_NS
    line = _match(latencies["queued_behind_wait"], rows, _LINE_WORDS) & (queue[rows] >= _LONG_LINE_NS)
    chosen = waits | line
    return rows[chosen], waits[chosen], line[chosen]


def _match(column: pa.DictionaryArray, rows: Numbers, words: Sequence[str]) -> Bits:
    """Mask of the rows with one of these words."""
    of_word = np.array([*(word in words for word in column.dictionary.to_pylist()), False])
    return of_word[whole_numbers(column.indices, null=-1)[rows]]


def _is_open(
    latencies: pa.RecordBatch, rows: Numbers, calls: pa.RecordBatch, places: Numbers, catalog: Catalog
) -> Bits:
    """Successful Produce with acks=all; fetches that return with any record."""
    roles = roles_of(catalog)[whole_numbers(latencies["api_key"], null=0)[rows]]
    acks, asked, errors = (
        whole_numbers(calls[name], null=0)[places] for name in ("acks", "min_bytes", "error_count")
    )
    return np.where(
        roles == PRODUCED,
        (acks == _ALL_FOLLOWERS) & (errors == 0),
        np.where(roles == FETCHED, asked <= 1, errors == 0),
    )


def _places(calls: pa.RecordBatch, wanted: Numbers) -> Numbers:
    """Positions of the calls with these ids."""
    asked = whole_numbers(calls["call_id"], null=0)
    order = np.argsort(asked, kind="stable")
    return order[np.searchsorted(asked, wanted, sorter=order)]
