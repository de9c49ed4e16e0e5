"""Rows of error_codes, as filters ask them."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import Bits, Numbers, whole_numbers
from kwsniff.tables.compute import dictionary_encode

COLUMNS = ("call_id", "error_code")


class ErrorRows:
    """Of one run, or with `run_id` of several: the numbers of calls are then those of their run."""

    def __init__(self, batches: Iterable[pa.RecordBatch], *, by_run: bool = False) -> None:
        self._by_run = by_run
        found: dict[str | None, list[tuple[Numbers, Numbers]]] = {}
        for batch in batches:
            calls, codes = (whole_numbers(batch[name], null=0) for name in COLUMNS)
            for run, rows in runs_in(batch) if by_run else ((None, slice(None)),):
                found.setdefault(run, []).append((calls[rows], codes[rows]))
        self._found = {
            run: (np.concatenate([calls for calls, _ in some]), np.concatenate([codes for _, codes in some]))
            for run, some in found.items()
        }

    def having(self, calls: pa.RecordBatch, codes: frozenset[int]) -> Bits:
        """For each call whether its response has one of these error codes."""
        fits = np.zeros(calls.num_rows, np.bool_)
        numbers = whole_numbers(calls["call_id"], null=0)
        wanted = np.array(sorted(codes), np.int64)
        for run, rows in runs_in(calls) if self._by_run else ((None, slice(None)),):
            if run in self._found:
                ids, codes_of = self._found[run]
                fits[rows] = np.isin(numbers[rows], ids[np.isin(codes_of, wanted)])
        return fits


def runs_in(batch: pa.RecordBatch) -> list[tuple[str | None, Bits]]:
    """The runs of a batch, and which rows are theirs."""
    column = batch["run_id"]
    coded = column if pa.types.is_dictionary(column.type) else dictionary_encode(column)
    places = whole_numbers(coded.indices, null=-1)
    names = [*coded.dictionary.to_pylist(), None]
    return [(names[place], places == place) for place in np.unique(places).tolist()]
