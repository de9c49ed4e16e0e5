"""Secrets of TLS for an analysis: where they come from, and the keys of connections that the core asks for.

The core reads records and opens them by itself (kwsniff/core/tls); the library `cryptography` decrypts.
"""

import importlib.util
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from kwsniff.core.tls.hello_texts import NAMES
from kwsniff.errors import UsageError
from kwsniff.sources.key_schedule import (
    TLS_1_1,
    TLS_1_3,
    Parts,
    Suite,
    next_secret,
    parts_of_1_2,
    parts_of_1_3,
    suite_of,
)
from kwsniff.sources.keylog import MOST_SESSIONS, GrowingLog, Sessions, check_keylog, is_open_to_others
from kwsniff.texts import plural

KeyLog = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Literal[False] | None
"""Files of secrets; None for those inside captures alone; False to open nothing."""

Hellos = tuple[bytes | None, bytes | None, int | None, int | None, bool, bytes, int, int, bool]
"""Client's and server's random, cipher suite, version, whether it encrypts and then MACs, session id, marks
of the ticket that is resumed and of the one that is given, whether the session is resumed."""

Guess = tuple[bytes, int, int, int, int, Parts]
"""Client's random, cipher suite, version, side, epoch, key."""

_LIBRARY: Final = "cryptography"
_MISSING: Final = (
    f"TLS is opened by the Python library {_LIBRARY}, which is not installed here: pip install {_LIBRARY}"
)
_LOOK_S: Final = 0.02
_MOST_GUESSED: Final = 50
_MOST_UPDATES: Final = 10_000
# By the length of a secret, which is that of the suite's hash.
_SUITES_OF: Final = {32: (0x1301, 0x1303, 0x1304, 0x1305), 48: (0x1302,)}
_MASTER, _HANDSHAKE, _DATA = 0, 1, 3
"""Numbers of labels (keylog.LABELS): the client's, the server's is one more."""


@dataclass(slots=True)
class _Told:
    """What has to be said in the end."""

    unopened: set[str] = field(default_factory=set)
    """Cipher suites and versions that are not opened here."""
    no_library: bool = False
    by_trying: int = 0
    """Connections whose secrets were found so."""


class Secrets:
    """What is known of TLS sessions, and the keys that follow from it: for Analyzer.open_tls().

    Raises UsageError for a key log that is none, and for one where the library is missing.
    """

    def __init__(self, keylog: KeyLog = None, *, follow: bool = False) -> None:
        """`follow`: the key logs grow, and secrets may come after the packets that need them."""
        names = [keylog] if isinstance(keylog, str | os.PathLike) else list(keylog or ())
        self.paths = [check_keylog(name, grows=follow) for name in names]
        """The key logs, absolute."""
        self.may_come = follow
        self.version = 0
        """How often something new was learned."""
        self.sessions = Sessions()
        self._told = _Told()
        self._looked = 0.0
        self._claimed: set[bytes | None] = set()
        self._updates: dict[tuple[bytes, int], bytes] = {}
        self._origins: dict[bytes | int, bytes] = {}  # of sessions of TLS 1.2, by what resumes them
        self._logs = [GrowingLog(path) for path in self.paths]
        if self.paths and not has_library():
            raise UsageError(_MISSING)
        self.read_on(last=not follow)

    def read_on(self, *, last: bool = False) -> bool:
        """Reads what has been added to the key logs; whether anything new is known."""
        found = sum([log.read(self.sessions, last=last) for log in self._logs])
        self.version += found > 0
        return found > 0

    def take(self, text: bytes) -> None:
        """A key log that stands in a capture."""
        if self.sessions.take(text + b"\n"):
            self.version += 1
            self._told.no_library = not has_library()

    def find(self, hellos: Hellos, side: int, epoch: int) -> Parts | None:
        """The key of one side's records (0: client) with what the hellos said; None: it is not known.
        `epoch`: of TLS 1.3, 0 for the handshake, 1 for data, one more for each key update."""
        client_random, _, cipher, version, *_ = hellos
        if version is None or cipher is None or self._told.no_library:
            return None
        known = self._known(hellos)
        if not known and self.may_come and self._may_look():
            self.read_on()
            known = self._known(hellos)
        if not known:
            return None
        self._claimed.add(client_random)
        suite = suite_of(cipher)
        if suite is None or version < TLS_1_1:
            self._told.unopened.add(_name_of(cipher, version))
            return None
        if version >= TLS_1_3:
            secret = known.get((_DATA if epoch else _HANDSHAKE) + side)
            return parts_of_1_3(suite, self._updated(secret, epoch, suite)) if secret else None
        return _from_master(suite, known.get(_MASTER), hellos, side)

    def guess(self, hellos: Hellos, sides: Sequence[int], claimed: bytes | None = None) -> list[Guess]:
        """Secrets to try for records of `sides` where a hello was not captured. Without the ClientHello those
        of the latest sessions that no other hello claims; without the ServerHello those of TLS 1.3 alone:
        keys of 1.2 need the server's random. `claimed`: whose they were."""
        client_random, _, cipher, version, *_ = hellos
        if claimed is not None:
            self._claimed.add(claimed)
            self._told.by_trying += 1
        if claimed is not None or not has_library():
            return []
        unclaimed = [each for each in self.sessions.newest(_MOST_GUESSED) if each not in self._claimed]
        found: list[Guess] = []
        for random in [client_random] if client_random else unclaimed:
            known = self.sessions.secrets(random)
            if version is None or version >= TLS_1_3:
                found += _traffic_guesses(random, known, cipher, sides)
            elif cipher and (suite := suite_of(cipher)) and version >= TLS_1_1:
                for side in sides:
                    parts = _from_master(suite, known.get(_MASTER), (random, *hellos[1:]), side)
                    found += [(random, cipher, version, side, 1, parts)] if parts else []
        return found

    def _known(self, hellos: Hellos) -> dict[int, bytes]:
        """Secrets of a session; of one that was resumed with TLS 1.2, those of the session that it was."""
        client_random, _, _, version, _, session_id, shown, given, resumed = hellos
        origin = client_random
        known = self.sessions.secrets(client_random) if client_random else {}
        if not known and resumed:
            marks = [mark for mark in (session_id, shown) if mark in self._origins]
            origin = self._origins[marks[0]] if marks else None
            known = self.sessions.secrets(origin) if origin else {}
        if known and origin and (version or 0) < TLS_1_3:
            for mark in (session_id, given):
                if mark:
                    self._origins.setdefault(mark, origin)
            while len(self._origins) > MOST_SESSIONS:
                self._origins.pop(next(iter(self._origins)))
        return known or (self.sessions.secrets(session_id) if session_id else {})

    def _updated(self, first: bytes, epoch: int, suite: Suite) -> bytes:
        """The secret of this epoch, from the first one of data: by one step where the epoch before was asked
        for, so that whoever sends many key updates costs no more than these."""
        start = next((each for each in (epoch, epoch - 1) if (first, each) in self._updates), 1)
        secret = self._updates.get((first, start), first)
        for _ in range(start, epoch):
            secret = next_secret(secret, suite)
        if epoch > 1:
            self._updates[first, epoch] = secret
            if len(self._updates) > _MOST_UPDATES:
                self._updates.pop(next(iter(self._updates)))
        return secret

    def _may_look(self) -> bool:
        """Not for every connection that a busy interface shows."""
        now = time.monotonic()
        if now - self._looked < _LOOK_S:
            return False
        self._looked = now
        return True

    def notes(self, opened: int) -> list[str]:
        """What has to be said of the key logs, once `opened` keys have opened something."""
        notes = [note for path in self.paths if (note := is_open_to_others(path))]
        if self.paths and not opened:
            notes.append(
                "the key log opened no TLS connection: its secrets must be of these, "
                "and the captures must hold their handshakes"
            )
        if self._told.no_library:
            notes.append(f"the captures hold TLS secrets; {_MISSING}")
        notes += [f"{name}: kwsniff does not open it" for name in sorted(self._told.unopened)]
        if self._told.by_trying:
            notes.append(
                f"{plural(self._told.by_trying, 'TLS connection')} without a handshake in the captures: "
                "secrets found by trying"
            )
        if self.sessions.dropped:
            notes.append(f"{self.sessions.dropped} TLS sessions were too many; their secrets were let go")
        return notes


def _traffic_guesses(
    random: bytes, known: dict[int, bytes], cipher: int | None, sides: Sequence[int]
) -> list[Guess]:
    return [
        (random, number, TLS_1_3, side, epoch, parts_of_1_3(suite, secret))
        for side in sides
        for epoch in (0, 1)
        if (secret := known.get((_DATA if epoch else _HANDSHAKE) + side))
        for number in _SUITES_OF.get(len(secret), ())
        if cipher in {None, number} and (suite := suite_of(number))
    ]


def _from_master(suite: Suite, master: bytes | None, hellos: Hellos, side: int) -> Parts | None:
    client_random, server_random, _, version, encrypt_then_mac, *_ = hellos
    if master is None or client_random is None or server_random is None:
        return None
    randoms = client_random, server_random
    return parts_of_1_2(suite, master, randoms, side, version=version or 0, encrypt_then_mac=encrypt_then_mac)


def has_library() -> bool:
    """Whether what decrypts is installed."""
    return importlib.util.find_spec(_LIBRARY) is not None


def _name_of(cipher: int, version: int) -> str:
    name = NAMES.get(cipher, b"").decode() or f"cipher suite 0x{cipher:04x}"
    return f"TLS 1.{version - 0x0301} with {name}" if 0x0301 <= version < TLS_1_3 else name
