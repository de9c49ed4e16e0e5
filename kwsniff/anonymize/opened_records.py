"""TLS records that keys opened, found again by their encrypted bytes.

    plain     what they held, one after the other
    records   hash of its encrypted bytes | where its plaintext begins, its size | is it data | number

Keys and secrets are never written. Source: RFC 8446 5.2 and 5.3; RFC 5246 6.2.3.
"""

import struct
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from kwsniff.analyzers import start_analyzer
from kwsniff.errors import CaptureError
from kwsniff.layout.catalog import Catalog
from kwsniff.limits import Limits
from kwsniff.sources.files import CaptureFile
from kwsniff.sources.key_schedule import Parts
from kwsniff.sources.times import TimeRange
from kwsniff.sources.tls import Guess, Hellos, KeyLog, Secrets

_DATA: Final = 23
_EXPLICIT: Final = 8
"""Bytes of a nonce at the front of a record."""
_ROW: Final = np.dtype(
    [("hash", "<u8"), ("begin", "<i8"), ("size", "<i4"), ("data", "<i4"), ("number", "<u8")]
)
_PACKED: Final = struct.Struct("<QqiiQ")

Note = Callable[[bytes, bytes, bool, int], None]
"""Takes encrypted bytes, plaintext, whether it is data, and the record's number."""


class OpenedRecord(NamedTuple):
    """``begin`` and ``size``: where its plaintext is. ``number``: of its key, from 0."""

    begin: int
    size: int
    is_data: bool
    number: int


class OpenedRecords:
    """Keeps records in a folder. Call ``arrange`` after the last one."""

    def __init__(self, folder: Path) -> None:
        self._place = folder
        self._plain = (folder / "plain").open("w+b")
        self._rows = (folder / "records").open("w+b")
        self._kept = 0
        self._lengths: set[int] = set()
        """Of encrypted records: bytes of another length are not hashed."""
        self._sorted = np.empty(0, _ROW)

    def add_record(self, data: bytes, plain: bytes, is_data: bool, number: int) -> None:
        """Keeps a record."""
        self._lengths.add(len(data))
        self._rows.write(_PACKED.pack(_hash(data), self._kept, len(plain), is_data, number))
        self._plain.write(plain)
        self._kept += len(plain)

    def arrange(self) -> None:
        """Sorts the records, so that they are found."""
        self._rows.flush()
        self._plain.flush()
        self._rows.seek(0)
        self._sorted = np.sort(np.frombuffer(self._rows.read(), _ROW), order="hash")

    @property
    def is_empty(self) -> bool:
        """Whether nothing was opened."""
        return not len(self._sorted)

    def find(self, body: bytes) -> OpenedRecord | None:
        """The record with these encrypted bytes, which follow its header."""
        for data in (body, body[_EXPLICIT:]):
            if len(data) not in self._lengths:
                continue
            wanted = np.uint64(_hash(data))
            at = int(np.searchsorted(self._sorted["hash"], wanted))
            if at < len(self._sorted) and self._sorted["hash"][at] == wanted:
                row = self._sorted[at]
                if row["size"] <= len(data):
                    return OpenedRecord(
                        int(row["begin"]), int(row["size"]), bool(row["data"]), int(row["number"])
                    )
        return None

    def read(self, begin: int, size: int) -> bytes:
        """Plaintext."""
        self._plain.seek(begin)
        return self._plain.read(size)

    def close(self) -> None:
        """Closes the files."""
        self._plain.close()
        self._rows.close()


class NotedSecrets(Secrets):
    """Secrets whose keys tell what they opened."""

    def __init__(self, keylog: KeyLog, note: Note) -> None:
        super().__init__(keylog)
        self._note = note

    def find(self, hellos: Hellos, side: int, epoch: int) -> Parts | None:
        """The key of one side's records."""
        parts = super().find(hellos, side, epoch)
        return _noting(parts, self._note) if parts else None

    def guess(self, hellos: Hellos, sides: Sequence[int], claimed: bytes | None = None) -> list[Guess]:
        """Secrets to try where a hello is missing."""
        found = super().guess(hellos, sides, claimed)
        return [(*each[:5], _noting(each[5], self._note)) for each in found]


def _noting(parts: Parts, note: Note) -> Parts:
    kind, decrypt, fixed, overhead = parts

    def decrypt_and_note(nonce: bytes, data: Any, additional: bytes) -> bytes:
        plain = decrypt(nonce, data, additional)
        content, is_data = plain, additional[8 if len(additional) > _EXPLICIT else 0] == _DATA
        if kind == "1.3":
            padded = plain.rstrip(b"\0")
            content, is_data = padded[:-1], padded[-1:] == bytes([_DATA])
        note(bytes(data), content, is_data, _number(kind, nonce, fixed, additional))
        return plain

    return kind, decrypt_and_note, fixed, overhead


def _number(kind: str, nonce: bytes, fixed: bytes, additional: bytes) -> int:
    """The record's number, from what decrypts it."""
    if kind == "explicit":
        return int.from_bytes(additional[:8], "big")
    number = int.from_bytes(nonce[-8:], "big")
    return number if kind == "whole" else number ^ int.from_bytes(fixed[-8:], "big")


def _hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def open_records(
    captures: Sequence[str],
    keylog: KeyLog,
    records: OpenedRecords,
    *,
    catalog: Catalog,
    ports: Sequence[int],
    limits: Limits,
    times: TimeRange,
) -> None:
    """Keeps the records of captures that the keys open, in the way in which calls are read.

    Raises CaptureError for files that are not captures."""
    analyzer = start_analyzer(catalog, ("connections",), ports=ports, limits=limits.as_dict())
    analyzer.open_tls(NotedSecrets(keylog, records.add_record))
    if times:
        analyzer.bound(times.since, times.until)
    for name in captures:
        try:
            with CaptureFile(name) as capture:
                analyzer.open_capture(capture.name)
                for buffer in capture.readable():
                    analyzer.feed(buffer)
                    analyzer.drain("connections")
                    if analyzer.stopped:
                        break
                analyzer.close_capture()
        except CaptureError as error:
            if len(captures) == 1:
                raise CaptureError(f"{name}: {error}") from error
    analyzer.finish()
    records.arrange()
