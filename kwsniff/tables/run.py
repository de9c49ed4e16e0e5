"""The run of a row: `run_id`, the last column of every table.

Ids of calls and connections come from packet numbers, so two runs have the same ones; the run's id makes
them unique. The column is added when rows leave the run, as a dictionary with one value: a few bytes per row
group.
"""

import uuid
from functools import lru_cache
from typing import Final

import pyarrow as pa

from kwsniff.errors import UsageError
from kwsniff.tables.arrays import texts
from kwsniff.tables.schema import TABLES, stored_schema

_MOST_LETTERS = 200
_ZEROES: Final = pa.py_buffer(bytes(1 << 17))  # the code of the only dictionary value


def new_run_id() -> str:
    """A unique id: 32 random hexadecimal digits."""
    return uuid.uuid4().hex


def check_run_id(given: str | None) -> str:
    """The given id, or a new one. Raises UsageError for an invalid one."""
    if given is None:
        return new_run_id()
    if not 0 < len(given) <= _MOST_LETTERS or not given.isprintable():
        raise UsageError(f"run_id {given[:_MOST_LETTERS]!r}: give 1 to {_MOST_LETTERS} printable characters")
    return given


def add_run_id(table: str, rows: pa.RecordBatch, run_id: str) -> pa.RecordBatch:
    """Converts rows from the table's coded schema to its stored schema, with the id of their run."""
    codes = pa.Array.from_buffers(pa.int8(), rows.num_rows, [None, _zeroes(rows.num_rows)])
    column = pa.DictionaryArray.from_arrays(codes, _word(run_id), safe=False)
    return pa.RecordBatch.from_arrays([*rows.columns, column], schema=stored_schema(TABLES[table]))


def _zeroes(num: int) -> pa.Buffer:
    return _ZEROES if num <= len(_ZEROES) else pa.py_buffer(bytes(num))


@lru_cache(maxsize=4)
def _word(run_id: str) -> pa.StringArray:
    return texts([run_id])
