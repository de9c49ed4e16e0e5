"""Rows of a batch grouped by some of its columns."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import in_groups, numbers, valid_rows, whole_numbers

_FEW = 1 << 16  # combinations, of which a table is faster than a hash


class Groups:
    """Rows grouped by the values of some columns, without sorting and without an object per row."""

    def __init__(self, batch: pa.RecordBatch, columns: Sequence[str]) -> None:
        coded = []
        for name in columns:
            column = batch[name]
            coded.append(column if pa.types.is_dictionary(column.type) else column.dictionary_encode())
        self._words = [array.dictionary for array in coded]
        possible = prod(len(words) + 1 for words in self._words)
        combined = np.zeros(batch.num_rows, np.int32 if possible < 1 << 31 else np.int64)
        for array in coded:
            combined *= len(array.dictionary) + 1
            combined += whole_numbers(array.indices, null=-1)
            combined += 1
        if possible <= _FEW:
            self._codes, self._group = _by_place(combined, possible)
        else:
            encoded = numbers(pa.int64(), combined.astype(np.int64, copy=False)).dictionary_encode()
            self._group = whole_numbers(encoded.indices, null=0)
            self._codes = whole_numbers(encoded.dictionary, null=0)

    @property
    def numbers(self) -> "np.ndarray[Any, Any]":
        """The group of each row: its place in `labels`."""
        return self._group

    def labels(self) -> Iterator[tuple[Any, ...]]:
        """The values of each group, null as None."""
        rest = self._codes
        columns = []
        for words in reversed(self._words):
            rest, codes = np.divmod(rest, len(words) + 1)
            columns.append(words.take(numbers(pa.int64(), codes - 1, codes > 0)).to_pylist())
        return zip(*reversed(columns), strict=True)

    def counts(self, rows: "np.ndarray[Any, np.dtype[np.bool_]] | None" = None) -> "np.ndarray[Any, Any]":
        """Rows of each group, or how many of them are among the chosen ones."""
        group = self._group if rows is None else self._group[rows]
        return np.bincount(group, minlength=len(self._codes))

    def split(self, column: pa.Array) -> "Iterator[np.ndarray[Any, Any]]":
        """The values of each group that are not null."""
        values, group = whole_numbers(column, null=0), self._group
        if column.null_count:
            valid = valid_rows(column)
            values, group = values[valid], group[valid]
        order = in_groups(group, len(self._codes))
        ends = np.cumsum(np.bincount(group, minlength=len(self._codes)))
        return iter(np.split(values[order], ends[:-1]))


def _by_place(combined: "np.ndarray[Any, Any]", possible: int) -> "tuple[np.ndarray[Any, Any], ...]":
    """Distinct numbers below `possible` in the order of their first rows, and which of them each row has."""
    first = np.full(possible, len(combined), np.int64)
    first[combined[::-1]] = np.arange(len(combined))[::-1]
    codes = np.flatnonzero(first < len(combined))
    codes = codes[np.argsort(first[codes])]
    places = np.zeros(possible, np.int32)
    places[codes] = np.arange(len(codes))
    return codes, places[combined]
