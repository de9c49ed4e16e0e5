"""Key logs: TLS secrets by session, as NSS writes them (SSLKEYLOGFILE), from files and from inside captures.

A pcapng file may carry the same text in Decryption Secrets Blocks, as editcap --inject-secrets puts it there
(draft-ietf-opsawg-pcapng). Secrets are never part of a text that anybody is shown.
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
# Known by another mark than a session's: without a private key's other half they open nothing here.
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
"""Sessions whose secrets are remembered, about 400 bytes for each; of more, the oldest go."""


def check_keylog(path: str | os.PathLike[str], *, grows: bool = False) -> str:
    """The absolute path of a key log; `grows`: secrets may still come. Raises UsageError for what is none."""
    name = os.fspath(path)
    try:
        with Path(name).open("rb") as file:
            # Keys of a long-lived process may come late, but its first megabyte holds some.
            start = file.read(BUFFER_BYTES)
    except OSError as error:
        raise UsageError(
            f"key log {name}: cannot be read ({error.strerror or error}); check the path and its permissions"
        ) from error
    if grows and _may_become_one(start):
        return str(Path(name).resolve())
    if not start.strip():
        raise UsageError(
            f"key log {name}: is empty; set SSLKEYLOGFILE, or what the client has instead, before it connects"
        )
    if not _LINE.search(start) and not _OTHER_LINE.search(start):
        raise UsageError(
            f"key log {name}: no TLS secrets in it; lines begin with CLIENT_RANDOM or CLIENT_TRAFFIC_SECRET_0"
        )
    return str(Path(name).resolve())


def _may_become_one(start: bytes) -> bool:
    """Whether these first bytes of a file are a key log's before any secret came: NSS and OpenSSL begin with
    a comment, and the last line may have come in part."""
    lines, _, last = start.rpartition(b"\n")
    return all(not line.strip() or line.startswith(b"#") for line in lines.split(b"\n")) and bool(
        _HALF_LINE.fullmatch(last)
    )


def is_open_to_others(path: str) -> str | None:
    """A line about a key log that others than its owner can read, or None."""
    mode = stat.S_IMODE(Path(path).stat().st_mode)
    if mode & 0o077 == 0:
        return None
    return f"key log {path}: others than its owner may read it (mode {mode:04o}); chmod 600 keeps its secrets"


class Sessions:
    """Secrets of sessions: LABELS' number -> secret, by the client's random, or the session's id."""

    def __init__(self, most: int = MOST_SESSIONS) -> None:
        self._most = most
        self._known: dict[bytes, bytes] = {}
        self.dropped = 0
        """Sessions that were too many."""

    def __len__(self) -> int:
        return len(self._known)

    def take(self, text: bytes) -> int:
        """Takes whole lines; how many of them said something that was not known."""
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
        """The sessions that came last, the latest first."""
        return list(self._known)[-most:][::-1]


def _numbers_in(packed: bytes) -> dict[int, bytes]:
    found = {}
    while packed:
        end = 2 + packed[1]
        found[packed[0]] = packed[2:end]
        packed = packed[end:]
    return found


class GrowingLog:
    """A key log that somebody may still be writing to: read on from where it was read to, by whole lines."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._at = 0
        self._rest = b""
        self._inode: int | None = None

    def read(self, sessions: Sessions, *, last: bool = False) -> int:
        """Takes what has come since; how many lines said something new. `last`: a line without end counts."""
        found = 0
        try:
            with Path(self.path).open("rb") as file:
                state = os.fstat(file.fileno())
                if state.st_size < self._at or state.st_ino != self._inode:  # written anew
                    self._at, self._rest, self._inode = 0, b"", state.st_ino
                file.seek(self._at)
                while data := file.read(BUFFER_BYTES):
                    self._at += len(data)
                    lines, _, self._rest = (self._rest + data).rpartition(b"\n")
                    self._rest = self._rest[-_LONGEST_LINE:]
                    found += sessions.take(lines)
        except OSError:
            return found  # gone for now, as when it is rotated
        if last:
            found += sessions.take(self._rest)
        return found
