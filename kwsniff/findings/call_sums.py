"""Calls of clients, summed by client and kind while rows pass: the view `call_sum` in place of all calls."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.passes import sum_calls
from kwsniff.findings.coded import Numbers, coded, numbers_of
from kwsniff.findings.foremost import Foremost

PRODUCE, FETCH, METADATA, OTHER = range(4)
KINDS: Final = ("produce", "fetch", "metadata", "other")
"""Fetches are those that were answered, of share groups as well."""
_KIND_OF: Final = {"Produce": PRODUCE, "Fetch": FETCH, "ShareFetch": FETCH, "Metadata": METADATA}
_NEVER: Final = np.iinfo(np.int64).max
_SUMS: Final = ("calls", "known", "empty", "time_ns", "records", "bytes")
"""What there is of each group, in the order of `sum_calls`."""


class CallSums:
    """Sums of rows of api_calls, of a few thousand clients."""

    COLUMNS = (
        "call_id", "api_name", "status", "request_time", "max_wait_ms", "latency_ns",
        "record_count", "record_bytes",
    )  # fmt: skip

    def __init__(self) -> None:
        self._sums = np.zeros((len(_SUMS), 0), np.int64)
        self._first = np.zeros(0, np.int64)
        self._last = np.zeros(0, np.int64)
        self._wait = np.zeros(0, np.int64)
        self._proofs = Foremost()

    def make_room(self, clients: int) -> None:
        """For so many clients."""
        missing = clients * 4 - len(self._last)
        if missing > 0:
            self._sums = np.pad(self._sums, ((0, 0), (0, missing)))
            self._first, self._wait = (
                np.pad(each, (0, missing), constant_values=_NEVER) for each in (self._first, self._wait)
            )
            self._last = np.pad(self._last, (0, missing))

    def add(self, batch: pa.RecordBatch, rows: Numbers | slice, groups: Numbers, times: Numbers) -> None:
        """Some rows: of each its client's number times four and its kind, and its time in microseconds."""

        def column(name: str, null: int) -> Numbers:
            return np.ascontiguousarray(numbers_of(batch, name, null)[rows], np.int64)

        sum_calls(
            groups, times, column("latency_ns", 0),
            column("record_count", -1), column("record_bytes", -1), column("max_wait_ms", -1),
            self._sums, self._first, self._last, self._wait,
        )  # fmt: skip
        self._proofs.add(groups, times, numbers_of(batch, "call_id", null=_NEVER)[rows])

    def of(self, name: str) -> Numbers:
        """A sum, or `first_time`, `last_time`: a row for each client, a column for each kind."""
        times = {"first_time": self._first, "last_time": self._last}
        found: Numbers = times[name] if name in times else self._sums[_SUMS.index(name)]
        return found.reshape(-1, 4)

    def rows(self, clients: Mapping[str | None, int]) -> dict[str, list[Any]]:
        """The view's columns. `clients`: their numbers, by name."""
        names = {number: name for name, number in clients.items()}
        groups = [
            group for group in np.flatnonzero(self._sums[0]).tolist() if names.get(group // 4) is not None
        ]
        sums = {name: values[groups].tolist() for name, values in zip(_SUMS, self._sums, strict=True)}
        return {
            "client": [names[group // 4] for group in groups],
            "kind": [KINDS[group % 4] for group in groups],
            **sums,
            "first_time": self._first[groups].tolist(),
            "last_time": self._last[groups].tolist(),
            "max_wait": [None if wait == _NEVER else wait for wait in self._wait[groups].tolist()],
            "call_ids": [self._proofs.of(group) for group in groups],
        }


def kinds_of(batch: pa.RecordBatch) -> Numbers:
    """The kind of each row of api_calls."""
    codes, words = coded(batch, "api_name")
    kinds = np.array([*(_KIND_OF.get(word, OTHER) for word in words), OTHER], np.int64)[codes]
    codes, words = coded(batch, "status")
    if "answered" not in words or (codes != words.index("answered")).any():
        answered = codes == (words.index("answered") if "answered" in words else len(words))
        kinds = np.where((kinds == FETCH) & ~answered, OTHER, kinds)
    return kinds
