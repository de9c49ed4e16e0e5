"""Rows of latencies that other connections may prove something of: held back until these had their say.

Produce, acks=all ............ followers' fetches tell when they had the records
Fetch that waited for data ... the Produce that brought them tells when
JoinGroup, SyncGroup ......... the last member to ask ends the wait of the others
calls behind one of these .... say for what it waited
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.tables.arrays import Bits, Numbers, flags, numbers, whole_numbers
from kwsniff.tables.kernels import kept, taken
from kwsniff.tables.schema import TABLES, coded_schema
from kwsniff.timelines.details import PLACE
from kwsniff.timelines.offsets import are_replicas

LOCAL_NS: Final = 1_000_000
"""What a broker takes for a call that waits for nobody, as core/rows/timing.pyx has it."""
_LONG_LINE_NS: Final = 10_000_000
"""Time in line, from which on it is worth knowing what the call in front waited for."""

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
"""Rows that are held, texts as dictionaries: those of latencies, their places among the calls, whether a
broker asks, and whether they are held for the call in front of them alone."""
UNSETTLED: Final = "unsettled"
"""Beside batches of a live capture: all rows as the core gave them, for figures of the moment."""
TOPICS: Final = "topics"
"""A column more, where whoever adds up shares wants it back with the rows."""


@lru_cache(maxsize=4)
def roles_of(catalog: Catalog) -> Numbers:
    """What an API's calls may wait for, by its key; negative keys count from the end, as in any array."""
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
    """Those that nothing can be said of any more, and those that are held, as TIMED and TOPICS have them.

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
    took = taken(latencies, rows)
    at = numbers(pa.int64(), places.astype(np.int64))
    timed = pa.RecordBatch.from_arrays(
        [*took.columns, at, flags(are_replicas(calls)[places]), flags(~real), taken(calls["topics"], places)],
        names=[*TIMED.names, TOPICS],
    )
    return kept(latencies, left), timed


def without_topics(latencies: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of latencies that were held, as everybody knows them."""
    return latencies.select(coded_schema(TABLES["latencies"]).names)


def _candidates(latencies: pa.RecordBatch, catalog: Catalog) -> tuple[Numbers, Bits, Bits]:
    """Rows that took long enough, which of them may have waited, and which may stand behind such a one."""
    broker, meant, queue = (
        whole_numbers(latencies[name], null=0)
        for name in ("broker_ns", "deliberate_wait_ns", "queue_wait_ns")
    )
    rows = np.flatnonzero((broker + meant > LOCAL_NS) | (queue >= _LONG_LINE_NS))
    roles = roles_of(catalog)[whole_numbers(latencies["api_key"], null=0)[rows]]
    waits = np.zeros(len(rows), np.bool_)
    for role, those in _WORDS.items():
        waits |= (roles == role) & _says(latencies["wait"], rows, those)
    waits &= broker[rows] + meant[rows] > LOCAL_NS
    line = _says(latencies["behind_wait"], rows, _LINE_WORDS) & (queue[rows] >= _LONG_LINE_NS)
    chosen = waits | line
    return rows[chosen], waits[chosen], line[chosen]


def _says(column: pa.DictionaryArray, rows: Numbers, words: Sequence[str]) -> Bits:
    """Which of the rows have one of these words."""
    of_word = np.array([*(word in words for word in column.dictionary.to_pylist()), False])
    return of_word[whole_numbers(column.indices, null=-1)[rows]]


def _is_open(
    latencies: pa.RecordBatch, rows: Numbers, calls: pa.RecordBatch, places: Numbers, catalog: Catalog
) -> Bits:
    """Produce that asks for all followers and was not refused; fetches that any record answers."""
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
    """Where the calls of these ids stand."""
    asked = whole_numbers(calls["call_id"], null=0)
    order = np.argsort(asked, kind="stable")
    return order[np.searchsorted(asked, wanted, sorter=order)]
