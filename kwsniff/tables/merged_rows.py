"""Merges the rows of parallel analyzers into the rows that a single analyzer would give.

The packet number of each row gives the order. Topic ids get their names even if another analyzer got the
message with the name.

    analyzer 0   rows of packets  1  4  4  9
    analyzer 1   rows of packets  2  3  7         ->   1 2 3 4 4 7 9
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import Numbers, bits, numbers, texts, valid_rows, whole_numbers
from kwsniff.tables.compute import take_rows
from kwsniff.tables.schema import DETAILS

CALLS: Final = "api_calls"
NAMED: Final = (CALLS, "error_codes", "partitions", "record_batches")
"""Tables that show topics."""
_ID_CHARACTERS: Final = 22
_NEVER: Final = np.iinfo(np.int64).max

Names = Mapping[str, tuple[str, int]]
"""Topic id (22 characters) -> its name, and the packet that named it."""


class Part(NamedTuple):
    """A batch of one analyzer's rows of a table, in the coded schema."""

    rows: pa.RecordBatch
    runs: Numbers
    """Packet, step within it, and first row from there; as returned by `drain_in_order`."""

    def packets(self) -> Numbers:
        """The packet of each row."""
        return np.repeat(self.runs[:, 0], self._lengths())

    def _lengths(self) -> Numbers:
        return np.diff(self.runs[:, 2], append=self.rows.num_rows)


def part_of(rows: pa.RecordBatch, order: bytes) -> Part:
    """`order`: native int64, from the core."""
    return Part(rows, np.frombuffer(order, np.int64).reshape(-1, 3))


def merge_parts(parts: Sequence[dict[str, Part]], tables: Iterable[str]) -> dict[str, pa.RecordBatch]:
    """Merges by table; parts of the same analyzer are in order. Rows of details follow their calls.

    Removes merged rows from `parts`, to save memory.
    """
    found = {}
    places: Numbers | None = None
    calls = [part[CALLS].rows.num_rows if CALLS in part else 0 for part in parts]
    for table in sorted(tables, key=lambda table: table == DETAILS):
        given = [part.pop(table) for part in parts]
        if table == DETAILS:
            given = _with_rows(given, calls, places)
        order = _in_order(given)
        rows = concat_coded([part.rows for part in given])
        del given
        found[table] = rows if order is None else take_rows(rows, order)
        if table == CALLS:
            places = order
    return found


def _in_order(parts: Sequence[Part]) -> Numbers | None:
    """Indices of all rows in merged order; None if they are already in order."""
    if sum(part.rows.num_rows > 0 for part in parts) < 2:
        return None
    begins = np.cumsum([0, *(part.rows.num_rows for part in parts)])
    first = np.concatenate([part.runs[:, 2] + begin for part, begin in zip(parts, begins, strict=False)])
    lengths = np.diff(first, append=begins[-1])
    runs = np.concatenate([part.runs[:, :2] for part in parts])
    packets, places = runs[:, 0], runs[:, 1]
    alike = places.min() == places.max()  # nearly always: sorting by one key is faster
    order = np.argsort(packets, kind="stable") if alike else np.lexsort((places, packets))
    lengths = lengths[order]
    ends = np.cumsum(lengths)
    found: Numbers = np.arange(begins[-1]) + np.repeat(first[order] - ends + lengths, lengths)
    return found


def concat_coded(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of several in the coded schema."""
    some = [batch for batch in batches if batch.num_rows]
    if len(some) < 2:
        return some[0] if some else batches[0]
    return pa.Table.from_batches(some).unify_dictionaries().combine_chunks().to_batches()[0]


def _with_rows(parts: Sequence[Part], calls: Sequence[int], order: Numbers | None) -> list[Part]:
    """Rows of details with the new row numbers of their calls. `calls`: number of calls of each part."""
    new = np.arange(sum(calls))
    if order is not None:
        new[order] = np.arange(len(order))
    found = []
    for part, begin in zip(parts, np.cumsum([0, *calls]), strict=False):
        at = part.rows.schema.get_field_index("row")
        rows = new[whole_numbers(part.rows["row"], null=0) + begin]
        column = numbers(part.rows.schema.field(at).type, rows.astype(np.int64))
        found.append(part._replace(rows=_replace_column(part.rows, at, column)))
    return found


def fill_topic_names(table: str, part: Part, names: Names) -> Part:
    """Rows with topic names that other analyzers had learned before, for ids in `topic` and
    `topics`."""
    if not part.rows.num_rows or table not in NAMED:
        return part
    change = _name_listed if table == CALLS else _name_one
    return part._replace(rows=change(part, names))


def _name_one(part: Part, names: Names) -> pa.RecordBatch:
    batch = part.rows
    topic, ids = batch["topic"], batch["topic_id"]
    if not topic.null_count:
        return batch
    shown = ids.dictionary.to_pylist()
    known, new = _learn(shown, names)
    codes = whole_numbers(ids.indices, null=0)
    there = valid_rows(topic.indices)
    nameless = ~there & valid_rows(ids.indices)
    change = nameless.copy()
    change[nameless] = known[codes[nameless]] < part.packets()[nameless]
    if not change.any():
        return batch
    words, places = _with_words(topic.dictionary.to_pylist(), new)
    own = whole_numbers(topic.indices, null=0).astype(np.int32)
    own[change] = places[codes[change]]
    valid = there | change
    indices = numbers(pa.int32(), own, None if valid.all() else valid)
    column = pa.DictionaryArray.from_arrays(indices, texts(words), safe=False)
    return _replace_column(batch, batch.schema.get_field_index("topic"), column)


def _name_listed(part: Part, names: Names) -> pa.RecordBatch:
    batch = part.rows
    lists = batch["topics"]
    told = lists.values.dictionary.to_pylist()
    if not any(len(word) == _ID_CHARACTERS for word in told):
        return batch
    known, new = _learn(told, names)
    codes = whole_numbers(lists.values.indices, null=0)
    ends = np.frombuffer(lists.buffers()[1], np.int32)[lists.offset :][: len(lists) + 1]
    rows = np.repeat(np.arange(len(lists)), np.diff(ends))
    codes = codes[ends[0] : ends[-1]].astype(np.int32)
    change = known[codes] < part.packets()[rows]
    if not change.any():
        return batch
    words, places = _with_words(told, new)
    codes[change] = places[codes[change]]
    # A list with both an id and its name keeps only one.
    _, first = np.unique(rows * len(words) + codes, return_index=True)
    first.sort()
    lengths = np.bincount(rows[first], minlength=len(lists))
    mask = None if not lists.null_count else bits(valid_rows(lists))
    offsets = pa.py_buffer(np.cumsum([0, *lengths]).astype(np.int32))
    values = pa.DictionaryArray.from_arrays(numbers(pa.int32(), codes[first]), texts(words), safe=False)
    column = pa.Array.from_buffers(lists.type, len(lists), [mask, offsets], children=[values])
    return _replace_column(batch, batch.schema.get_field_index("topics"), column)


def _learn(ids: Sequence[str | None], names: Names) -> tuple[Numbers, list[str | None]]:
    """For each id its name, and the packet with it."""
    found: list[tuple[str | None, int]] = [names.get(each or "", (None, _NEVER)) for each in ids]
    return np.array([at for _, at in found] or [_NEVER], np.int64), [name for name, _ in found]


def _with_words(words: Sequence[str], more: Sequence[str | None]) -> tuple[list[str], Numbers]:
    """The union of two word lists, and the indices of the second one's words."""
    places = {word: place for place, word in enumerate(words)}
    for word in more:
        if word is not None:
            places.setdefault(word, len(places))
    return list(places), np.array([0 if word is None else places[word] for word in more], np.int32)


def _replace_column(batch: pa.RecordBatch, at: int, column: pa.Array) -> pa.RecordBatch:
    columns: list[Any] = list(batch.columns)
    columns[at] = column
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
