"""Compression to an exact size, with what each format has for padding.

    gzip     a file name in the header
    snappy   longer lengths of literals, and literals cut into several
    lz4      a first part of the content that is stored
    zstd     a dictionary id of 0, and empty raw blocks

The content has the size that it had before its names were replaced, and repeats what it repeated. So it
rarely needs more room.

Source: RFC 1952; google/snappy format_description.txt; lz4_Frame_format.md; RFC 8878.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from kwsniff.codecs.compressed_batch import xxh32

_GZIP, _SNAPPY, _LZ4, _ZSTD = 1, 2, 3, 4
_GZIP_HEADER: Final = b"\x1f\x8b\x08%c\0\0\0\0\0\xff"
_FILE_NAME: Final = 8
_XERIAL: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER: Final = 16
_XERIAL_BLOCK: Final = 32 * 1024
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_BLOCKS: Final = {0x40: 1 << 16, 0x50: 1 << 18, 0x60: 1 << 20, 0x70: 1 << 22}
_HAS_SIZE: Final = 8
_STORED: Final = 0x8000_0000
_SINGLE: Final = 0x20
_ZSTD_LEVELS: Final = (3, 9, 19, 1)
_TRIES: Final = 64
_LARGE: Final = 1 << 20
"""Content that takes too long to be compressed again and again."""
_NO_BLOCK: Final = bytes(3)
"""A raw block of zstd without bytes, and not the last one."""


def fit(codec: int, plain: bytes, old: bytes, *, message_format: int = 2) -> bytes | None:
    """`plain` compressed to the size of `old`, which is what was compressed before; None if it needs more."""
    size = len(old)
    if codec == _GZIP:
        return _gzip(plain, size)
    if codec == _SNAPPY:
        return _snappy(plain, old)
    if codec == _LZ4:
        return _lz4(plain, old, message_format)
    return _zstd(plain, old) if codec == _ZSTD else None


def _gzip(plain: bytes, size: int) -> bytes | None:
    for level in (9, 6):
        engine = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, 9)
        body = (
            engine.compress(plain)
            + engine.flush()
            + struct.pack("<II", zlib.crc32(plain), len(plain) & 0xFFFFFFFF)
        )
        spare = size - 10 - len(body)
        if spare >= 0:
            name = b"x" * (spare - 1) + b"\0" if spare else b""
            return _GZIP_HEADER % (_FILE_NAME if spare else 0) + name + body
    return None


def _zstd(plain: bytes, old: bytes) -> bytes | None:
    import pyarrow as pa

    codec: Any
    for level in _ZSTD_LEVELS:
        codec = pa.Codec("zstd", compression_level=level)
        frame = bytes(codec.compress(plain, asbytes=True))
        if len(old) > 4 and not _content_size_bytes(old[4]):
            frame = _without_content_size(frame, len(plain))
        if len(frame) <= len(old):
            return _pad_zstd(frame, len(old) - len(frame))
    return None


def _without_content_size(frame: bytes, size: int) -> bytes:
    """A frame with a window instead of its content's size."""
    descriptor = frame[4]
    begin = 5 + (not descriptor & _SINGLE) + _content_size_bytes(descriptor)
    window = max((size - 1).bit_length() - 10, 0) << 3
    return frame[:4] + bytes([descriptor & 0x1F, window]) + frame[begin:]


def _pad_zstd(frame: bytes, spare: int) -> bytes:
    extra, blocks = next(
        (each, (spare - each) // 3) for each in (0, 1, 2, 4) if spare >= each and (spare - each) % 3 == 0
    )
    descriptor = frame[4]
    begin = 5 + (not descriptor & _SINGLE)  # a window descriptor, unless there is a single segment
    end = begin + _content_size_bytes(descriptor)
    head = bytes([descriptor | (0, 1, 2, 0, 3)[extra]]) + frame[5:begin] + bytes(extra) + frame[begin:end]
    return frame[:4] + head + _NO_BLOCK * blocks + frame[end:]


def _content_size_bytes(descriptor: int) -> int:
    flag = descriptor >> 6
    return (1 if descriptor & _SINGLE else 0) if flag == 0 else 1 << flag


def _lz4(plain: bytes, old: bytes, message_format: int) -> bytes | None:
    if not old.startswith(_LZ4_MAGIC) or len(old) < 7:
        return None
    fitting = next((each for each, most in _LZ4_BLOCKS.items() if most >= len(plain)), 0x70)
    for block_size in (old[5] & 0x70, fitting):
        head = _lz4_head(block_size, len(plain) if old[4] & _HAS_SIZE else None, message_format)
        size, most = len(old) - len(head) - 4, _LZ4_BLOCKS.get(block_size)
        if most:
            body = _with_literals(len(plain), size, partial(_lz4_blocks, plain, most))
            if len(body) == size:
                return head + body + bytes(4)
    return None


def _with_literals(most: int, size: int, make: Callable[[int], bytes]) -> bytes:
    """What `make` returns for the number of literals at the start that gives `size` bytes, or a few less."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if len(make(middle)) <= size:
            low = middle
        else:
            high = middle - 1
    best = make(low)
    tries = _TRIES if most <= _LARGE else 0
    for stored in range(low + 1, min(low + tries, most) + 1):
        if len(best) == size:
            break
        other = make(stored)
        if len(best) < len(other) <= size:
            best = other
    return best


def _lz4_blocks(plain: bytes, most: int, stored: int) -> bytes:
    parts = []
    for at in range(0, len(plain), most):
        part = plain[at : at + most]
        literals = max(min(stored - at, len(part)), 0)
        packed = _lz4_block(part, literals)
        if literals == len(part) or len(packed) >= len(part):
            parts.append(struct.pack("<I", len(part) | _STORED) + part)
        else:
            parts.append(struct.pack("<I", len(packed)) + packed)
    return b"".join(parts)


def _lz4_block(part: bytes, literals: int) -> bytes:
    """A compressed block that begins with this number of literals or more."""
    import pyarrow as pa

    codec: Any = pa.Codec("lz4_raw")
    packed = bytes(codec.compress(part[literals:], asbytes=True))
    if not literals:
        return packed
    size, at = packed[0] >> 4, 1
    while size == 15 if at == 1 else packed[at - 1] == 0xFF:
        size, at = size + packed[at], at + 1
    total = size + literals
    token = bytes([min(total, 15) << 4 | packed[0] & 15])
    more = total - 15
    longer = b"\xff" * (more // 255) + bytes([more % 255]) if more >= 0 else b""
    return token + longer + part[:literals] + packed[at:]


def _lz4_head(block_size: int, content: int | None, message_format: int) -> bytes:
    """Version 1, independent blocks. In message format 0 Kafka's checksum includes the magic."""
    flags = bytes([0x60 if content is None else 0x60 | _HAS_SIZE, block_size & 0x70])
    flags += b"" if content is None else struct.pack("<Q", content)
    covered = _LZ4_MAGIC + flags if message_format == 0 else flags
    return _LZ4_MAGIC + flags + bytes([xxh32(covered) >> 8 & 0xFF])


def _snappy(plain: bytes, old: bytes) -> bytes | None:
    if not old.startswith(_XERIAL):
        block = _snappy_block(plain, len(old))
        return block if len(block) == len(old) else None
    blocks = [plain[at : at + _XERIAL_BLOCK] for at in range(0, len(plain), _XERIAL_BLOCK)]
    spare = len(old) - _XERIAL_HEADER - 4 * len(blocks) - sum(len(_snappy_block(each, 0)) for each in blocks)
    out = [old[:_XERIAL_HEADER]]
    for each in blocks:
        least = len(_snappy_block(each, 0))
        new = _snappy_block(each, least + spare) if spare > 0 else _snappy_block(each, 0)
        spare -= len(new) - least
        out.append(struct.pack(">I", len(new)) + new)
    return b"".join(out) if spare == 0 else None


def _snappy_block(plain: bytes, size: int) -> bytes:
    """A block of `size` bytes, or as close as it gets."""
    import pyarrow as pa

    codec: Any = pa.Codec("snappy")

    def compress_rest(stored: int) -> bytes:
        rest = bytes(codec.compress(plain[stored:], asbytes=True))
        head = _uvarint(len(plain)) + (_literal(plain[:stored], 0) if stored else b"")
        return head + rest[len(_uvarint(len(plain) - stored)) :]

    least = compress_rest(0)
    if len(least) >= size:
        return least
    block = _with_literals(len(plain), size, compress_rest)
    return _pad_snappy(block, size - len(block))


def _uvarint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def _pad_snappy(packed: bytes, spare: int) -> bytes:
    """A block that is `spare` bytes longer, or as much as its literals allow."""
    at = 0
    while packed[at] & 128:
        at += 1
    out = [packed[: at + 1]]
    for tag, literal in _elements(packed, at + 1):
        if not spare or not literal:
            out.append(tag + literal)
            continue
        # Each byte by itself takes one tag, and up to four more for its length.
        spare += len(tag) - (1 if len(literal) <= 60 else len(tag))
        begin = 0
        while spare and begin < len(literal) - 1:
            longer = min(4, spare - 1)
            out.append(_literal(literal[begin : begin + 1], longer))
            spare -= 1 + longer
            begin += 1
        rest = literal[begin:]
        least = len(_literal(rest, 0)) - len(rest) - 1
        longer = min(4, least + spare)
        used = max(longer - least, 0)
        out.append(_literal(rest, max(longer, least)))
        spare -= used
    return b"".join(out)


def _literal(data: bytes, length_bytes: int) -> bytes:
    size = len(data) - 1
    needed = 0 if size < 60 else (size.bit_length() + 7) // 8
    number = max(length_bytes, needed)
    if not number:
        return bytes([size << 2]) + data
    return bytes([(59 + number) << 2]) + size.to_bytes(number, "little") + data


def _elements(packed: bytes, at: int) -> Iterator[tuple[bytes, bytes]]:
    """Tags, each with its literal or nothing."""
    while at < len(packed):
        kind, upper = packed[at] & 3, packed[at] >> 2
        if kind:
            size = (0, 2, 3, 5)[kind]
            yield packed[at : at + size], b""
            at += size
            continue
        extra = max(upper - 59, 0)
        length = 1 + (int.from_bytes(packed[at + 1 : at + 1 + extra], "little") if extra else upper)
        begin = at + 1 + extra
        yield packed[at:begin], packed[begin : begin + length]
        at = begin + length
