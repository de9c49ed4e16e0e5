"""TLS secrets that come while packets do, or after them: looked for again and again, by the clock."""

import select
import time
from typing import Final

from kwsniff.core.analyzer import Analyzer
from kwsniff.sources.tls import Secrets

LOOK_NS: Final = 200_000_000
"""Nanoseconds between two looks into the key logs."""


class LateSecrets:
    """Opens TLS in an analyzer with what key logs hold and get. Called only while the analyzer is idle."""

    def __init__(self, secrets: Secrets, analyzer: Analyzer) -> None:
        analyzer.open_tls(secrets)
        self._secrets = secrets
        self._analyzer = analyzer
        self._looked_ns = 0
        self.may_come = secrets.may_come
        """Whether there are key logs that grow."""

    def look(self, *, last: bool = False) -> None:
        """Opens what waits for new secrets. `last`: nothing more will be written, half a line counts."""
        now = time.monotonic_ns()
        if self.may_come and (last or now - self._looked_ns > LOOK_NS):
            self._looked_ns = now
            self._secrets.read_on(last=last)
            self._analyzer.secrets_came()


def has_bytes(descriptor: int) -> bool:
    """Whether there is something to read, or the end, before the next look into the key logs is due."""
    coming = select.poll()
    coming.register(descriptor, select.POLLIN)
    return bool(coming.poll(LOOK_NS // 1_000_000))
