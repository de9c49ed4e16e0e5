"""Captures of one run that hold the same bytes: what the second one shows was not sent again by anybody.

Only the bytes prove it. Two interfaces may see the same packets at the same times, and files of a rotation
may be equally long.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kwsniff.errors import CaptureError
from kwsniff.sources.files import STANDARD_INPUT, CaptureFile
from kwsniff.tables.captures import CaptureRow

_ALIKE: Final = ("packets", "bytes", "first_time", "last_time", "tcp_payload_bytes")


def note_copies(rows: Sequence[CaptureRow], names: Sequence[str]) -> None:
    """Says in `notes` of which capture before it one is a copy, compressed or not. `names`: files of `rows`.

    Only those of which all this is the same are read again. What is no regular file cannot be, and what is
    not whole is said to be that.
    """
    alike: dict[tuple[Any, ...], list[tuple[str, CaptureRow]]] = {}
    for name, row in zip(names, rows, strict=True):
        if row["packets"] and not (row["truncated"] or row["damaged"]):
            alike.setdefault(tuple(row[column] for column in _ALIKE), []).append((name, row))
    for each in alike.values():
        if len(each) > 1:
            _note(each)


def _note(captures: Sequence[tuple[str, CaptureRow]]) -> None:
    firsts: dict[bytes, str] = {}
    for name, row in captures:
        if (digest := _digest(name)) is None:
            continue
        first = firsts.setdefault(digest, row["capture"])
        if first != row["capture"]:
            row["notes"].append(f"a copy of {first}, byte for byte: nobody sent this again; give it once")


def _digest(name: str) -> bytes | None:
    if name == STANDARD_INPUT or not Path(name).is_file():
        return None
    told = hashlib.blake2b()
    try:
        with CaptureFile(name) as capture:
            for buffer in capture.buffers():
                told.update(buffer)
    except CaptureError:  # gone since it was read
        return None
    return told.digest()
