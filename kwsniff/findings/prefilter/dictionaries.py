"""Columns of batches as numpy arrays, including missing columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.numbers import WholeColumn
from kwsniff.tables.arrays import column_of, is_short, valid_rows, whole_numbers, words_of
from kwsniff.tables.compute import dictionary_encode

Numbers = np.ndarray[Any, Any]


def _column(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    place = batch.schema.get_field_index(name)  # a list of all names takes as long as some columns
    return batch.column(place) if place >= 0 else None


def numbers_of(batch: pa.RecordBatch, name: str, null: int) -> Numbers:
    """Integers, or microseconds since 1970, of a column; `null` replaces nulls, or all values of a missing
    column."""
    column = _column(batch, name)
    if column is None:
        return np.full(batch.num_rows, null, np.int64)
    return whole_numbers(_in_microseconds(column), null)


def column_in(batch: pa.RecordBatch, name: str) -> WholeColumn:
    """The same for compiled passes, with their own value for null."""
    column = _column(batch, name)
    return WholeColumn(b"", 0, 0, batch.num_rows) if column is None else column_of(_in_microseconds(column))


def encode(batch: pa.RecordBatch, name: str) -> tuple[Numbers, list[str]]:
    """The place of each row's text in a list of texts; -1 is null."""
    found = _encode(batch, name)
    if found is None:
        return np.full(batch.num_rows, -1, np.int64), []
    return whole_numbers(found.indices, null=-1), words_of(found.dictionary)


def codes_in(batch: pa.RecordBatch, name: str) -> tuple[WholeColumn, list[str]]:
    """The same for compiled passes."""
    found = _encode(batch, name)
    if found is None:
        return WholeColumn(b"", 0, 0, batch.num_rows), []
    return column_of(found.indices), words_of(found.dictionary)


def count_of(batch: pa.RecordBatch, name: str, word: str) -> int:
    """Rows with this text in a column."""
    codes, words = codes_in(batch, name)
    return codes.count(words.index(word)) if word in words else 0


def _encode(batch: pa.RecordBatch, name: str) -> pa.DictionaryArray | None:
    column = _column(batch, name)
    return column if column is None or pa.types.is_dictionary(column.type) else dictionary_encode(column)


def _in_microseconds(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type) and column.type.unit != "us":
        return column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return column


def flags_of(batch: pa.RecordBatch, name: str) -> Numbers:
    """A column of truth values; null is false."""
    column = _column(batch, name)
    if column is None:
        return np.zeros(batch.num_rows, np.bool_)
    if not len(column):
        return np.zeros(0, np.bool_)
    memory = np.unpackbits(np.frombuffer(column.buffers()[1], np.uint8), bitorder="little")
    values = memory[column.offset : column.offset + len(column)].view(np.bool_)
    return values & valid_rows(column) if column.null_count else values


def as_bytes(values: Numbers) -> bytes:
    """Integers as bytes, for `from_bytes`: the format for counts of other processes."""
    return np.ascontiguousarray(values, np.int64).tobytes()


def from_bytes(data: bytes, rows: int = 1) -> Numbers:
    """The integers of `to_bytes` in the given number of rows; read-only."""
    return np.frombuffer(data, np.int64).reshape(rows, -1)


def has_long_texts(batch: pa.RecordBatch, texts: Sequence[int]) -> bool:
    """Whether a word in the columns at these places is long."""
    return any(not is_short(batch.column(place).dictionary) for place in texts)


def texts_in(schema: pa.Schema) -> list[int]:
    """Places of columns with texts of the capture: where all words are known, codes have less bits."""
    types = enumerate(schema.types)
    return [
        at
        for at, type_ in types
        if pa.types.is_dictionary(type_)
        and type_.index_type == pa.int32()
        and pa.types.is_string(type_.value_type)
    ]
