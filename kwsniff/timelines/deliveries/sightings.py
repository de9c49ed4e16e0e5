"""What calls show of record batches: appended, fetched, covered by a high watermark or by a commit.

    kind        base             last                 of
    APPENDED    first offset     last offset          a Produce that a broker answered
    FETCHED     first offset     last offset          a Fetch of a reader; followers' are replication
    REACHED     high watermark   last stable offset   a Fetch, if it is higher than those before it
    COMMITTED   the offset       -                    a commit that the coordinator accepted
    SENT        0                number of the last   a Produce request whose call comes later
    ANSWERED    first offset     -                    the response to it: both together are APPENDED

Rows are in the order in which their calls ended, of the same call in this order.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.delivery_steps import IN_SYNC, STABLE, UNKNOWN
from kwsniff.core.columns.passes import find_partitions, find_rises
from kwsniff.layout.catalog import Catalog
from kwsniff.tables.arrays import Bits, Numbers, numbers, set_bits, valid_rows, whole_numbers
from kwsniff.tables.compute import dictionary_encode
from kwsniff.timelines.committed_lag import number_keys
from kwsniff.timelines.decoded_messages import PLACE
from kwsniff.timelines.offsets import (
    COMMITS,
    FETCHES,
    PRODUCES,
    are_replicas,
    find_places,
    roles_of_offsets,
)

APPENDED, FETCHED, REACHED, COMMITTED, SENT, ANSWERED = 0, 1, 2, 3, 4, 5
_KINDS: Final = 6
NONE: Final = -1

_TEXTS: Final = ("topic", "topic_id", "client_id", "client_address", "group_id")
_OF_BATCHES: Final = ("record_count", "first_timestamp", "max_timestamp")
NUMBERS: Final = (
    "kind",
    "partition",
    "base",
    "last",
    *_OF_BATCHES,
    "begin",
    "shown",
    "end",
    "call_id",
    "flags",
)
"""Columns of whole numbers; times in microseconds, `begin` of the first byte of the request, `shown` of the
first byte of the response, `end` when all of it was there."""
SIGHTINGS: Final = pa.schema(
    [
        (PLACE, pa.int64()),
        *((name, pa.string()) for name in _TEXTS),
        ("connection_id", pa.int64()),
        *((name, pa.int64()) for name in NUMBERS),
    ]
)
"""What `extract_sightings` gives, texts as dictionaries."""
NO_SIGHTINGS: Final = pa.RecordBatch.from_arrays(
    [
        pa.nulls(0, pa.dictionary(pa.int32(), each.type) if each.type == pa.string() else each.type)
        for each in SIGHTINGS
    ],
    names=SIGHTINGS.names,
)
_ALL_IN_SYNC: Final = -1
_READ_COMMITTED: Final = 1
_TIMES: Final = {"begin": "request_time", "shown": "response_time", "end": "response_end_time"}


def extract_sightings(
    calls: pa.RecordBatch, partitions: pa.RecordBatch, batches: pa.RecordBatch | None, catalog: Catalog
) -> pa.RecordBatch | None:
    """`calls`: the rows of api_calls that partitions and record_batches were taken with; one at least. None
    without sightings."""
    roles = roles_of_offsets(catalog)
    told = _Rows(partitions, calls, roles)
    rows = _Rows(partitions.slice(0, 0) if batches is None else batches, calls, roles)
    of_told = [_find_watermarks(told), _find_commits(told)]
    of_batches, answers = _find_produces(rows, told)
    of_told.append(answers)
    if batches is not None:
        of_batches.append(_find_fetches(rows))
    if not any(len(each.rows) for each in (*of_told, *of_batches)):
        return None
    return _put_together(calls, (told, of_told), (rows, of_batches))


class _Seen(NamedTuple):
    """Rows that are sightings of a kind."""

    kind: int
    rows: Numbers
    values: dict[str, Numbers]
    """Columns of NUMBERS of these rows, those that not all kinds have."""


class _Rows:
    """Rows of partitions or record_batches, and the places of their calls."""

    def __init__(self, rows: pa.RecordBatch, calls: pa.RecordBatch, roles: Numbers) -> None:
        self.rows, self.calls = rows, calls
        self.roles = roles[whole_numbers(rows["api_key"], null=-1)]
        ids = whole_numbers(calls["call_id"], null=-1)
        self.places, known = find_places(ids, whole_numbers(rows["call_id"], null=-2))
        named = valid_rows(rows["topic"]) | valid_rows(rows["topic_id"])
        self.named = named & valid_rows(rows["partition"])
        self.known = known & self.named
        self.places = np.where(known, self.places, calls.num_rows - 1)

    def column(self, name: str, null: int = -1) -> Numbers:
        """Numbers of the rows."""
        return whole_numbers(self.rows[name], null)

    def of_calls(self, name: str, null: int = UNKNOWN) -> Numbers:
        """Numbers of their calls; any where these are not known."""
        return whole_numbers(self.calls[name], null).take(self.places)

    def in_order(self, chosen: Bits) -> Numbers:
        """The chosen rows in the order of their calls; the core gives batches in that of the requests."""
        rows = np.flatnonzero(chosen)
        ordered: Numbers = rows[np.argsort(self.places[rows], kind="stable")]
        return ordered

    def topics(self, words: dict[str, int]) -> Numbers:
        """A number for each topic: its id if there is one, else its name."""
        names, ids = self.rows["topic"], self.rows["topic_id"]
        listed = [*names.dictionary.to_pylist(), *(f"#{each}" for each in ids.dictionary.to_pylist())]
        codes = np.array([words.setdefault(word, len(words)) for word in listed] or [0], np.int64)
        code = whole_numbers(names.indices, null=0).astype(np.int64)
        if ids.null_count < len(ids):
            code = np.where(valid_rows(ids), whole_numbers(ids.indices, 0) + len(names.dictionary), code)
        return codes[code]

    def sightings(self, chosen: Bits, kind: int, values: dict[str, Numbers]) -> _Seen:
        """The chosen ones; `values`: columns of all rows."""
        rows = np.flatnonzero(chosen)
        return _Seen(kind, rows, {name: column.take(rows) for name, column in values.items()})


_Found = tuple[_Rows, list[_Seen]]


def _put_together(calls: pa.RecordBatch, *found: _Found) -> pa.RecordBatch:
    """Sightings of all kinds in the order of their calls."""
    kind = np.concatenate([np.full(len(each.rows), each.kind) for _, seen in found for each in seen])
    places = np.concatenate([rows.places[each.rows] for rows, seen in found for each in seen])
    order = np.argsort(places * _KINDS + kind, kind="stable")
    kind, places = kind.take(order), places.take(order)

    def gather_column(name: str) -> Numbers:
        """A column of the rows themselves."""
        parts = [whole_numbers(rows.rows[name], 0)[each.rows] for rows, seen in found for each in seen]
        return np.concatenate(parts).take(order).astype(np.int64, copy=False)

    told = {name: whole_numbers(calls[of], UNKNOWN).take(places) for name, of in _TIMES.items()}
    # A first byte that was sent again may come after the last one.
    told["end"] = np.where(told["end"] == UNKNOWN, UNKNOWN, np.maximum(told["shown"], told["end"]))
    told |= {"kind": kind, PLACE: places}
    told |= {name: gather_column(name) for name in ("partition", "call_id", "connection_id")}
    for name in ("base", "last", *_OF_BATCHES, "flags"):
        parts = [each.values.get(name, np.full(len(each.rows), NONE)) for _, seen in found for each in seen]
        told[name] = np.concatenate(parts).take(order)
    of_readers = (kind == FETCHED) | (kind == COMMITTED)
    columns = {**{name: _encode(*_words(found, name, order)) for name in ("topic", "topic_id")}}
    column = found[0][0].rows["group_id"]
    columns["group_id"] = _encode(_commits_groups(column, found, order), column.dictionary)
    for name in ("client_id", "client_address"):
        codes = whole_numbers(calls[name].indices, NONE)[places]
        columns[name] = _encode(np.where(of_readers, codes, NONE), calls[name].dictionary)
    return pa.RecordBatch.from_arrays(
        [
            columns[each.name] if each.name in columns else numbers(each.type, told[each.name])
            for each in SIGHTINGS
        ],
        names=SIGHTINGS.names,
    )


def _words(found: Sequence[_Found], name: str, order: Numbers) -> tuple[Numbers, pa.StringArray]:
    """A column of texts, by their places in the second, which has each once; NONE is null."""
    listed = dictionary_encode(pa.concat_arrays([rows.rows[name].dictionary for rows, _ in found]))
    places, begin = np.append(whole_numbers(listed.indices, 0), NONE), 0
    parts = []
    for rows, seen in found:
        column = rows.rows[name]
        codes = whole_numbers(column.indices, len(places) - 1 - begin).astype(np.int64) + begin
        parts += [places[codes[each.rows]] for each in seen]
        begin += len(column.dictionary)
    return np.concatenate(parts)[order], listed.dictionary


def _commits_groups(groups: pa.DictionaryArray, found: Sequence[_Found], order: Numbers) -> Numbers:
    """Codes of the groups that commit; NONE for sightings of another kind."""
    codes = whole_numbers(groups.indices, NONE)
    parts = [
        codes[each.rows] if each.kind == COMMITTED else np.full(len(each.rows), NONE)
        for _, seen in found
        for each in seen
    ]
    return np.concatenate(parts)[order]


def _encode(codes: Numbers, words: pa.StringArray) -> pa.DictionaryArray:
    valid = codes >= 0
    indices = np.where(valid, codes, 0).astype(np.int32)
    return pa.DictionaryArray.from_arrays(numbers(pa.int32(), indices, valid), words, safe=False)


def _find_watermarks(told: _Rows) -> _Seen:
    high, stable = told.column("high_watermark"), told.column("last_stable_offset")
    chosen = (told.roles == FETCHES) & (high >= 0) & told.known
    rows = told.in_order(chosen)
    if len(rows):
        parts = whole_numbers(told.rows["partition"], null=0)[rows].astype(np.int64) & 0xFFFFFFFF
        own, slots = number_keys(told.topics({})[rows] << 32 | parts)
        rises = np.zeros(len(rows), np.uint8)
        for offsets in (high, stable):
            offset = np.ascontiguousarray(offsets[rows], np.int64)
            find_rises(slots.astype(np.int64), offset, np.full(len(own), -1, np.int64), rises)
        chosen[rows] = rises.view(np.bool_)
    return told.sightings(chosen, REACHED, {"base": high, "last": stable})


def _find_commits(told: _Rows) -> _Seen:
    offset = told.column("requested_offset")
    chosen = (told.roles == COMMITS) & (told.column("error_code") == 0) & (offset >= 0) & told.known
    return told.sightings(chosen & valid_rows(told.rows["group_id"]), COMMITTED, {"base": offset})


def _has_offsets(batches: _Rows) -> Bits:
    """Rows of format 2 that are not control batches."""
    if not batches.rows.num_rows:
        return np.zeros(0, np.bool_)
    control = set_bits(batches.rows["control"])
    found: Bits = ~control & (batches.column("last_offset") >= batches.column("base_offset"))
    return found


def _values(batches: _Rows) -> dict[str, Numbers]:
    return {name: batches.column(name, UNKNOWN) for name in _OF_BATCHES}


def _find_fetches(batches: _Rows) -> _Seen:
    fetched = batches.known & (batches.roles == FETCHES) & _has_offsets(batches)
    fetched &= ~are_replicas(batches.calls)[batches.places]
    flags = np.where(batches.of_calls("isolation_level") == _READ_COMMITTED, STABLE, 0)
    own = {"base": batches.column("base_offset"), "last": batches.column("last_offset"), "flags": flags}
    return batches.sightings(fetched, FETCHED, own | _values(batches))


def _find_produces(batches: _Rows, told: _Rows) -> tuple[list[_Seen], _Seen]:
    """What Produce appended and requests whose response comes later; and responses to earlier ones."""
    answered = told.known & (told.roles == PRODUCES) & (told.column("error_code") == 0)
    answered &= (told.column("base_offset") >= 0) & (told.column("batch_count") == 1)
    base = told.column("base_offset")
    flags = np.where(told.of_calls("acks") == _ALL_IN_SYNC, IN_SYNC, 0)
    first = np.full(batches.rows.num_rows, -1, np.int64)
    found = []
    if len(first):
        sent = batches.named & (batches.roles == PRODUCES) & _has_offsets(batches)
        rows, asked = told.in_order(answered), batches.in_order(sent & batches.known)
        at = _match(told, rows, batches, asked)
        first[asked[at >= 0]] = base[rows[at[at >= 0]]]
        answered[rows[at[at >= 0]]] = False
        numbered = batches.column("last_offset") - batches.column("base_offset")
        own = {"base": first, "last": first + numbered, **_values(batches)}
        own["flags"] = np.where(batches.of_calls("acks") == _ALL_IN_SYNC, IN_SYNC, 0)
        found.append(batches.sightings(first >= 0, APPENDED, own))
        found.append(batches.sightings(sent & ~batches.known, SENT, own | {"last": numbered}))
    return found, told.sightings(answered, ANSWERED, {"base": base, "flags": flags})


def _match(told: _Rows, rows: Numbers, batches: _Rows, asked: Numbers) -> Numbers:
    """For each asked batch the place in `rows` of what the response says of its partition; -1 without one."""
    words: dict[str, int] = {}
    found = np.full(len(asked), -1, np.int64)
    calls, topics, partitions, *wanted = (
        np.ascontiguousarray(column[those], np.int64)
        for each, those in ((told, rows), (batches, asked))
        for column in (each.places, each.topics(words), each.column("partition"))
    )
    asked_calls, asked_topics, asked_partitions = wanted
    find_partitions(calls, topics, partitions, asked_calls, asked_topics, asked_partitions, found)
    return found
