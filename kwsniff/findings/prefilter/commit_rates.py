"""Commits by client, counted while rows pass: a bound for the rule about commit storms."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.api_purposes import names_of
from kwsniff.findings.prefilter.dictionaries import encode, numbers_of

_CLIENTS: Final = 1 << 14
"""Clients that are counted at most; the rule is asked where there are more."""
_LEAST: Final = 50
"""`commits` of the rule."""
_NEVER: Final = np.iinfo(np.int64).max
Counted = tuple[int, int, int]
"""Commits, and the times of the first and the last one."""


class CommitRates:
    """The number of commits of each client, and their time range."""

    def __init__(self) -> None:
        self._clients: dict[str, Counted] = {}
        self._crowded = False

    def add(self, batch: pa.RecordBatch) -> None:
        """Counts rows of api_calls."""
        codes, apis = encode(batch, "api_name")
        wanted = [apis.index(api) for api in names_of("is_commit") if api in apis]
        rows = np.flatnonzero(np.isin(codes, wanted)) if wanted else ()
        if not len(rows):
            return
        (ids, names), (places, addresses) = encode(batch, "client_id"), encode(batch, "client_address")
        clients = np.where(ids >= 0, ids, places + len(names))[rows]
        times = numbers_of(batch, "request_time", null=_NEVER)[rows]
        known = [*names, *addresses]
        for client in np.flatnonzero(np.bincount(clients[clients >= 0])).tolist():
            mine = times[(clients == client) & (times != _NEVER)]
            if len(mine):
                self._widen(known[client], (len(mine), int(mine.min()), int(mine.max())))

    def figures(self) -> Mapping[str, float]:
        """`commit_rate`: commits per second of the client that commits most often, of 50 or more."""
        rates = (
            number / max((last - first) / 1e6, 1)
            for number, first, last in self._clients.values()
            if number >= _LEAST
        )
        return {"commit_rate": float("inf") if self._crowded else max(rates, default=0.0)}

    def state(self) -> tuple[Any, ...]:
        """What was counted, for `merge`."""
        return {**self._clients}, self._crowded

    def merge(self, state: tuple[Any, ...]) -> None:
        """Adds what another one counted."""
        clients, crowded = state
        self._crowded |= crowded
        for client, counted in clients.items():
            self._widen(client, tuple(counted))

    def _widen(self, client: str, counted: Counted) -> None:
        number, first, last = self._clients.get(client, (0, _NEVER, 0))
        if len(self._clients) >= _CLIENTS and not number:
            self._crowded = True
            return
        self._clients[client] = number + counted[0], min(first, counted[1]), max(last, counted[2])
