"""Compression to an exact size: the codecs' own libraries read what it gives."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from kwsniff.anonymize.names import Detail, Names
from kwsniff.anonymize.padded_compression import fit
from kwsniff.codecs.compressed_batch import decompress
from kwsniff.layout.catalog import load_catalog

NAMES = Names(bytes(32), load_catalog().names)
SIZES = (1, 2, 10, 50, 100, 333, 1000, 5000, 40_000, 100_000)


def stream(name: str) -> Callable[[bytes], bytes]:
    def pack(data: bytes) -> bytes:
        out = pa.BufferOutputStream()
        with pa.CompressedOutputStream(out, name) as packed:
            packed.write(data)
        return bytes(out.getvalue().to_pybytes())

    return pack


def block(name: str) -> Callable[[bytes], bytes]:
    return lambda data: bytes(pa.Codec(name).compress(data, asbytes=True))


def xerial(data: bytes) -> bytes:
    """As snappy-java's stream writes it."""
    out = b"\x82SNAPPY\0" + (1).to_bytes(4, "big") * 2
    for at in range(0, len(data), 32_768):
        packed = block("snappy")(data[at : at + 32_768])
        out += len(packed).to_bytes(4, "big") + packed
    return out


CODECS = {
    "gzip": (1, gzip.compress), "snappy": (2, block("snappy")), "xerial": (2, xerial),
    "lz4": (3, stream("lz4")), "zstd": (4, stream("zstd")), "zstd with its size": (4, block("zstd")),
}  # fmt: skip


@pytest.mark.sample(12)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("codec", CODECS)
def test_values_fit_into_the_size_that_they_had(codec: str, size: int) -> None:
    number, pack = CODECS[codec]
    source = random.Random(size)
    for plain in (
        "".join(source.choices("abcXYZ019 ", k=size)).encode(),
        "".join(f"order-{each}," for each in range(size))[:size].encode(),
    ):
        old = pack(plain)
        found = None
        for detail in Detail:
            new = NAMES.value(plain, detail)
            found = fit(number, new, old)
            if found is not None:
                assert len(found) == len(old)
                assert decompress(number, found, limit=1 << 20) == new
                break
        assert found is not None


@pytest.mark.parametrize("spare", range(40))
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_number_of_spare_bytes_can_be_filled(codec: str, spare: int) -> None:
    number, pack = CODECS[codec]
    plain = b"shop order " * 40
    least = len(pack(plain)) + 16
    old = pack(plain)[:16] + bytes(least - 16 + spare)
    found = fit(number, plain, old)
    assert found is not None
    assert len(found) == len(old)
    assert decompress(number, found, limit=1 << 20) == plain


def test_what_needs_more_is_refused() -> None:
    noise = random.Random(1).randbytes(500)
    for number, pack in CODECS.values():
        assert fit(number, noise, pack(b"short")) is None
    assert fit(7, b"", b"") is None
