"""Rows of a batch grouped by some of its columns."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa


class Groups:
    """Rows grouped by the values of some columns, without sorting and without an object per row."""

    def __init__(self, batch: pa.RecordBatch, columns: Sequence[str]) -> None:
        self._words = []
        combined = np.zeros(batch.num_rows, np.int64)
        for name in columns:
            column = batch[name]
            coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            combined *= len(coded.dictionary) + 1
            combined += codes
            combined += 1
            self._words.append(coded.dictionary)
        encoded = pa.array(combined).dictionary_encode()
        self._group = encoded.indices.to_numpy()
        self._codes = encoded.dictionary.to_numpy()

    def labels(self) -> Iterator[tuple[Any, ...]]:
        """The values of each group, null as None."""
        rest = self._codes
        columns = []
        for words in reversed(self._words):
            rest, codes = np.divmod(rest, len(words) + 1)
            columns.append(words.take(pa.array(codes - 1, mask=codes == 0)).to_pylist())
        return zip(*reversed(columns), strict=True)

    def counts(self, rows: "np.ndarray[Any, np.dtype[np.bool_]] | None" = None) -> "np.ndarray[Any, Any]":
        """Rows of each group, or how many of them are among the chosen ones."""
        group = self._group if rows is None else self._group[rows]
        return np.bincount(group, minlength=len(self._codes))

    def split(self, numbers: pa.Array) -> "Iterator[np.ndarray[Any, Any]]":
        """The values of each group that are not null."""
        values = numbers.drop_null().to_numpy()
        group = self._group if not numbers.null_count else self._group[numbers.is_valid().to_numpy(False)]
        if len(self._codes) < 1 << 16:
            group = group.astype(np.uint16)  # a stable sort of these is a radix sort
        order = np.argsort(group, kind="stable")
        ends = np.cumsum(np.bincount(group, minlength=len(self._codes)))
        return iter(np.split(values[order], ends[:-1]))
