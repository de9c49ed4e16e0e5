"""Whole compressed streams (a capture file inside gzip or zstd), taken apart in bounded pieces.

Both functions yield what could be decompressed and return a note about how the stream ended: ``None`` for
a proper end, else one clause. Nothing is raised for damaged bytes: what came before them is worth having.
A yielded piece is only valid until the next one is asked for.
"""

import zlib
from collections.abc import Generator
from typing import Any, Protocol

PIECE = 1 << 20
"""Most bytes handed out at a time."""

IGNORED_BYTES = "bytes after the compressed stream are ignored"
"""The one note that means nothing was lost."""

_ZSTD_STEP = 1 << 16
_ZSTD_LAST_STEP = 1 << 12
_RAW_READ = 1 << 18
_GZIP = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"

Pieces = Generator[memoryview, None, str | None]


class Readable(Protocol):
    """What the compressed bytes are read from; an empty answer means the end."""

    def read(self, size: int = -1, /) -> bytes: ...


def decompress_gzip(raw: Readable) -> Pieces:
    """Every member of a gzip stream (RFC 1952), one after the other."""
    data = raw.read(_RAW_READ)
    while True:
        engine = zlib.decompressobj(_GZIP)
        while not engine.eof:
            if not data:
                data = raw.read(_RAW_READ)
                if not data:
                    return "the gzip stream ends early"
            before = engine.copy()
            try:
                piece = engine.decompress(data, PIECE)
            except zlib.error as error:
                yield from _before_damage(before, data)
                return f"the gzip stream is damaged ({error})"
            data = engine.unconsumed_tail
            if piece:
                yield memoryview(piece)
        data = engine.unused_data.lstrip(b"\0") or raw.read(_RAW_READ).lstrip(b"\0")
        if len(data) == 1:
            data += raw.read(_RAW_READ)
        if not data:
            return None
        if not data.startswith(_GZIP_MAGIC):
            return IGNORED_BYTES


def _before_damage(engine: Any, data: bytes) -> Generator[memoryview, None, None]:
    """What `data` holds before the damage. zlib drops what the failing call gave, so single bytes go in."""
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
    """Passes reads through and remembers that the end was seen."""

    closed = False

    def __init__(self, raw: Readable) -> None:
        self._raw = raw
        self.exhausted = False

    def read(self, size: int = -1, /) -> bytes:
        data = self._raw.read(size)
        self.exhausted = self.exhausted or len(data) < size
        return data

    def close(self) -> None:
        """The file belongs to whoever opened it."""


def decompress_zstd(raw: Readable) -> Pieces:
    """Every frame of a zstd stream (RFC 8878).

    Of a stream that is cut or damaged, up to 4 KiB (cut) or 64 KiB (damaged) before the break may be missing:
    Arrow keeps the output of the read that fails.
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
