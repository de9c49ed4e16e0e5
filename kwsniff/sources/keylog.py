"""Key logs: TLS secrets by session in NSS format (SSLKEYLOGFILE), from files and from captures.

A pcapng file may have the same text in Decryption Secrets Blocks, for example from editcap --inject-secrets
(draft-ietf-opsawg-pcapng). Messages and outputs never contain secrets.
"""

import os
import re
import stat
from pathlib import Path
from typing import Final

from kwsniff.errors import UsageError
from kwsniff.sources.files import BUFFER_BYTES

_LINE = re.compile(
    rb"^[ \t]*(?:([A-Z][A-Z0-9_]*) ([0-9A-Fa-f]{64})|RSA Session-ID:([0-9A-Fa-f]{2,64}) Master-Key:?) ?:?"
    rb"([0-9A-Fa-f]{32,128})[ \t]*\r?$",
    re.MULTILINE,
)
# Secrets with another identifier than a session's, which need more than a key log to decrypt.
_OTHER_LINE = re.compile(
    rb"^(RSA [0-9A-Fa-f]{16}|PMS_CLIENT_RANDOM [0-9A-Fa-f]{64}) [0-9A-Fa-f]{32,}\s*$", re.M
)
LABELS: Final = (
    b"CLIENT_RANDOM",
    b"CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    b"SERVER_HANDSHAKE_TRAFFIC_SECRET",
    b"CLIENT_TRAFFIC_SECRET_0",
    b"SERVER_TRAFFIC_SECRET_0",
)
_HALF_LINE: Final = re.compile(rb"#[^\0]*|[ \t]*(?:[A-Z][A-Z0-9_]*(?:[ :-][0-9A-Za-z :-]*)?)?[ \t\r]*")
_NUMBERS: Final = {label: number for number, label in enumerate(LABELS)}
_LONGEST_LINE: Final = 4096
MOST_SESSIONS: Final = 100_000
"""Maximum sessions with stored secrets, about 400 bytes each; beyond that, the oldest are dropped."""


def check_keylog(path: str | os.PathLike[str], *, grows: bool = False) -> str:
    """The absolute path of a key log; `grows`: secrets may still arrive. Raises UsageError for another
    file."""
    name = os.fspath(path)
    try:
        with Path(name).open("rb") as file:
            # Keys of a long-lived process may come late, but its first megabyte has some.
            start = file.read(BUFFER_BYTES)
    except OSError as error:
        raise UsageError(
            f"key log {name}: cannot read ({error.strerror or error}); check the path and its permissions"
        ) from error
    if grows and _may_become_one(start):
        return str(Path(name).resolve())
    if not start.strip():
        raise UsageError(
            f"key log {name}: is empty; set SSLKEYLOGFILE, or the client's own option, before the client "
            f"connects"
        )
    if not _LINE.search(start) and not _OTHER_LINE.search(start):
        raise UsageError(
            f"key log {name}: has no TLS secrets; its lines must begin with CLIENT_RANDOM or "
            f"CLIENT_TRAFFIC_SECRET_0"
        )
    return str(Path(name).resolve())


def _may_become_one(start: bytes) -> bool:
    """Whether these first bytes are those of a key log without secrets yet: NSS and OpenSSL begin with
    a comment, and the last line may be incomplete."""
    lines, _, last = start.rpartition(b"\n")
    return all(not line.strip() or line.startswith(b"#") for line in lines.split(b"\n")) and bool(
        _HALF_LINE.fullmatch(last)
    )


def is_open_to_others(path: str) -> str | None:
    """A warning about a key log that other users can read, or None."""
    mode = stat.S_IMODE(Path(path).stat().st_mode)
    if mode & 0o077 == 0:
        return None
    return f"key log {path}: other users can read it (mode {mode:04o}); run chmod 600 to protect its secrets"


class Sessions:
    """Secrets of sessions: number of the label in LABELS -> secret, by client random or session id."""

    def __init__(self, most: int = MOST_SESSIONS) -> None:
        self._most = most
        self._known: dict[bytes, bytes] = {}
        self.dropped = 0
        """Number of dropped sessions."""

    def __len__(self) -> int:
        return len(self._known)

    def add_lines(self, text: bytes) -> int:
        """Takes complete lines; returns the number of lines with new secrets."""
        found = 0
        for match in _LINE.finditer(text):
            label, random, session_id, secret = match.groups()
            number = 0 if label is None else _NUMBERS.get(label, -1)
            if number >= 0 and len(secret) % 2 == 0 and (session_id is None or len(session_id) % 2 == 0):
                found += self._add(bytes.fromhex((random or session_id).decode()), number, secret)
        return found

    def _add(self, session: bytes, number: int, secret: bytes) -> bool:
        known = self._known.get(session, b"")
        if number in _numbers_in(known):
            return False
        if not known and len(self._known) >= self._most:
            self._known.pop(next(iter(self._known)))
            self.dropped += 1
        self._known[session] = known + bytes((number, len(secret) // 2)) + bytes.fromhex(secret.decode())
        return True

    def secrets(self, session: bytes) -> dict[int, bytes]:
        """Number of a label -> secret."""
        return _numbers_in(self._known.get(session, b""))

    def newest(self, most: int) -> list[bytes]:
        """The most recent sessions, latest first."""
        return list(self._known)[-most:][::-1]


def _numbers_in(packed: bytes) -> dict[int, bytes]:
    found = {}
    while packed:
        end = 2 + packed[1]
        found[packed[0]] = packed[2:end]
        packed = packed[end:]
    return found


class GrowingLog:
    """A key log that may still grow: continues after the last complete line."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._at = 0
        self._rest = b""
        self._inode: int | None = None

    def read(self, sessions: Sessions, *, last: bool = False) -> int:
        """Takes new lines; returns the number of lines with new secrets. `last`: an unfinished line
        counts."""
        found = 0
        try:
            with Path(self.path).open("rb") as file:
                state = os.fstat(file.fileno())
                if state.st_size < self._at or state.st_ino != self._inode:  # rewritten
                    self._at, self._rest, self._inode = 0, b"", state.st_ino
                file.seek(self._at)
                while data := file.read(BUFFER_BYTES):
                    self._at += len(data)
                    lines, _, self._rest = (self._rest + data).rpartition(b"\n")
                    self._rest = self._rest[-_LONGEST_LINE:]
                    found += sessions.add_lines(lines)
        except OSError:
            return found  # missing for now, for example during rotation
        if last:
            found += sessions.add_lines(self._rest)
        return found
