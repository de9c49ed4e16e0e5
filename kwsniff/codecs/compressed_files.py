"""Decompression of whole streams (a capture file inside gzip or zstd), in bounded pieces.

Both functions yield decompressed pieces and return a note on the end of the stream: ``None`` for
a proper end, else a short text. Damaged bytes raise no exception, because the data before them is useful.
A yielded piece is only valid until the next one is requested.
"""

import re
import zlib
from collections.abc import Generator
from typing import Any, Protocol

from kwsniff.codecs.compressed_batch import LEAST_GIVEN, MOST_GIVEN

PIECE = 1 << 20
"""Maximum size of a piece."""

IGNORED_BYTES = "bytes after the compressed stream are ignored"
"""The only note that does not mean a loss."""

_ZSTD_STEP = 1 << 16
_ZSTD_LAST_STEP = 1 << 10
_AHEAD = 2
_RAW_READ = 1 << 18
_GZIP = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_ZEROS = re.compile(rb"\0*")

Pieces = Generator[memoryview, None, str | None]


class Readable(Protocol):
    """Source of the compressed bytes; an empty result means the end."""

    def read(self, size: int = -1, /) -> bytes: ...


def decompress_gzip(raw: Readable) -> Pieces:
    """Every member of a gzip stream (RFC 1952), in order."""
    data, at = raw.read(_RAW_READ), 0
    while True:
        engine = zlib.decompressobj(_GZIP)
        given = LEAST_GIVEN
        while not engine.eof:
            if at == len(data):
                data, at = raw.read(_RAW_READ), 0
                if not data:
                    return "the gzip stream ends early"
            before = engine.copy()
            part = data[at : at + given]
            try:
                piece = engine.decompress(part, PIECE)
            except zlib.error as error:
                yield from _before_damage(before, part)
                return f"the gzip stream is damaged ({error})"
            at += len(part) - len(engine.unused_data if engine.eof else engine.unconsumed_tail)
            given = min(2 * given, MOST_GIVEN)
            if piece:
                yield memoryview(piece)
        at = _behind_zeros(data, at)
        if at == len(data):
            data = raw.read(_RAW_READ)
            at = _behind_zeros(data, 0)
        if len(data) - at == 1:
            data, at = data[at:] + raw.read(_RAW_READ), 0
        if at == len(data):
            return None
        if not data.startswith(_GZIP_MAGIC, at):
            return IGNORED_BYTES


def _behind_zeros(data: bytes, at: int) -> int:
    found = _ZEROS.match(data, at)
    return found.end() if found else at


def _before_damage(engine: Any, data: bytes) -> Generator[memoryview, None, None]:
    """The output of `data` before the damage. zlib drops the output of a failing call, so bytes go in one
    by one."""
    held = bytearray()
    for position in range(len(data)):
        try:
            held += engine.decompress(data[position : position + 1])
        except zlib.error:
            break
        if len(held) >= PIECE:
            yield memoryview(held)
            held = bytearray()
    if held:
        yield memoryview(held)


class _Tail:
    """Passes reads through, with read-ahead, so that the end is known in time."""

    closed = False

    def __init__(self, raw: Readable) -> None:
        self._raw = raw
        self._ahead: list[bytes] = []
        self.exhausted = False

    def read(self, size: int = -1, /) -> bytes:
        while not self.exhausted and len(self._ahead) <= _AHEAD:
            self._ahead.append(self._raw.read(size))
            self.exhausted = len(self._ahead[-1]) < size
        return self._ahead.pop(0) if self._ahead else b""

    def close(self) -> None:
        """The caller owns the file."""


def decompress_zstd(raw: Readable) -> Pieces:
    """Every frame of a zstd stream (RFC 8878).

    From a cut stream up to 1 KiB, and from a damaged one up to 64 KiB, before the break may be missing,
    because
    Arrow discards the output of the failing read. An incomplete block (up to 128 KiB) cannot be read at
    all.
    """
    import pyarrow as pa

    tail = _Tail(raw)
    stream = pa.CompressedInputStream(pa.PythonFile(tail, mode="r"), "zstd")
    buffer = memoryview(bytearray(PIECE))
    note = None
    filled = 0
    while note is None:
        step = _ZSTD_LAST_STEP if tail.exhausted else _ZSTD_STEP
        try:
            size = stream.readinto(buffer[filled : filled + step])
        except OSError as error:
            ends_early = "truncated" in str(error).lower()
            note = (
                "the zstd stream ends early"
                if ends_early
                else f"the zstd stream is damaged ({_first_line(error)})"
            )
            break
        filled += size
        if size == 0 or filled > PIECE - _ZSTD_STEP:
            if filled:
                yield buffer[:filled]
            filled = 0
            if size == 0:
                break
    if filled:
        yield buffer[:filled]
    return note


def _first_line(error: OSError) -> str:
    return str(error).splitlines()[0]
