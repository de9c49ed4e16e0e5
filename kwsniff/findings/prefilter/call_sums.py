"""Calls of clients, summed by client and kind while rows pass: the view `call_sum` instead of all calls."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.call_totals import Codes, sum_calls
from kwsniff.core.columns.numbers import WholeColumn
from kwsniff.findings.api_purposes import names_of
from kwsniff.findings.prefilter.dictionaries import Numbers, as_bytes, codes_in, column_in, from_bytes
from kwsniff.findings.prefilter.top_k import TopK

PRODUCE, FETCH, METADATA, OTHER = range(4)
KINDS: Final = ("produce", "fetch", "metadata", "other")
"""Fetches are those that were answered, of share groups as well."""
TICK_US: Final = 500_000
"""Two requests that are 2 s apart have whole ticks between them, and so have two that are 1 s apart."""
_PURPOSES: Final = {"is_produce": PRODUCE, "is_fetch": FETCH, "is_metadata": METADATA}
_NEVER: Final = np.iinfo(np.int64).max
_LONG_AGO: Final = np.iinfo(np.int64).min
_SUMS: Final = ("calls", "known", "empty", "time_ns", "records", "bytes")
"""What there is of each group, in the order of `sum_calls`; so are the times."""
_TIMES: Final = ("first_time", "last_time")
_READS: Final = 5
"""Fetches of a client, those with records, those of a known number of records, these, and the last time."""
_NUMBERS: Final = (
    "request_time", "call_id", "latency_ns", "record_count", "record_bytes", "max_wait_ms",
    "response_end_time",
)  # fmt: skip


class CallSums:
    """Sums of rows of api_calls, of a few thousand clients, and the ticks of time in which each asked."""

    COLUMNS = ("client_id", "client_address", "caller", "api_name", "status", *_NUMBERS)

    def __init__(self) -> None:
        self._sums = np.zeros((len(_SUMS), 0), np.int64)
        self._spans = np.zeros((3, 0), np.int64)
        self._latest = np.full((2, 0), -1, np.int64)
        self._marks = np.zeros((2, 0), np.int64)
        self._proofs = TopK()
        self._reads = np.zeros((_READS, 0), np.int64)

    def make_room(self, clients: int) -> None:
        """Reserves space for a number of clients."""
        missing = clients - self._latest.shape[1]
        if missing > 0:
            groups = missing * len(KINDS)
            self._sums = np.pad(self._sums, ((0, 0), (0, groups)))
            new = np.repeat(np.array([[_NEVER], [0], [_NEVER]], np.int64), groups, axis=1)
            self._spans = np.concatenate([self._spans, new], axis=1)
            self._latest = np.concatenate([self._latest, np.full((2, missing), -1, np.int64)], axis=1)
            self._proofs.make_room(clients * len(KINDS))
            none = np.repeat(np.array([[0]] * (_READS - 1) + [[_LONG_AGO]], np.int64), missing, axis=1)
            self._reads = np.concatenate([self._reads, none], axis=1)

    def add(
        self,
        batch: pa.RecordBatch,
        clients: tuple[WholeColumn, WholeColumn],
        numbers: tuple[Numbers, Numbers],
    ) -> tuple[Numbers, Numbers] | None:
        """Adds rows. `clients`: their ids and addresses, `numbers`: those of each, by code.

        Gives marks of the ticks in which clients asked, and asked for Metadata, as client << 40 | tick, most
        of them once; None for a time that is not a valid clock time.
        """
        callers, words = codes_in(batch, "caller")
        apis, names = codes_in(batch, "api_name")
        statuses, states = codes_in(batch, "status")
        if self._marks.shape[1] < batch.num_rows:
            self._marks = np.zeros((2, batch.num_rows), np.int64)
        kinds = {name: kind for purpose, kind in _PURPOSES.items() for name in names_of(purpose)}
        answered = [kinds.get(name, OTHER) for name in names]
        codes = Codes(
            *numbers,
            _by_code([word == "client" for word in words], null=True),
            _by_code(answered, null=OTHER),
            _by_code([OTHER if kind == FETCH else kind for kind in answered], null=OTHER),
            states.index("answered") if "answered" in states else len(states),
        )
        marked, asked = sum_calls(
            (*clients, callers, apis, statuses, *(column_in(batch, name) for name in _NUMBERS)),
            codes, METADATA, FETCH, TICK_US, self._sums, self._spans, self._proofs.keys, self._proofs.ids,
            self._latest, self._marks, self._reads,
        )  # fmt: skip
        return None if marked < 0 else (self._marks[0, :marked].copy(), self._marks[1, :asked].copy())

    def state(self) -> tuple[Any, ...]:
        """The sums, for `add_up`; without marks."""
        return as_bytes(self._sums), as_bytes(self._spans), self._proofs.state(), as_bytes(self._reads)

    def merge(self, state: tuple[Any, ...], clients: Numbers) -> None:
        """Adds the sums of another one. `clients`: the numbers of its clients here."""
        sums, spans, proofs, reads = state
        groups = (clients[:, None] * len(KINDS) + np.arange(len(KINDS))).ravel()
        self._sums[:, groups] += from_bytes(sums, len(_SUMS))
        first, last, waits = from_bytes(spans, 3)
        self._spans[0, groups] = np.minimum(self._spans[0, groups], first)
        self._spans[1, groups] = np.maximum(self._spans[1, groups], last)
        self._spans[2, groups] = np.minimum(self._spans[2, groups], waits)
        self._proofs.merge(proofs, groups)
        *counts, last_time = from_bytes(reads, _READS)
        self._reads[:-1, clients] += counts
        self._reads[-1, clients] = np.maximum(self._reads[-1, clients], last_time)

    def column(self, name: str) -> Numbers:
        """A sum, or `first_time`, `last_time`: a row for each client, a column for each kind."""
        found: Numbers = self._spans[_TIMES.index(name)] if name in _TIMES else self._sums[_SUMS.index(name)]
        return found.reshape(-1, len(KINDS))

    def rows(self, clients: Mapping[str | None, int]) -> dict[str, list[Any]]:
        """The view's columns. `clients`: their numbers, by name."""
        names = {number: name for name, number in clients.items()}
        groups = [
            group for group in np.flatnonzero(self._sums[0]).tolist() if names.get(group // 4) is not None
        ]
        sums = {name: values[groups].tolist() for name, values in zip(_SUMS, self._sums, strict=True)}
        first, last, waits = (each[groups].tolist() for each in self._spans)
        return {
            "client": [names[group // 4] for group in groups],
            "kind": [KINDS[group % 4] for group in groups],
            **sums,
            "first_time": first,
            "last_time": last,
            "max_wait": [None if wait == _NEVER else wait for wait in waits],
            "call_ids": [self._proofs.list_ids(group) for group in groups],
        }

    def reads(self, clients: Mapping[str | None, int]) -> dict[str, list[Any]]:
        """The columns of `fetch_sum`. `clients`: their numbers, by name."""
        found = [
            (name, *self._reads[1:, number].tolist())
            for name, number in clients.items()
            if name is not None and self._reads[0, number]
        ]
        return {
            "client": [name for name, *_ in found],
            "polls": [polls for _, polls, *_ in found],
            "records": [records if known else None for *_, known, records, _ in found],
            "last_time": [None if time == _LONG_AGO else time for *_, time in found],
        }


def _by_code(values: Sequence[int], null: int) -> Numbers:
    return np.array([*values, null], np.int64)
