"""Capture files: plain, gzip or zstd (by first bytes, not by name), directories, standard input.

Only this package opens files. It returns buffers and does not interpret them, apart from the first bytes
that identify a capture.
"""

import errno
import io
import os
import re
import stat
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from kwsniff.codecs.compressed_files import IGNORED_BYTES, decompress_gzip, decompress_zstd
from kwsniff.errors import CaptureError
from kwsniff.sources.file_objects import shown_name
from kwsniff.sources.foreign_formats import MOST_BYTES, WHAT_IT_READS, explain_start
from kwsniff.sources.paths import local_path

BUFFER_BYTES = 1 << 20
"""Size of the buffer for reading a plain file; it fits in the CPU cache."""

LOOK_BYTES = 1 << 16
"""The same for reading only the beginning of a file."""

STANDARD_INPUT = "-"

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_CAPTURE_MAGICS = (
    b"\xa1\xb2\xc3\xd4",  # pcap, microseconds, both byte orders
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",  # pcap, nanoseconds
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\xcd\x34",  # pcap as patched by A. Kuznetsov: longer packet headers
    b"\x34\xcd\xb2\xa1",
    b"\x0a\x0d\x0d\x0a",  # pcapng
)


class Opened(NamedTuple):
    """A raw file outside the file systems of this machine, and its size."""

    raw: io.RawIOBase
    size: int


Opener = Callable[[str], Opened]
"""Opens a file by name. Raises OSError."""


class CaptureFile:
    """One capture, read once from front to back.

    `name`: the path as given. `size`: length of the raw file in bytes (None for a pipe); `consumed`: bytes
    read so far. After the last buffer, `truncated`: a compressed stream was cut off or damaged; `note`: why.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        buffer_bytes: int | None = None,
        opened: "Opened | None" = None,
    ) -> None:
        """`buffer_bytes`: per read of the raw file. `opened`: the raw file, if `path` is only its name."""
        self.name = shown_name(path)
        self.consumed = 0
        self._buffer_bytes = buffer_bytes or BUFFER_BYTES
        self.truncated = False
        self.note: str | None = None
        self.compression: str | None = None
        self._ahead: list[bytes] = []
        self._rest: Generator[memoryview, None, None] | None = None
        self._raw: io.RawIOBase | io.BufferedReader
        if opened is not None:
            # Each small read of a remote file would be a request.
            self._raw = io.BufferedReader(opened.raw, self._buffer_bytes)
            self.size: int | None = opened.size
            return
        raw = self._raw = _open_raw(os.fspath(path))
        status = os.fstat(raw.fileno())
        self.size = status.st_size if stat.S_ISREG(status.st_mode) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; standard input stays open."""
        if self.name != STANDARD_INPUT:
            self._raw.close()

    def read(self, size: int = -1, /) -> bytes:
        """Raw bytes: as many as requested, or all that remain (also for -1); counted in `consumed`."""
        pieces = []
        left = size if size >= 0 else sys.maxsize
        while left:
            with _reading(self.name):
                piece = self._raw.read(min(left, self._buffer_bytes))
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
            self.consumed += len(piece)
        return b"".join(pieces)

    def buffers(self) -> Generator[memoryview, None, None]:
        """The capture's bytes, decompressed; a buffer is valid until the next one is requested.

        Raises CaptureError if the file is empty or cannot be read.
        """
        while self._ahead:
            yield memoryview(self._ahead.pop(0))
        yield from self._rest or self._unread()

    def ahead(self) -> Iterator[memoryview]:
        """Reads the first buffers ahead; `buffers` returns them again, and so does this."""
        yield from [memoryview(buffer) for buffer in self._ahead]
        self._rest = self._rest or self._unread()
        for part in self._rest:
            self._ahead.append(bytes(part))
            yield memoryview(self._ahead[-1])

    def _unread(self) -> Generator[memoryview, None, None]:
        start = self.read(4)
        if not start:
            raise CaptureError(f"{self.name}: is empty; was the capture stopped before its first packet?")
        if start.startswith(_GZIP_MAGIC):
            self.compression = "gzip"
            yield from self._unpack(decompress_gzip(_Chained(start, self)))
        elif start == _ZSTD_MAGIC:
            self.compression = "zstd"
            yield from self._unpack(decompress_zstd(_Chained(start, self)))
        else:
            yield from self._plain(start)

    def readable(self) -> Generator[memoryview, None, None]:
        """The buffers, as far as they can be read: an error after the first one becomes a note and ends
        them."""
        begun = False
        try:
            for buffer in self.buffers():
                begun = True
                yield buffer
        except CaptureError as error:
            if not begun:
                raise CaptureError(why_of(self.name, error)) from error
            self.truncated = True
            self.note = why_of(self.name, error)

    def _plain(self, start: bytes) -> Iterator[memoryview]:
        buffer = memoryview(bytearray(self._buffer_bytes))
        buffer[: len(start)] = start
        filled = len(start)
        while True:
            with _reading(self.name):
                size = self._raw.readinto(buffer[filled:]) or 0
            self.consumed += size
            if filled + size:
                yield buffer[: filled + size]
            if not size:
                break
            filled = 0

    def _unpack(self, pieces: Generator[memoryview, None, str | None]) -> Iterator[memoryview]:
        self.note = yield from pieces
        self.truncated = self.note is not None and self.note != IGNORED_BYTES


class _Chained:
    """A few bytes already read, then the rest of the file."""

    def __init__(self, start: bytes, rest: CaptureFile) -> None:
        self._start = start
        self._rest = rest

    def read(self, size: int = -1, /) -> bytes:
        if not self._start:
            return self._rest.read(size)
        start, self._start = self._start, b""
        return start + self._rest.read(size - len(start) if size >= len(start) else size)


class Unread(NamedTuple):
    """A path among the captures that cannot be read. `size`: its bytes; None if it is not a
    file."""

    name: str
    why: str
    size: int | None

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


class Found(NamedTuple):
    """Captures to read, and unreadable files to report."""

    captures: list[str]
    unread: list[Unread]


def find_captures(paths: Sequence[str | os.PathLike[str]], *, required: bool = True) -> Found:
    """The capture files of `paths`, in that order; a directory means the captures in it.

    Files in a directory are identified by their first bytes and sorted by name, numbers by value, so that a
    rotated capture (`x.pcap`, `x.pcap1`, ... `x.pcap10`) is read in the order of its creation. Names that
    begin with a dot are skipped. `unread` lists everything else that cannot be read: empty files, files
    damaged from the beginning, other files, nested directories.
    Raises CaptureError for a missing path, and if there is nothing to read (unless not `required`), before
    any
    long read; UsageError for a URI that is not a path.
    """
    if not paths:
        raise CaptureError("no capture given; give files, a directory, or - for standard input")
    found = Found([], [])
    for path in paths:
        name = local_path(path)
        if name == STANDARD_INPUT:
            _check_standard_input()
            found.captures.append(name)
            continue
        with _reading(name):
            mode = Path(name).stat().st_mode
        if stat.S_ISDIR(mode):
            _find_in(name, found)
        elif stat.S_ISREG(mode):  # bytes read from a pipe now would be lost
            _sort(name, found)
        else:
            found.captures.append(name)
    _leave_once(found)
    if required:
        require_captures(found)
    return found


def _leave_once(found: Found) -> None:
    """A file that is given twice, or by two names, is read once: otherwise its calls would count twice."""
    names: dict[tuple[int, int], str] = {}
    once = []
    for name in found.captures:
        file = _file_of(name)
        if file is None or file not in names:
            once.append(name)
            if file is not None:
                names[file] = name
            continue
        other = "is given twice" if names[file] == name else f"is the same file as {shown_name(names[file])}"
        found.unread.append(Unread(shown_name(name), f"{other}; kwsniff reads it once", None))
    found.captures[:] = once


def _file_of(name: str) -> tuple[int, int] | None:
    """Device and inode of a file; None if it is not a file or is missing, which opening it will report."""
    if name == STANDARD_INPUT:
        return None
    try:
        status = Path(name).stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def require_captures(found: Found) -> None:
    """Raises CaptureError with the first reason if nothing can be read."""
    if not found.captures:
        more = len(found.unread) - 1
        files = "file" if more == 1 else "files"
        raise CaptureError(
            f"{found.unread[0]}" + (f"  (and {more:,} more unreadable {files})" if more else "")
        )


def _find_in(directory: str, found: Found) -> None:
    try:
        with _reading(directory):
            entries = [entry for entry in Path(directory).iterdir() if not entry.name.startswith(".")]
    except CaptureError as error:
        found.unread.append(Unread(directory, why_of(directory, error), None))
        return
    if not entries:
        found.unread.append(Unread(directory, f"no captures in this directory; {WHAT_IT_READS}", None))
    for entry in sorted(entries, key=lambda entry: _natural_order(entry.name)):
        name = str(entry)
        if entry.is_dir():
            why = "is a nested directory, which kwsniff does not read; give it explicitly to read it"
            found.unread.append(Unread(name, why, None))
        elif entry.is_file() or not entry.exists():
            _sort(name, found)
        else:
            found.unread.append(Unread(name, "is neither a file nor a directory", None))


def _sort(name: str, found: Found) -> None:
    """Sorts a file into captures or unread."""
    try:
        check_capture(name)
    except CaptureError as error:
        found.unread.append(unread_file(name, error))
    else:
        found.captures.append(name)


def opened_capture(name: str, buffer_bytes: int, opener: Opener | None) -> CaptureFile:
    """The file of this name, local or from `opener`. Raises CaptureError."""
    if opener is None:
        return CaptureFile(name, buffer_bytes)
    with _reading(name):
        return CaptureFile(name, buffer_bytes, opener(name))


def unread_file(name: str, error: CaptureError) -> Unread:
    """A file that cannot be read."""
    try:
        size = Path(name).stat().st_size
    except OSError:
        size = 0
    return Unread(shown_name(name), why_of(shown_name(name), error), size)


def why_of(name: str, error: CaptureError) -> str:
    """The text of an error, without the name of the file."""
    return str(error).removeprefix(f"{name}: ")


def check_capture(name: str, opener: Opener | None = None) -> None:
    """Raises CaptureError if the first bytes show that the file is not a capture."""
    with opened_capture(name, LOOK_BYTES, opener) as capture:
        start = _first_bytes(capture)
        if not _is_capture(start):
            raise CaptureError(f"{capture.name}: {explain_start(capture.name, start)}")


def _first_bytes(capture: CaptureFile) -> bytes:
    buffers = capture.buffers()
    for buffer in buffers:
        start = bytes(buffer[:MOST_BYTES])
        buffers.close()
        return start
    return b""


def _is_capture(start: bytes) -> bool:
    return start[:4] in _CAPTURE_MAGICS


def in_natural_order(names: Sequence[str]) -> list[str]:
    """Numbers by value: x.pcap, x.pcap2, x.pcap10."""
    return sorted(names, key=_natural_order)


def _natural_order(name: str) -> tuple[tuple[int, int | str], ...]:
    parts = re.split(r"(\d+)", name)
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in parts if part)


def _check_standard_input() -> None:
    if sys.stdin is None or sys.stdin.isatty():
        raise CaptureError(
            "standard input is a terminal; pipe a capture in, for example: tcpdump -w - | kwsniff analyze -"
        )


def _open_raw(name: str) -> io.FileIO:
    if name != STANDARD_INPUT:
        with _reading(name):
            return io.FileIO(name, "rb")
    return io.FileIO(sys.stdin.fileno(), "rb", closefd=False)


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Turns a system error into one line with the file and advice."""
    try:
        yield
    except OSError as error:
        advice = {
            errno.ENOENT: "no such file; check the path",
            errno.ENOTDIR: "no such file; check the path",
            errno.EACCES: "permission denied; make it readable for this user",
            errno.EPERM: "permission denied; make it readable for this user",
            errno.EISDIR: "is a directory",
        }.get(
            error.errno or 0,
            f"cannot read ({error.strerror or error}); copy it to a local disk and try again",
        )
        raise CaptureError(f"{name}: {advice}") from error
