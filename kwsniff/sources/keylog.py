"""TLS secrets beside captures and inside them: whether there are any. Their values are not looked at.

A key log is text as NSS writes it (SSLKEYLOGFILE); a pcapng file may carry the same text in Decryption
Secrets Blocks, as editcap --inject-secrets puts it there (draft-ietf-opsawg-pcapng).
"""

import os
import re
import struct
from pathlib import Path
from typing import Final

from kwsniff.errors import UsageError
from kwsniff.sources.files import BUFFER_BYTES, STANDARD_INPUT, CaptureFile

_LINE = re.compile(
    rb"^([A-Z][A-Z0-9_]+ [0-9A-Fa-f]{16,}|RSA Session-ID:[0-9A-Fa-f]*) (Master-Key:)?[0-9A-Fa-f]{32,}\s*$",
    re.M,
)
_SECTION: Final = b"\x0a\x0d\x0d\x0a"
_SECRETS_BLOCK: Final = 10
_TLS_KEY_LOG: Final = 0x544C534B


def check_keylog(path: str | os.PathLike[str]) -> str:
    """The absolute path of a key log. Raises UsageError for what is none."""
    name = os.fspath(path)
    try:
        with Path(name).open("rb") as file:
            # Keys of a long-lived process may come late, but its first megabyte holds some.
            start = file.read(BUFFER_BYTES)
    except OSError as error:
        raise UsageError(
            f"key log {name}: cannot be read ({error.strerror or error}); check the path and its permissions"
        ) from error
    if not start.strip():
        raise UsageError(
            f"key log {name}: is empty; set SSLKEYLOGFILE, or what the client has instead, before it connects"
        )
    if not _LINE.search(start):
        raise UsageError(
            f"key log {name}: no TLS secrets in it; lines begin with CLIENT_RANDOM or CLIENT_TRAFFIC_SECRET_0"
        )
    return str(Path(name).resolve())


def holds_secrets(name: str) -> bool:
    """Whether TLS secrets stand near the beginning of a pcapng file."""
    if name == STANDARD_INPUT or not Path(name).is_file():
        return False
    with CaptureFile(name) as capture:
        buffers = capture.buffers()
        start = bytes(next(buffers, b""))
        buffers.close()
    return start.startswith(_SECTION) and _has_secrets_block(start)


def _has_secrets_block(data: bytes) -> bool:
    at, order = 0, "<"
    while at + 16 <= len(data):
        if data[at : at + 4] == _SECTION:
            order = ">" if data[at + 8 : at + 12] == b"\x1a\x2b\x3c\x4d" else "<"
        kind, size, secrets = struct.unpack_from(order + "III", data, at)
        if kind == _SECRETS_BLOCK and secrets == _TLS_KEY_LOG:
            return True
        if size < 12:
            return False
        at += size + -size % 4
    return False
