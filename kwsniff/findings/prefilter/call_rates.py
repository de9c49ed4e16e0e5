"""Calls with one purpose by client, counted while rows pass: bounds for rules about commits and questions."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.api_purposes import names_of
from kwsniff.findings.prefilter.dictionaries import encode, numbers_of

_CLIENTS: Final = 1 << 14
"""Clients that are counted at most; the rule is asked where there are more."""
_LEAST: Final = 50
_LEAST_US: Final = 2_000_000
_MANY: Final = 200
"""`commits`, `span_s` and `many` of commit_storm and monitor_storm."""
_NEVER: Final = np.iinfo(np.int64).max
Counted = tuple[int, int, int]
"""Calls, and the times of the first and the last one."""


class CallRates:
    """The number of calls with a purpose of each client, and their time range."""

    def __init__(self, purpose: str) -> None:
        self._purpose = purpose
        self._clients: dict[str, Counted] = {}
        self._crowded = False
        self.refused = 0
        """Those with an error code."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Counts rows of api_calls."""
        codes, apis = encode(batch, "api_name")
        names = names_of(self._purpose)
        wanted = np.array([*(api in names for api in apis), False])  # null is the last
        rows = np.flatnonzero(wanted[codes]) if wanted.any() else ()
        if not len(rows):
            return
        self.refused += int(np.count_nonzero(numbers_of(batch, "error_code", null=0)[rows]))
        (ids, named), (places, addresses) = encode(batch, "client_id"), encode(batch, "client_address")
        ids, places = ids[rows], places[rows]
        clients = np.where(ids >= 0, ids, places + len(named))
        times = numbers_of(batch, "request_time", null=_NEVER)[rows]
        known = [*named, *addresses]
        timed = (clients >= 0) & (times != _NEVER)
        clients, times = clients[timed], times[timed]
        counts = np.bincount(clients, minlength=len(known))
        firsts, lasts = np.full(len(known), _NEVER), np.zeros(len(known), np.int64)
        np.minimum.at(firsts, clients, times)
        np.maximum.at(lasts, clients, times)
        some = np.flatnonzero(counts)
        counted = zip(counts[some].tolist(), firsts[some].tolist(), lasts[some].tolist(), strict=True)
        for client, found in zip(some.tolist(), counted, strict=True):
            self._widen(known[client], found)

    def greatest(self) -> float:
        """Calls per second of the client that makes most, of those with as many as the rules ask for."""
        rates = (
            number / max((last - first) / 1e6, 1)
            for number, first, last in self._clients.values()
            if number >= _MANY or (number >= _LEAST and last - first >= _LEAST_US)
        )
        return float("inf") if self._crowded else max(rates, default=0.0)

    def state(self) -> tuple[Any, ...]:
        """What was counted, for `merge`."""
        return {**self._clients}, self._crowded, self.refused

    def merge(self, state: tuple[Any, ...]) -> None:
        """Adds what another one counted."""
        clients, crowded, refused = state
        self._crowded |= crowded
        self.refused += refused
        for client, counted in clients.items():
            self._widen(client, tuple(counted))

    def _widen(self, client: str, counted: Counted) -> None:
        number, first, last = self._clients.get(client, (0, _NEVER, 0))
        if len(self._clients) >= _CLIENTS and not number:
            self._crowded = True
            return
        self._clients[client] = number + counted[0], min(first, counted[1]), max(last, counted[2])
