"""Sizes of batches once decompressed, where compressed streams say them; the streams are other libraries'."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.pipeline.compare import analyzed_packets
from tests.traffic import messages
from tests.traffic.records import batch
from tests.traffic.scenes import one_by_one

HEADER = 61
Compress = Callable[[bytes], bytes]
TEXTS = [b"the quick brown fox %d" % number * 40 for number in range(30)]
NOISE = [random.Random(5).randbytes(70_000)]


def arrow(name: str) -> Compress:
    return lambda data: bytes(pa.Codec(name).compress(data, asbytes=True))


def zstd(**options: Any) -> Compress:
    library = pytest.importorskip("zstandard", reason="zstandard is not installed")
    return lambda data: bytes(library.ZstdCompressor(**options).compress(data))


def zstd_stream(**options: Any) -> Compress:
    """Written piece by piece, as Java's streams do: the frame's beginning cannot know its end."""
    library = pytest.importorskip("zstandard", reason="zstandard is not installed")

    def compress(data: bytes) -> bytes:
        stream = library.ZstdCompressor(**options).compressobj()
        return bytes(stream.compress(data[:50]) + stream.compress(data[50:]) + stream.flush())

    return compress


def lz4(**options: Any) -> Compress:
    library = pytest.importorskip("lz4.frame", reason="lz4 is not installed")
    return lambda data: bytes(library.compress(data, **options))


def xerial(data: bytes) -> bytes:
    blocks = [data[:1], data[1:9000], data[9000:]]
    packed = [arrow("snappy")(block) for block in blocks if block]
    sized = b"".join(struct.pack(">i", len(block)) + block for block in packed)
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + sized


def found(folder: Path, codec: int, compress: Compress, values: list[bytes]) -> tuple[int | None, int]:
    """What kwsniff says of the batch, and how long its records are."""
    plain = []

    def packed(data: bytes) -> bytes:
        plain.append(len(data))
        return compress(data)

    one = batch(values, compress=(codec, packed))
    tables = analyzed_packets(folder, one_by_one([messages.produce(9, 1, {"t": {0: one}})]).packets())
    (row,) = tables["record_batches"]
    assert row["codec"] == ("none", "gzip", "snappy", "lz4", "zstd")[codec]
    return row["uncompressed_bytes"], plain[0]


SAYING: dict[str, tuple[int, Callable[[], Compress]]] = {
    "gzip": (1, lambda: gzip.compress),
    "snappy, bare": (2, lambda: arrow("snappy")),
    "snappy, blocks": (2, lambda: xerial),
    "snappy, a second header": (2, lambda: lambda data: xerial(data[:99]) + xerial(data[99:])),
    "lz4": (3, lambda: lz4(store_size=True)),
    "lz4, checksums": (3, lambda: lz4(store_size=True, block_checksum=True, content_checksum=True)),
    "lz4, linked blocks": (3, lambda: lz4(store_size=True, block_linked=True)),
    "lz4, two frames": (3, lambda: lambda data: lz4(store_size=True)(data[:9]) + lz4()(data[9:])),
    "zstd of arrow": (4, lambda: arrow("zstd")),
    "zstd": (4, lambda: zstd(write_content_size=True)),
    "zstd, checksum": (4, lambda: zstd(write_content_size=True, write_checksum=True, level=19)),
    "zstd, two frames": (4, lambda: lambda data: zstd()(data[:99]) + zstd()(data[99:])),
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("values", [TEXTS, TEXTS[:1], [b"x"], NOISE], ids=["many", "one", "tiny", "noise"])
@pytest.mark.parametrize("name", SAYING)
def test_length_that_the_stream_says(name: str, values: list[bytes], tmp_path: Path) -> None:
    codec, compress = SAYING[name]
    said, records = found(tmp_path, codec, compress(), values)
    assert said == HEADER + records


SILENT: dict[str, tuple[int, Callable[[], Compress]]] = {
    "lz4 of arrow": (3, lambda: arrow("lz4")),
    "lz4": (3, lambda: lz4(store_size=False)),
    "lz4, one frame of two": (3, lambda: lambda data: lz4()(data[:99]) + lz4(store_size=False)(data[99:])),
    "zstd": (4, zstd_stream),
    "zstd, checksum": (4, lambda: zstd_stream(write_checksum=True)),
    "zstd, one frame of two": (4, lambda: lambda data: zstd()(data[:99]) + zstd_stream()(data[99:])),
}


@pytest.mark.parametrize("name", SILENT)
def test_stream_that_does_not_say_is_null(name: str, tmp_path: Path) -> None:
    codec, compress = SILENT[name]
    said, _ = found(tmp_path, codec, compress(), TEXTS)
    assert said is None


@pytest.mark.parametrize("name", ["lz4", "zstd", "zstd, checksum"])
def test_what_is_stored_uncompressed_says_its_length_itself(name: str, tmp_path: Path) -> None:
    codec, compress = SILENT[name]
    said, records = found(tmp_path, codec, compress(), NOISE)
    assert said == HEADER + records


@pytest.mark.sample(6)
@pytest.mark.parametrize("rest", [b"\0", b"\0" * 7, b"\0" * 64])
@pytest.mark.parametrize("name", [name for name in SAYING if name.split(",")[0] not in ("gzip", "snappy")])
def test_frames_that_do_not_fill_the_batch_say_nothing(name: str, rest: bytes, tmp_path: Path) -> None:
    codec, compress = SAYING[name]
    made = compress()
    said, _ = found(tmp_path, codec, lambda data: made(data) + rest, TEXTS)
    assert said is None
    said, _ = found(tmp_path, codec, lambda data: made(data)[: -len(rest)], TEXTS)
    assert said is None


def zstd_frame(size: int, blocks: bytes) -> bytes:
    """A frame of one segment whose size is written in eight bytes (RFC 8878 3.1.1)."""
    return struct.pack("<IBQ", 0xFD2FB528, 0xE0, size) + blocks


def block(kind: int, size: int, content: bytes) -> bytes:
    """The last block; kind 0 is raw, 1 one byte repeated."""
    return struct.pack("<I", 1 | kind << 1 | size << 3)[:3] + content


def test_a_byte_that_is_repeated_takes_one_byte(tmp_path: Path) -> None:
    frame = zstd_frame(500, block(1, 500, b"x"))
    assert pa.Codec("zstd").decompress(frame, 500, asbytes=True) == b"x" * 500
    assert found(tmp_path, 4, lambda _: frame + frame, [b"x"])[0] == HEADER + 1000


@pytest.mark.parametrize(("size", "known"), [(1 << 39, True), (3 << 38, False)])
def test_frames_that_claim_more_than_any_batch_holds_say_nothing(
    size: int, known: bool, tmp_path: Path
) -> None:
    """Two of them claim 2^40 bytes, or more."""
    frame = zstd_frame(size, block(0, 1, b"x"))
    said, _ = found(tmp_path, 4, lambda _: frame * 2, [b"x"])
    assert said == (HEADER + 2 * size if known else None)
