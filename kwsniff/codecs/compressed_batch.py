"""Decompression of a record batch by its codec (gzip, snappy, lz4, zstd), with a limit on the output.

Kafka's codec numbers are bits 0-2 of a batch's attributes: 0 none, 1 gzip (RFC 1952), 2 snappy (in blocks
after a special header, or bare), 3 lz4 (frame format), 4 zstd. ``CodecError`` is the only exception;
its text is from a closed list: unknown_codec, damaged, longer_than_limit.
"""

import struct
import zlib
from typing import Any, Final

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""Names by number, as Kafka writes them."""

LEAST_GIVEN: Final = 1 << 9
MOST_GIVEN: Final = 1 << 18
"""Input bytes per zlib call, few at the start of a member: zlib copies those that it does not use."""
_PIECE: Final = 1 << 18
_XERIAL: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER: Final = 16
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"


class CodecError(Exception):
    """A batch that cannot be decompressed; the text is a name of the closed list above."""


def decompress(codec: int, data: bytes, *, limit: int, message_format: int = 2) -> bytes:
    """The decompressed bytes, at most ``limit``.

    ``message_format`` is the batch's magic: in format 0 lz4 frames have a wrong header checksum.
    """
    if codec == 0:
        return data
    if not data:
        raise CodecError("damaged")
    if codec == 1:
        return _gzip(data, limit)
    if codec == 2:
        return _snappy(data, limit)
    if codec == 3:
        return _stream("lz4", _with_header_checksum(data) if message_format == 0 else data, limit)
    if codec == 4:
        return _stream("zstd", data, limit)
    raise CodecError("unknown_codec")


def _gzip(data: bytes, limit: int) -> bytes:
    out = bytearray()
    left, at = memoryview(data), 0
    # After a member only another member may follow; like Java's reader, ignore anything else.
    while at == 0 or data[at : at + 2] == b"\x1f\x8b":
        engine = zlib.decompressobj(16 + zlib.MAX_WBITS)
        given = LEAST_GIVEN
        while not engine.eof:
            part = left[at : at + given]
            try:
                piece = engine.decompress(part, _PIECE)
            except zlib.error as error:
                raise CodecError("damaged") from error
            out += piece
            at += len(part) - len(engine.unused_data if engine.eof else engine.unconsumed_tail)
            given = min(2 * given, MOST_GIVEN)
            if len(out) > limit:
                raise CodecError("longer_than_limit")
            if not piece and at == len(left) and not engine.eof:
                raise CodecError("damaged")
    return bytes(out)


def _snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL):
        return _snappy_block(data, limit)
    out = bytearray()
    at = _XERIAL_HEADER
    while at < len(data):
        if data.startswith(_XERIAL, at):
            # Concatenated streams keep their headers.
            at += _XERIAL_HEADER
            continue
        size = int.from_bytes(data[at : at + 4], "big")
        at += 4
        if len(data) < at or size > len(data) - at:
            raise CodecError("damaged")
        out += _snappy_block(data[at : at + size], limit - len(out))
        at += size
    return bytes(out)


def _snappy_block(block: bytes, limit: int) -> bytes:
    # The block begins with its size. The library trusts any given size, so it gets this one.
    import pyarrow as pa

    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    else:
        raise CodecError("damaged")
    if size > limit:
        raise CodecError("longer_than_limit")
    # A byte of snappy expands to at most 64 / 3 bytes: a larger declared size is an attempt to make us
    # allocate.
    if size > 22 * len(block):
        raise CodecError("damaged")
    try:
        return bytes(pa.Codec("snappy").decompress(block, decompressed_size=size, asbytes=True))
    except (OSError, ValueError) as error:
        raise CodecError("damaged") from error


def _stream(name: str, data: bytes, limit: int) -> bytes:
    import pyarrow as pa

    out = bytearray()
    try:
        stream: Any = pa.CompressedInputStream(pa.BufferReader(data), name)
        while piece := stream.read(_PIECE):
            out += piece
            if len(out) > limit:
                raise CodecError("longer_than_limit")
    except (OSError, ValueError) as error:
        raise CodecError("damaged") from error
    return bytes(out)


def _with_header_checksum(frame: bytes) -> bytes:
    """The lz4 frame with the correct header checksum.

    Kafka's writers of message format 0 include the magic in the checksum, unlike the lz4 frame format.
    """
    if not frame.startswith(_LZ4_MAGIC) or len(frame) < 7:
        return frame
    flags = frame[4]
    end = 6 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)
    if len(frame) <= end:
        return frame
    return frame[:end] + bytes([xxh32(frame[4:end]) >> 8 & 255]) + frame[end + 1 :]


def xxh32(data: bytes) -> int:
    """xxHash32 with seed 0 of less than 16 bytes (xxHash specification)."""
    prime1, prime2, prime3, prime4, prime5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    value = prime5 + len(data)
    whole = len(data) & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        value = _rotate(value + word * prime3, 17) * prime4
    for byte in data[whole:]:
        value = _rotate(value + byte * prime5, 11) * prime1
    value &= 0xFFFFFFFF
    value = (value ^ value >> 15) * prime2 & 0xFFFFFFFF
    value = (value ^ value >> 13) * prime3 & 0xFFFFFFFF
    return value ^ value >> 16


def _rotate(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return (value << bits | value >> 32 - bits) & 0xFFFFFFFF
