"""Rows of a batch grouped by some of its columns."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwsniff.core.columns import keyed_rows
from kwsniff.tables.arrays import Numbers, column_of, in_groups, numbers, valid_rows, whole_numbers, words_of
from kwsniff.tables.compute import dictionary_encode, take_rows

_FEW = 1 << 16  # up to this many combinations a table is faster than a hash
_CLOSE = 128  # numbers in such a span are their own codes
_MANY = 1 << 62  # more would not fit in 64 bits


class Groups:
    """Rows grouped by some columns, without sorting and without an object per row."""

    def __init__(self, batch: pa.RecordBatch, columns: Sequence[str]) -> None:
        self._columns = list(columns)
        self._words: list[pa.Array] = []
        self._codes: list[Numbers] = []
        possible = 1
        combined = np.zeros(batch.num_rows, np.int32)
        for name in columns:
            words, codes = _code(batch[name])
            self._words.append(words)
            self._codes.append(codes)
            more = len(words) + 1
            if possible * more > _MANY:
                combined, first = _number(combined)
                possible = len(first)
            possible *= more
            if possible >= 1 << 31 and combined.dtype != np.int64:
                combined = combined.astype(np.int64)
            combined *= more
            combined += self._codes[-1]
            combined += 1
        self._group, self._first = _by_place(combined, possible) if possible <= _FEW else _number(combined)

    @property
    def numbers(self) -> Numbers:
        """The group of each row: its index in `labels`."""
        return self._group

    @property
    def firsts(self) -> Numbers:
        """The first row of each group."""
        return self._first

    def labels(self, names: Sequence[str] | None = None) -> Iterator[tuple[Any, ...]]:
        """The values of each group, of some or all of the columns, null as None; texts as words_of gives
        them."""
        columns = []
        for name in self._columns if names is None else names:
            words, codes = self._words[self._columns.index(name)], self._codes[self._columns.index(name)]
            values = [*words_of(words), None]
            columns.append([values[code] for code in codes[self._first].tolist()])
        return zip(*columns, strict=True)

    def counts(self, rows: "np.ndarray[Any, np.dtype[np.bool_]] | None" = None) -> Numbers:
        """Number of rows of each group, or of those selected."""
        group = self._group if rows is None else self._group[rows]
        return np.bincount(group, minlength=len(self._first))

    def split(self, column: pa.Array) -> Iterator[Numbers]:
        """The values of each group that are not null."""
        values, group = whole_numbers(column, null=0), self._group
        if column.null_count:
            valid = valid_rows(column)
            values, group = values[valid], group[valid]
        order = in_groups(group, len(self._first))
        ends = np.cumsum(np.bincount(group, minlength=len(self._first)))
        return iter(np.split(values[order], ends[:-1]))

    def sort(self, column: pa.Array) -> Iterator[list[int]]:
        """The values of each group, of a column without nulls, in their order."""
        values = whole_numbers(column, null=0)
        told = values[np.lexsort((values, self._group))].tolist()
        ends = np.cumsum(np.bincount(self._group, minlength=len(self._first))).tolist()
        return (told[begin:end] for begin, end in pairwise([0, *ends]))


class Counted(NamedTuple):
    """The distinct rows of a batch, as they come first."""

    rows: pa.RecordBatch
    counts: Numbers
    """How many rows are equal to each."""
    least: Numbers
    """The least time of these; NEVER without one."""
    most: Numbers
    """The greatest; the negative of NEVER without one."""


NEVER: Final = np.iinfo(np.int64).max


def count_rows(batch: pa.RecordBatch, columns: Sequence[str], times: str) -> Counted:
    """Counts the distinct rows of some columns: whole numbers, or texts as dictionaries; one of them has a
    value. The second smallest 64-bit number counts as null."""
    stored = [_take_indices(batch[name]) for name in columns]
    there = tuple(column_of(each) for each in stored if each.null_count < len(each))
    firsts, counts, least, most = np.empty((4, batch.num_rows), np.int64)
    found = keyed_rows.count_rows(there, column_of(batch[times]), firsts, counts, least, most)
    return Counted(
        take_rows(batch.select([*columns]), firsts[:found]), counts[:found], least[:found], most[:found]
    )


def _take_indices(column: pa.Array) -> pa.Array:
    return column.indices if pa.types.is_dictionary(column.type) else column


def _code(column: pa.Array) -> tuple[pa.Array, Numbers]:
    """The values of a column, and which of them each row has; -1 is null."""
    if pa.types.is_integer(column.type) and len(column) and not column.null_count:
        values = whole_numbers(column, null=0)
        least, most = int(values.min()), int(values.max())
        if most - least < _CLOSE:
            return numbers(pa.int64(), np.arange(least, most + 1)), values - least
    coded = column if pa.types.is_dictionary(column.type) else dictionary_encode(column)
    return coded.dictionary, whole_numbers(coded.indices, null=-1)


def _number(combined: Numbers) -> tuple[Numbers, Numbers]:
    """The group of each row, and the first row of each group, in the order of these."""
    coded = dictionary_encode(numbers(pa.int64(), combined.astype(np.int64, copy=False)))
    group = whole_numbers(coded.indices, null=0)
    first = np.zeros(len(coded.dictionary), np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    return group, first


def _by_place(combined: Numbers, possible: int) -> tuple[Numbers, Numbers]:
    """As `_number`, for a small number of values, below `possible`."""
    first = np.full(possible, len(combined), np.int64)
    first[combined[::-1]] = np.arange(len(combined))[::-1]
    codes = np.flatnonzero(first < len(combined))
    codes = codes[np.argsort(first[codes])]
    places = np.zeros(possible, np.int32)
    places[codes] = np.arange(len(codes))
    return places[combined], first[codes]
