"""TLS secrets for a slice: only those of connections with a ClientHello among the packets."""

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from kwsniff.sources.keylog import check_keylog
from kwsniff.sources.slices import secrets_block

# A handshake record with a ClientHello; its random has 32 bytes (RFC 8446 4.1.2).
_HELLO: Final = re.compile(rb"\x16\x03[\x00-\x04]..\x01\x00..\x03\x03(.{32})", re.DOTALL)
_LINE: Final = re.compile(rb"[A-Z][A-Z0-9_]+ ([0-9A-Fa-f]{64}) [0-9A-Fa-f]+")
_STEP: Final = 1 << 20
_OVERLAP: Final = 64


@contextmanager
def add_secrets(file: IO[bytes], keylogs: Sequence[str]) -> Iterator[IO[bytes]]:
    """Writes a slice with the secrets of its connections after its first block, before packets.
    Raises UsageError for an invalid key log."""
    if not keylogs:
        yield file
        return
    paths = [Path(check_keylog(keylog)) for keylog in keylogs]
    with tempfile.TemporaryFile(prefix="kwsniff-") as body:
        yield body
        randoms = _randoms(body)
        lines = [line for path in paths for line in _lines_of(path, randoms)]
        body.seek(4)
        first = int.from_bytes(body.read(4), "little")
        body.seek(0)
        file.write(body.read(first))
        if lines:
            file.write(secrets_block(b"".join(lines)))
        shutil.copyfileobj(body, file)


def _randoms(body: IO[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    body.seek(0)
    before = b""
    while data := body.read(_STEP):
        found.update(match[1].hex().encode() for match in _HELLO.finditer(before + data))
        before = data[-_OVERLAP:]
    return found


def _lines_of(path: Path, randoms: set[bytes]) -> list[bytes]:
    with path.open("rb") as file:
        return [
            line.rstrip(b"\r\n") + b"\n"
            for line in file
            if (match := _LINE.match(line)) and match[1].lower() in randoms
        ]
