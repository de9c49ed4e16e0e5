"""TLS secrets of an analysis, and the keys of connections that the core requests.

The core reads records (kwsniff/core/tls); the library `cryptography` decrypts them.
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
"""Key log files; None: only secrets inside captures; False: no decryption."""

Hellos = tuple[bytes | None, bytes | None, int | None, int | None, bool, bytes, int, int, bool]
"""Client and server random, cipher suite, version, encrypt-then-MAC, session id, ids
of the resumed ticket and of the new ticket, whether the session is resumed."""

Guess = tuple[bytes, int, int, int, int, Parts]
"""Client's random, cipher suite, version, side, epoch, key."""

_LIBRARY: Final = "cryptography"
_MISSING: Final = f"to decrypt TLS, install the Python library {_LIBRARY}: pip install {_LIBRARY}"
_LOOK_S: Final = 0.02
_MOST_GUESSED: Final = 50
_MOST_UPDATES: Final = 10_000
# By the length of a secret, which equals that of the suite's hash.
_SUITES_OF: Final = {32: (0x1301, 0x1303, 0x1304, 0x1305), 48: (0x1302,)}
_MASTER, _HANDSHAKE, _DATA = 0, 1, 3
"""Numbers of labels (keylog.LABELS) of the client; the server's is one higher."""


@dataclass(slots=True)
class _Told:
    """Facts to report at the end."""

    unopened: set[str] = field(default_factory=set)
    """Unsupported cipher suites and versions."""
    no_library: bool = False
    by_trying: int = 0
    """Connections with found their secrets by trial."""


class Secrets:
    """TLS sessions and their keys, for Analyzer.open_tls().

    Raises UsageError for an invalid key log, and for any key log without the library.
    """

    def __init__(self, keylog: KeyLog = None, *, follow: bool = False) -> None:
        """`follow`: the key logs grow, and secrets may arrive after their packets."""
        names = [keylog] if isinstance(keylog, str | os.PathLike) else list(keylog or ())
        self.paths = [check_keylog(name, grows=follow) for name in names]
        """Absolute paths of the key logs."""
        self.may_come = follow
        self.version = 0
        """Number of times that new secrets arrived."""
        self.sessions = Sessions()
        self._told = _Told()
        self._looked = 0.0
        self._claimed: set[bytes | None] = set()
        self._updates: dict[tuple[bytes, int], bytes] = {}
        self._origins: dict[bytes | int, bytes] = {}  # TLS 1.2 sessions, by session id or ticket
        self._logs = [GrowingLog(path) for path in self.paths]
        if self.paths and not has_library():
            raise UsageError(_MISSING)
        self.read_on(last=not follow)

    def read_on(self, *, last: bool = False) -> bool:
        """Reads additions to the key logs; returns whether there are new secrets."""
        found = sum([log.read(self.sessions, last=last) for log in self._logs])
        self.version += found > 0
        return found > 0

    def add_keylog(self, text: bytes) -> None:
        """Takes a key log from a capture."""
        if self.sessions.add_lines(text + b"\n"):
            self.version += 1
            self._told.no_library = not has_library()

    def find(self, hellos: Hellos, side: int, epoch: int) -> Parts | None:
        """The key of one side's records (0: client), given the facts of both hellos; None if unknown.
        `epoch`: in TLS 1.3, 0 for the handshake, 1 for data, one more for each key update."""
        client_random, _, cipher, version, *_ = hellos
        if version is None or cipher is None or self._told.no_library:
            return None
        known = self._find_secrets(hellos)
        if not known and self.may_come and self._may_look():
            self.read_on()
            known = self._find_secrets(hellos)
        if not known:
            return None
        self._claimed.add(client_random)
        suite = suite_of(cipher)
        if suite is None or version < TLS_1_1:
            self._told.unopened.add(_name_of(cipher, version))
            return None
        if version >= TLS_1_3:
            secret = known.get((_DATA if epoch else _HANDSHAKE) + side)
            return parts_of_1_3(suite, self._derive_secret(secret, epoch, suite)) if secret else None
        return _from_master(suite, known.get(_MASTER), hellos, side)

    def guess(self, hellos: Hellos, sides: Sequence[int], claimed: bytes | None = None) -> list[Guess]:
        """Secrets to try for records of `sides` if a hello was not captured. Without the ClientHello: those
        of the latest sessions without another hello. Without the ServerHello: only those of TLS 1.3,
        because keys of 1.2 need the server's random. `claimed`: sessions of other hellos."""
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

    def _find_secrets(self, hellos: Hellos) -> dict[int, bytes]:
        """Secrets of a session; for a resumed TLS 1.2 session, those of the original one."""
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

    def _derive_secret(self, first: bytes, epoch: int, suite: Suite) -> bytes:
        """The secret of this epoch, derived from the first data epoch: in one step if the previous epoch was
        requested, so that many key updates cost no more than one step each."""
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
        """Bounded, because a busy interface shows many connections."""
        now = time.monotonic()
        if now - self._looked < _LOOK_S:
            return False
        self._looked = now
        return True

    def notes(self, opened: int) -> list[str]:
        """Notes on the key logs; `opened`: number of keys that decrypted records."""
        notes = [note for path in self.paths if (note := is_open_to_others(path))]
        if self.paths and not opened:
            notes.append(
                "the key log decrypted no TLS connection: its secrets must belong to these connections, "
                "and the captures must have their handshakes"
            )
        if self._told.no_library:
            notes.append(f"the captures have TLS secrets; {_MISSING}")
        notes += [f"{name}: not supported, not decrypted" for name in sorted(self._told.unopened)]
        if self._told.by_trying:
            notes.append(
                f"{plural(self._told.by_trying, 'TLS connection')} without a handshake in the captures: "
                "found their secrets by trial"
            )
        if self.sessions.dropped:
            notes.append(f"too many TLS sessions: dropped the secrets of {self.sessions.dropped}")
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
    """Whether the decryption library is installed."""
    return importlib.util.find_spec(_LIBRARY) is not None


def _name_of(cipher: int, version: int) -> str:
    name = NAMES.get(cipher, b"").decode() or f"cipher suite 0x{cipher:04x}"
    return f"TLS 1.{version - 0x0301} with {name}" if 0x0301 <= version < TLS_1_3 else name
