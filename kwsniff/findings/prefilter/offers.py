"""What servers offer: a bound for the rule about controllers that clients ask."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.api_purposes import names_of
from kwsniff.findings.prefilter.dictionaries import encode, numbers_of

Server = tuple[str, int]
OF_RANGES: Final = ("broker_address", "broker_port", "api_name")


class Offers:
    """Servers whose ApiVersions response has Metadata, and those that offer other APIs."""

    def __init__(self) -> None:
        self._with: set[Server] = set()
        self._others: set[Server] = set()

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes rows of api_ranges."""
        apis, names = encode(batch, "api_name")
        hosts, words = encode(batch, "broker_address")
        ports = numbers_of(batch, "broker_port", null=-1)
        metadata = np.isin(apis, [names.index(api) for api in names_of("is_metadata") if api in names])
        for found, rows in ((self._with, metadata), (self._others, ~metadata)):
            pairs = {*zip(hosts[rows].tolist(), ports[rows].tolist(), strict=True)}
            found |= {(words[host] if host >= 0 else "", port) for host, port in pairs}

    @property
    def without_metadata(self) -> int:
        """The number of servers that offer no Metadata."""
        return len(self._others - self._with)

    def state(self) -> tuple[Sequence[Server], Sequence[Server]]:
        """What was taken, for `merge`."""
        return sorted(self._with), sorted(self._others)

    def merge(self, state: tuple[Sequence[Server], Sequence[Server]]) -> None:
        """Adds what another one took."""
        for found, more in zip((self._with, self._others), state, strict=True):
            found.update((host, port) for host, port in more)
