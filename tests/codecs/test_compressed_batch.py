"""Decompression of batches: other writers' streams, damage, bombs."""

import gzip
import random
import struct
import zlib

import pyarrow as pa
import pytest

from kwsniff.codecs.compressed_batch import CodecError, decompress, xxh32

TEXT = b"the quick brown fox " * 2000


def xerial(*blocks: bytes) -> bytes:
    header = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    packed = [pa.Codec("snappy").compress(block, asbytes=True) for block in blocks]
    return header + b"".join(struct.pack(">i", len(one)) + one for one in packed)


def packed(name: str, data: bytes) -> bytes:
    return bytes(pa.Codec(name).compress(data, asbytes=True))


PLENTY = 64 << 20
STREAMS = {
    "gzip": (1, gzip.compress(TEXT)),
    "gzip in two members": (1, gzip.compress(TEXT[:99]) + gzip.compress(TEXT[99:])),
    "gzip and something else": (1, gzip.compress(TEXT) + b"????"),
    "snappy bare": (2, packed("snappy", TEXT)),
    "snappy in blocks": (2, xerial(TEXT[:7], TEXT[7:20000], TEXT[20000:])),
    "snappy with a header in the middle": (2, xerial(TEXT[:7]) + xerial(TEXT[7:])),
    "lz4": (3, packed("lz4", TEXT)),
    "zstd": (4, packed("zstd", TEXT)),
    "zstd in two frames": (4, packed("zstd", TEXT[:99]) + packed("zstd", TEXT[99:])),
}


@pytest.mark.parametrize("name", STREAMS)
def test_stream(name: str):
    codec, data = STREAMS[name]
    assert decompress(codec, data, limit=PLENTY) == TEXT


@pytest.mark.parametrize("name", STREAMS)
def test_more_than_the_limit_is_refused(name: str):
    codec, data = STREAMS[name]
    with pytest.raises(CodecError, match="longer_than_limit"):
        decompress(codec, data, limit=len(TEXT) - 1)
    assert decompress(codec, data, limit=len(TEXT)) == TEXT


@pytest.mark.parametrize("name", STREAMS)
def test_damage_gives_a_reason_and_nothing_else(name: str):
    codec, whole = STREAMS[name]
    random_ = random.Random(name)
    for _ in range(300):
        data = bytearray(whole[: random_.choice((len(whole), random_.randrange(len(whole))))])
        for _ in range(random_.randrange(4)):
            if data:
                data[random_.randrange(len(data))] = random_.randrange(256)
        try:
            assert len(decompress(codec, bytes(data), limit=10**6)) <= 10**6
        except CodecError as error:
            assert str(error) in ("damaged", "longer_than_limit")


def test_bomb_stops_at_the_limit():
    deflate = zlib.compressobj(9, wbits=31)
    bomb = b"".join(deflate.compress(bytes(1 << 20)) for _ in range(200)) + deflate.flush()
    with pytest.raises(CodecError, match="longer_than_limit"):
        decompress(1, bomb, limit=1 << 20)


def test_snappy_block_that_claims_more_than_it_can_hold():
    with pytest.raises(CodecError, match="damaged"):
        decompress(2, b"\xff\xff\xff\x1fabc", limit=PLENTY)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec(codec: int):
    with pytest.raises(CodecError, match="unknown_codec"):
        decompress(codec, b"abc", limit=PLENTY)


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)],
)
def test_xxh32_of_the_specification(data: bytes, value: int):
    assert xxh32(data) == value


def test_lz4_frame_with_the_header_checksum_of_format_0():
    frame = packed("lz4", TEXT)
    end = 6 + (8 if frame[4] & 8 else 0)
    old = frame[:end] + bytes([xxh32(frame[:end]) >> 8 & 255]) + frame[end + 1 :]
    assert old != frame
    assert decompress(3, old, message_format=0, limit=PLENTY) == TEXT
    with pytest.raises(CodecError, match="damaged"):
        decompress(3, old, message_format=1, limit=PLENTY)
