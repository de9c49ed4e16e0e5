"""Captures put behind each other, for a program that reads them as one: connections go on across files."""

import struct
from collections.abc import Iterator, Sequence

from kwsniff.sources.files import CaptureFile

_SECTION = b"\x0a\x0d\x0d\x0a"
_PATCHED = (b"\xa1\xb2\xcd\x34", b"\x34\xcd\xb2\xa1")
_FILE_HEADER = 24


def joinable(names: Sequence[str]) -> list[list[str]]:
    """The captures in their order, in runs that one file could hold: pcapng, or pcap of one kind."""
    runs: list[list[str]] = []
    last = b""
    for name in names:
        kind = _kind(name)
        if runs and kind == last:
            runs[-1].append(name)
        else:
            runs.append([name])
        last = kind
    return runs


def joined(names: Sequence[str]) -> Iterator[bytes | memoryview]:
    """The bytes of one file that holds the packets of all these captures."""
    for number, name in enumerate(names):
        with CaptureFile(name) as capture:
            if len(names) == 1:
                yield from capture.buffers()
            else:
                yield from _whole_records(capture, keep_header=number == 0)


def _kind(name: str) -> bytes:
    with CaptureFile(name) as capture:
        start = b""
        for buffer in capture.buffers():
            start += bytes(buffer[:_FILE_HEADER])
            if len(start) >= _FILE_HEADER:
                break
    return _SECTION if start.startswith(_SECTION) else start[:4] + start[20:_FILE_HEADER]


def _whole_records(capture: CaptureFile, *, keep_header: bool) -> Iterator[bytes]:
    """A record that is cut off at the end of a capture would swallow the beginning of the next one."""
    rest = b""
    reader: _Pcap | _Pcapng | None = None
    for buffer in capture.buffers():
        rest += bytes(buffer)
        start = 0
        if reader is None:
            if len(rest) < _FILE_HEADER:
                continue
            reader = _Pcapng() if rest.startswith(_SECTION) else _Pcap(rest)
            start = 0 if keep_header else reader.header
        end = reader.last_end(rest, reader.header if start == 0 and keep_header else start)
        yield rest[start:end]
        rest = rest[end:]
        keep_header = False


class _Pcap:
    """seconds, fraction, captured, original: four words, and the captured bytes."""

    header = _FILE_HEADER

    def __init__(self, start: bytes) -> None:
        big = start[0] == 0xA1
        self._captured = struct.Struct(">I" if big else "<I")
        self._record = 24 if start[:4] in _PATCHED else 16

    def last_end(self, data: bytes, at: int) -> int:
        """Where the last whole record ends."""
        while at + self._record <= len(data):
            (size,) = self._captured.unpack_from(data, at + 8)
            if at + self._record + size > len(data):
                break
            at += self._record + size
        return at


class _Pcapng:
    """Type, total length, body, total length; a section says in which byte order."""

    header = 0

    def __init__(self) -> None:
        self._word = struct.Struct("<I")

    def last_end(self, data: bytes, at: int) -> int:
        """Where the last whole block ends."""
        while at + 12 <= len(data):
            if data[at : at + 4] == _SECTION:
                self._word = struct.Struct(">I" if data[at + 8 : at + 12] == b"\x1a\x2b\x3c\x4d" else "<I")
            (size,) = self._word.unpack_from(data, at + 4)
            size += -size % 4
            if size < 12 or at + size > len(data):
                break
            at += size
        return at
