"""Captures of one run that hold the same bytes: what the second one shows was not retransmitted.

Only the bytes prove it. Two interfaces may see the same packets at the same times, and files of a rotation
may be equally long.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from kwsniff.errors import CaptureError
from kwsniff.sources.files import STANDARD_INPUT, CaptureFile
from kwsniff.tables.captures import CaptureRow

_ALIKE: Final = ("packets", "bytes", "first_time", "last_time", "tcp_payload_bytes")


def note_copies(rows: Sequence[CaptureRow], names: Sequence[str]) -> list[int]:
    """Notes which captures are copies of earlier ones, compressed or not, and returns the numbers of these
    copies. `names`: files of `rows`.

    Only those with equal figures (`_ALIKE`) are read again, and only regular files can be. Incomplete
    captures are left out: their own notes name what is missing.
    """
    alike: dict[tuple[Any, ...], list[int]] = {}
    for number, row in enumerate(rows):
        if row["packets"] and not (row["truncated"] or row["damaged"]):
            alike.setdefault(tuple(row[column] for column in _ALIKE), []).append(number)
    return [copy for each in alike.values() if len(each) > 1 for copy in _note(each, rows, names)]


def _note(alike: Sequence[int], rows: Sequence[CaptureRow], names: Sequence[str]) -> Iterator[int]:
    firsts: dict[bytes, int] = {}
    for number in alike:
        if (digest := _digest(names[number])) is None:
            continue
        first = firsts.setdefault(digest, number)
        if first != number:
            copied = rows[first]["capture"]
            rows[number]["notes"].append(f"a copy of {copied}, byte for byte: what it holds counts once")
            yield number


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
