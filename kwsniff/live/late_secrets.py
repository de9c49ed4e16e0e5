"""TLS secrets that arrive during or after their packets: the key logs are polled."""

import select
import time
from typing import Final

from kwsniff.core.analyzer import Analyzer
from kwsniff.sources.tls import Secrets

LOOK_NS: Final = 200_000_000
"""Nanoseconds between two checks of the key logs."""


class LateSecrets:
    """Decrypts TLS in an analyzer with secrets of key logs that may grow. Call only while the analyzer is
    idle."""

    def __init__(self, secrets: Secrets, analyzer: Analyzer) -> None:
        analyzer.open_tls(secrets)
        self._secrets = secrets
        self._analyzer = analyzer
        self._looked_ns = 0
        self.may_come = secrets.may_come
        """Whether there are key logs that grow."""

    def decrypt_waiting(self, *, last: bool = False) -> None:
        """Decrypts packets that wait for new secrets. `last`: the key logs are complete, so an unfinished
        line counts."""
        now = time.monotonic_ns()
        if self.may_come and (last or now - self._looked_ns > LOOK_NS):
            self._looked_ns = now
            self._secrets.read_on(last=last)
            self._analyzer.secrets_came()


def has_bytes(descriptor: int) -> bool:
    """Whether there is data to read, or the end, before the next check of the key logs is due."""
    coming = select.poll()
    coming.register(descriptor, select.POLLIN)
    return bool(coming.poll(LOOK_NS // 1_000_000))
