"""Which run a row is of: `run_id`, the last column of every table.

Ids of calls and connections are made of packet numbers, so those of two runs are alike; with the run's own
id they are not. It is put on as the rows leave the run: a dictionary of one word, a few bytes per row group.
"""

import uuid
from functools import cache, lru_cache
from typing import Final

import pyarrow as pa

from kwsniff.errors import UsageError
from kwsniff.tables.arrays import texts
from kwsniff.tables.schema import TABLES, stored_schema

_MOST_LETTERS = 200
_ZEROES: Final = pa.py_buffer(bytes(1 << 17))  # the code of the one word there is, for so many rows


def new_run_id() -> str:
    """An id that no other run has: 32 hexadecimal digits, at random."""
    return uuid.uuid4().hex


def check_run_id(given: str | None) -> str:
    """An id that somebody chose, or a new one. Raises UsageError for one that is no text of some letters."""
    if given is None:
        return new_run_id()
    if not 0 < len(given) <= _MOST_LETTERS or not given.isprintable():
        raise UsageError(f"run_id {given[:_MOST_LETTERS]!r}: give 1 to {_MOST_LETTERS} printable letters")
    return given


def stamped(table: str, rows: pa.RecordBatch, run_id: str) -> pa.RecordBatch:
    """Rows in the table's coded schema, with the id of their run: in its stored schema."""
    codes = pa.Array.from_buffers(pa.int8(), rows.num_rows, [None, _zeroes(rows.num_rows)])
    column = pa.DictionaryArray.from_arrays(codes, _word(run_id), safe=False)
    return pa.RecordBatch.from_arrays([*rows.columns, column], schema=_stored(table))


def _zeroes(num: int) -> pa.Buffer:
    return _ZEROES if num <= len(_ZEROES) else pa.py_buffer(bytes(num))


@lru_cache(maxsize=4)
def _word(run_id: str) -> pa.StringArray:
    return texts([run_id])


@cache
def _stored(table: str) -> pa.Schema:
    return stored_schema(TABLES[table])
