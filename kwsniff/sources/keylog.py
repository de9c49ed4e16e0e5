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
# The type of its secrets, in both byte orders, and where in the block that stands.
_TLS_KEY_LOG: Final = ((b"KSLT", "<"), (b"TLSK", ">"))
_TYPE_AT: Final = 8
_HEADER: Final = 16
LOOKED_AT: Final = 64 << 20
"""Bytes of a capture in which its first secrets are looked for; more may stand anywhere behind them."""
_LOOKED_AT_COMPRESSED: Final = 16 << 20


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
    """Whether a pcapng file has TLS secrets, in blocks that begin in what is LOOKED_AT."""
    if name == STANDARD_INPUT or not Path(name).is_file():
        return False
    seen = 0
    before = b""
    with CaptureFile(name) as capture:
        buffers = capture.buffers()
        for buffer in buffers:
            data = before + bytes(buffer)
            if not seen and not data.startswith(_SECTION):
                break
            if has_secrets_block(data):
                return True
            seen += len(buffer)
            if seen >= (_LOOKED_AT_COMPRESSED if capture.compression else LOOKED_AT):
                break
            before = data[-_HEADER:]
        buffers.close()
    return False


def has_secrets_block(data: bytes) -> bool:
    """By the looks of a block's header: what is no block at all costs a run of tshark, and nothing else."""
    for mark, order in _TLS_KEY_LOG:
        at = data.find(mark)
        while at >= 0:
            start = at - _TYPE_AT
            if start >= 0 and start + _HEADER <= len(data):
                kind, size, _, length = struct.unpack_from(order + "IIII", data, start)
                if kind == _SECRETS_BLOCK and size % 4 == 0 and _HEADER + length <= size - 4:
                    return True
            at = data.find(mark, at + 1)
    return False
