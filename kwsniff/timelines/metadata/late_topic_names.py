"""Names for topic ids in rows, if the message with the name came later in the capture."""

import re
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import bits, distinct, flags, valid_rows, whole_numbers


def _name_listed(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    chunks = [_rename(chunk, names) for chunk in table["topics"].chunks]
    at = table.column_names.index("topics")
    return table.set_column(at, table.schema.field(at), pa.chunked_array(chunks, table.schema.field(at).type))


def _rename(lists: pa.ListArray, names: Mapping[str, str]) -> pa.ListArray:
    """The lists with names for ids. A list with both an id and its name keeps only one."""
    coded = lists.values.dictionary_encode()
    words = coded.dictionary.to_pylist()
    codes, ends = whole_numbers(coded.indices, null=0), whole_numbers(lists.offsets, null=0)
    named = [names.get(word, word) for word in words]
    values = pa.array(named, pa.string()).take(coded.indices)
    kept = np.ones(len(values), np.bool_)
    numbers = {name: number for number, name in enumerate(named)}
    same = np.array([numbers[name] for name in named], np.int64)[codes]  # a number per name
    changed = np.flatnonzero(np.array([word in names for word in words], np.bool_)[codes])
    rows = np.unique(np.searchsorted(ends, changed, "right") - 1)
    rows = rows[(rows >= 0) & (rows < len(lists))]
    for row in rows[ends[rows + 1] - ends[rows] > 1]:
        seen: set[int] = set()
        for place, number in enumerate(same[ends[row] : ends[row + 1]].tolist(), ends[row]):
            kept[place] = number not in seen
            seen.add(number)
    if not kept.all():
        values = values.filter(flags(kept))
        ends = np.concatenate([[0], np.cumsum(kept)])[ends]
    mask = None if not lists.null_count else bits(valid_rows(lists))
    offsets = pa.py_buffer(ends.astype(np.int32))
    return pa.Array.from_buffers(lists.type, len(lists), [mask, offsets], children=[values])


def _name_one(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    import pyarrow.compute as pc

    ids = pa.array(list(names), pa.string())
    found = pc.index_in(table["topic_id"], value_set=ids)
    named = pa.array(list(names.values()), pa.string()).take(found.combine_chunks())
    at = table.column_names.index("topic")
    return table.set_column(at, table.schema.field(at), pc.coalesce(table["topic"], named))


_MENDED: Final = {
    "api_calls": _name_listed,
    "commits": _name_one,
    "deliveries": _name_one,
    "error_codes": _name_one,
    "partitions": _name_one,
    "record_batches": _name_one,
    "transactions": _name_listed,
}

_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}")

Change = Callable[[pa.Table], pa.Table]


def late_names(names: Mapping[str, str], tables: Container[str]) -> dict[str, Change]:
    """Table name -> function that adds the names to its rows (plain types), for those of `tables` with
    topics.

    `names`: topic id (22 characters) -> topic; empty without names.
    """
    if not names:
        return {}
    return {table: partial(mend, names=names) for table, mend in _MENDED.items() if table in tables}


class ShownIds:
    """The ids in each table, so that only tables with a newly named id are rewritten."""

    def __init__(self) -> None:
        self._ids: dict[str, set[str]] = {}

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Rows of the coded schema."""
        if found := shown_ids(table, batch):
            self._ids.setdefault(table, set()).update(found)

    def late_names(self, names: Mapping[str, str]) -> dict[str, Change]:
        """As the function of the same name, for tables with one of these ids."""
        return late_names(names, [table for table, ids in self._ids.items() if not ids.isdisjoint(names)])

    def clear(self) -> None:
        """Starts new tables."""
        self._ids.clear()


def shown_ids(table: str, batch: pa.RecordBatch) -> set[str]:
    """Topic ids in rows (of the coded schema) without a name so far."""
    if table not in _MENDED or not batch.num_rows:
        return set()
    if _MENDED[table] is _name_listed:
        words = batch["topics"].values.dictionary.to_pylist()
        return {word for word in words if _ID.fullmatch(word)}
    if not batch["topic"].null_count:
        return set()
    ids = batch["topic_id"]
    nameless = whole_numbers(ids.indices, null=-1)[~valid_rows(batch["topic"])]
    return {ids.dictionary[code].as_py() for code in distinct(nameless).tolist() if code >= 0}
