"""Calls of clients, summed by client and kind while rows pass: the view `call_sum` in place of all calls."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.coded import Numbers, coded, numbers_of
from kwsniff.findings.foremost import Foremost

PRODUCE, FETCH, METADATA, OTHER = range(4)
KINDS: Final = ("produce", "fetch", "metadata", "other")
"""Fetches are those that were answered, of share groups as well."""
_KIND_OF: Final = {"Produce": PRODUCE, "Fetch": FETCH, "ShareFetch": FETCH, "Metadata": METADATA}
_NEVER: Final = np.iinfo(np.int64).max
_SUMMED: Final = {"time_ns": "latency_ns", "records": "record_count", "bytes": "record_bytes"}


class CallSums:
    """Sums of rows of api_calls, of a few thousand clients."""

    COLUMNS = (
        "call_id", "api_name", "status", "request_time", "max_wait_ms", *_SUMMED.values(),
    )  # fmt: skip

    def __init__(self) -> None:
        self._sums = {name: np.zeros(0, np.int64) for name in ("calls", "known", "empty", *_SUMMED)}
        self._least = {name: np.zeros(0, np.int64) for name in ("first_time", "max_wait")}
        self._last = np.zeros(0, np.int64)
        self._proofs = Foremost()

    def make_room(self, clients: int) -> None:
        """For so many clients."""
        missing = clients * 4 - len(self._last)
        if missing > 0:
            for name, sums in self._sums.items():
                self._sums[name] = np.pad(sums, (0, missing))
            for name, least in self._least.items():
                self._least[name] = np.pad(least, (0, missing), constant_values=_NEVER)
            self._last = np.pad(self._last, (0, missing))

    def add(self, batch: pa.RecordBatch, rows: Numbers | slice, groups: Numbers, times: Numbers) -> None:
        """Some rows: of each its client's number times four and its kind, and its time in microseconds."""
        size = len(self._last)
        self._sums["calls"] += np.bincount(groups, minlength=size)
        np.minimum.at(self._least["first_time"], groups, times)
        np.maximum.at(self._last, groups, times)
        for name, column in _SUMMED.items():
            values = numbers_of(batch, column, null=0)[rows]
            self._sums[name] += np.bincount(groups, values, size).astype(np.int64)
        records = numbers_of(batch, "record_count", null=-1)[rows]
        self._sums["known"] += np.bincount(groups[records >= 0], minlength=size)
        self._sums["empty"] += np.bincount(groups[records <= 0], minlength=size)
        waits = numbers_of(batch, "max_wait_ms", null=-1)[rows]
        waiting = np.flatnonzero(waits >= 0)
        np.minimum.at(self._least["max_wait"], groups[waiting], waits[waiting])
        self._proofs.add(groups, times, numbers_of(batch, "call_id", null=_NEVER)[rows])

    def of(self, name: str) -> Numbers:
        """A sum, or `first_time`, `last_time`: a row for each client, a column for each kind."""
        found: Numbers = {**self._sums, **self._least, "last_time": self._last}[name]
        return found.reshape(-1, 4)

    def rows(self, clients: Mapping[str | None, int]) -> dict[str, list[Any]]:
        """The view's columns. `clients`: their numbers, by name."""
        names = {number: name for name, number in clients.items()}
        groups = [
            group
            for group in np.flatnonzero(self._sums["calls"]).tolist()
            if names.get(group // 4) is not None
        ]
        waits = self._least["max_wait"]
        sums = {name: values[groups].tolist() for name, values in self._sums.items()}
        return {
            "client": [names[group // 4] for group in groups],
            "kind": [KINDS[group % 4] for group in groups],
            **sums,
            "first_time": self._least["first_time"][groups].tolist(),
            "last_time": self._last[groups].tolist(),
            "max_wait": [None if waits[group] == _NEVER else int(waits[group]) for group in groups],
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
