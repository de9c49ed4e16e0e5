"""The last raw packets as files for Wireshark.

Each file begins with the capture's own header blocks and holds whole packets only. A file gets its name when
it is complete; the one being written is hidden (a leading dot) and just as valid, up to its last packet.
Files can be read by their owner only: packets hold what tables do not show, passwords included.
"""

import os
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

from kwsniff.errors import OutputError

FILE_BYTES = 64_000_000
"""Default size at which a file is closed."""
RESERVE_BYTES = 256_000_000
"""If the disk has less free space than this or than one file of the ring, all files but the last are
deleted."""

_SECTION = b"\x0a\x0d\x0d\x0a"
_INTERFACE = 1
_PCAP_HEADER = 24
_NAME = re.compile(r"\.?packets-\d{8}T\d{6}\.\d{6}Z-\d{6}\.pcap(?:ng)?")


class PacketRing:
    """Keeps the last `files` files of about `file_bytes` each in a directory, which is created if
    missing."""

    def __init__(self, directory: Path, files: int, file_bytes: int = FILE_BYTES) -> None:
        self._directory = directory
        self._files = files
        self._file_bytes = file_bytes
        self._reserve = min(file_bytes, RESERVE_BYTES)
        self._header: bytes | None = None
        self._start = b""  # bytes before the header was complete
        self._tail = b""  # the beginning of an incomplete packet
        self._out: int | None = None
        self._size = 0
        self._number = 0
        self._stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}Z"
        with _guarding(directory):
            directory.mkdir(parents=True, exist_ok=True)

    def write(self, data: memoryview, unfinished: int | None) -> None:
        """The next bytes of the capture. `unfinished`: number of bytes at the end that begin an incomplete
        packet,
        None if unknown."""
        with _guarding(self._directory):
            if self._header is None:
                self._start += data
                self._header = capture_header(self._start)
                if self._header is None:
                    return
                data, self._start = memoryview(self._start)[len(self._header) :], b""
            held = len(data) + len(self._tail) if unfinished is None else unfinished
            whole = len(data) + len(self._tail) - held
            if whole <= 0:
                self._tail += data
                return
            self._put([self._tail, data[: len(data) - held]] if held <= len(data) else [self._tail[:whole]])
            self._tail = bytes(data[len(data) - held :]) if held <= len(data) else self._tail[whole:] + data
            if self._size >= self._file_bytes:
                self._complete()

    def close(self) -> None:
        """Completes the open file. May be called more than once."""
        with _guarding(self._directory):
            self._complete()

    def _put(self, pieces: list[bytes | memoryview]) -> None:
        if self._out is None:
            self._number += 1
            self._out = os.open(self._open_path(), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._size = 0
            pieces = [self._header or b"", *pieces]
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                written = os.write(self._out, rest)
                self._size += written
                rest = rest[written:]

    def _complete(self) -> None:
        if self._out is None:
            return
        os.close(self._out)
        self._out = None
        self._open_path().rename(self._path())
        mine = sorted(path for path in self._directory.iterdir() if _NAME.fullmatch(path.name))
        closed = [path for path in mine if not path.name.startswith(".")]
        for path in closed[: max(len(closed) - self._files, 0)]:
            path.unlink(missing_ok=True)
        for path in closed[-self._files : -1]:  # tables are worth more than all but the last packet file
            if shutil.disk_usage(self._directory).free >= self._reserve:
                break
            path.unlink(missing_ok=True)

    def _path(self) -> Path:
        kind = "pcapng" if (self._header or b"").startswith(_SECTION) else "pcap"
        return self._directory / f"packets-{self._stamp}-{self._number:06}.{kind}"

    def _open_path(self) -> Path:
        return self._directory / f".{self._path().name}"


def capture_header(start: bytes) -> bytes | None:
    """The header that every file must begin with: pcap's file header, or pcapng's section header and the
    interface blocks after it. None before the first packet."""
    if not start.startswith(_SECTION):
        return start[:_PCAP_HEADER] if len(start) >= _PCAP_HEADER else None
    at = 0
    order = "big" if start[8:12] == b"\x1a\x2b\x3c\x4d" else "little"
    while len(start) - at >= 8:
        kind = int.from_bytes(start[at : at + 4], order)  # type: ignore[arg-type]
        size = int.from_bytes(start[at + 4 : at + 8], order)  # type: ignore[arg-type]
        if at and kind != _INTERFACE:
            return start[:at]
        if size < 12:
            return None
        at += size
    return None


class _guarding:
    """Turns system errors into one line."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError):
            raise OutputError(
                f"{self._directory}: cannot write packets ({error.strerror or error}); "
                "free some space or choose another directory with -o"
            ) from error
