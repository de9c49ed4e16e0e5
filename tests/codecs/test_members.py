"""gzip streams of many members: each costs what it holds, not what follows it."""

import gzip
import io
import zlib
from typing import Any

import pytest

from kwsniff.codecs import compressed_batch, compressed_files
from kwsniff.codecs.compressed_batch import decompress
from kwsniff.codecs.compressed_files import decompress_gzip

_EMPTY = gzip.compress(b"", mtime=0)


class _Counted:
    """zlib's decompressor, with the bytes that it was given and did not use: it copies those."""

    copied = 0

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def decompress(self, data: Any, *most: int) -> bytes:
        piece: bytes = self._engine.decompress(data, *most)
        _Counted.copied += len(self._engine.unconsumed_tail) + len(self._engine.unused_data)
        return piece

    def copy(self) -> Any:
        return self._engine.copy()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> type[_Counted]:
    engine = zlib.decompressobj
    _Counted.copied = 0
    for module in (compressed_batch, compressed_files):
        monkeypatch.setattr(module.zlib, "decompressobj", lambda bits: _Counted(engine(bits)))  # type: ignore[attr-defined]
    return _Counted


@pytest.mark.parametrize("members", [1, 10, 5000])
def test_many_empty_members(members: int, counted: type[_Counted]) -> None:
    """What zlib copies grows with the stream, not with its square."""
    stream = _EMPTY * members + gzip.compress(b"end", mtime=0)
    assert decompress(1, stream, limit=1000) == b"end"
    assert counted.copied <= 600 * (members + 1)
    counted.copied = 0
    assert b"".join(map(bytes, decompress_gzip(io.BytesIO(stream)))) == b"end"
    assert counted.copied <= 600 * (members + 1)


@pytest.mark.parametrize("sizes", [(0, 1, 511, 512, 513), (100_000, 0, 3_000_000), (1, 700_000, 1)])
@pytest.mark.parametrize("level", [0, 1, 9])
def test_members_of_all_sizes(sizes: tuple[int, ...], level: int) -> None:
    parts = [bytes(number % 251 for number in range(size)) for size in sizes]
    stream = b"".join(gzip.compress(part, level, mtime=0) for part in parts)
    assert decompress(1, stream, limit=1 << 24) == b"".join(parts)
    assert decompress(1, stream + b"rest", limit=1 << 24) == b"".join(parts)
    assert b"".join(map(bytes, decompress_gzip(io.BytesIO(stream)))) == b"".join(parts)
    with_zeros = b"\0\0\0".join(gzip.compress(part, level, mtime=0) for part in parts)
    assert b"".join(map(bytes, decompress_gzip(io.BytesIO(with_zeros + bytes(700_000))))) == b"".join(parts)
