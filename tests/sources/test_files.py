"""Opening captures: what is recognised, what is handed out, what is said when it cannot be read."""

import errno
import gzip
import hashlib
import io
import os
import random
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from kwsniff.errors import CaptureError
from kwsniff.sources.files import BUFFER_BYTES, CaptureFile, find_captures
from kwsniff.sources.order import find_in_order

PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)


def pcap_bytes(size: int, seed: int = 1) -> bytes:
    """A pcap header and then bytes that compress about as badly as a capture does."""
    dice = random.Random(seed)
    blocks = (dice.randbytes(4000) + bytes(2000) for _ in range(size // 6000 + 1))
    return (PCAP_HEADER + b"".join(blocks))[:size]


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def contents(path: Path | str) -> tuple[bytes, CaptureFile]:
    with CaptureFile(path) as capture:
        return b"".join(bytes(buffer) for buffer in capture.buffers()), capture


WRAPPERS = {"plain": bytes, "gzip": gzip.compress, "zstd": zstd}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("size", [24, 4000, BUFFER_BYTES - 1, BUFFER_BYTES, 3 * BUFFER_BYTES + 77])
def test_every_byte_comes_out_whatever_the_file_is_called(tmp_path: Path, wrapper: str, size: int) -> None:
    data = pcap_bytes(size)
    path = tmp_path / "capture.txt"
    path.write_bytes(WRAPPERS[wrapper](data))
    got, capture = contents(path)
    assert got == data
    assert capture.consumed == capture.size == path.stat().st_size
    assert not capture.truncated
    assert capture.note is None
    assert capture.compression == (None if wrapper == "plain" else wrapper)


@pytest.mark.parametrize("wrapper", ["gzip", "zstd"])
def test_a_highly_compressed_file_comes_in_bounded_buffers(tmp_path: Path, wrapper: str) -> None:
    path = tmp_path / "zeros"
    path.write_bytes(WRAPPERS[wrapper](PCAP_HEADER + bytes(64 << 20)))
    total = 0
    with CaptureFile(path) as capture:
        for buffer in capture.buffers():
            assert 0 < len(buffer) <= BUFFER_BYTES
            total += len(buffer)
    assert total == 24 + (64 << 20)


@pytest.mark.parametrize("wrapper", ["gzip", "zstd"])
def test_joined_compressed_files_are_read_to_the_last(tmp_path: Path, wrapper: str) -> None:
    first, second = pcap_bytes(300_000), pcap_bytes(200_000, seed=2)
    path = tmp_path / "joined"
    path.write_bytes(WRAPPERS[wrapper](first) + WRAPPERS[wrapper](second))
    got, capture = contents(path)
    assert got == first + second
    assert not capture.truncated


def test_gzip_padding_is_silent_and_other_bytes_behind_it_are_noted(tmp_path: Path) -> None:
    data = pcap_bytes(5000)
    path = tmp_path / "padded"
    path.write_bytes(gzip.compress(data) + bytes(512))
    got, capture = contents(path)
    assert (got, capture.note) == (data, None)
    path.write_bytes(gzip.compress(data) + b"and more")
    got, capture = contents(path)
    assert got == data
    assert capture.note == "bytes after the compressed stream are ignored"
    assert not capture.truncated


@pytest.mark.parametrize("cut", [1, 9, 4000, 100_000])
def test_a_cut_gzip_gives_what_another_reader_gets_before_the_cut(tmp_path: Path, cut: int) -> None:
    packed = gzip.compress(pcap_bytes(3_000_000))[:-cut]
    path = tmp_path / "cut.pcap.gz"
    path.write_bytes(packed)
    witness = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=False)
    assert witness.returncode != 0
    got, capture = contents(path)
    assert got == witness.stdout
    assert capture.truncated
    assert capture.note == "the gzip stream ends early"


def test_a_damaged_gzip_gives_what_was_before_the_damage(tmp_path: Path) -> None:
    data = random.Random(3).randbytes(2_000_000)  # stored blocks: the damage is where it is
    packed = bytearray(gzip.compress(PCAP_HEADER + data, compresslevel=0))
    packed[1_000_000:1_000_400] = bytes(400)
    path = tmp_path / "damaged.gz"
    path.write_bytes(packed)
    got, capture = contents(path)
    assert capture.truncated
    assert capture.note is not None and "damaged" in capture.note
    assert got[: 24 + 990_000] == (PCAP_HEADER + data)[: 24 + 990_000]


@pytest.mark.parametrize("cut", [1, 4000, 200_000])
def test_a_cut_zstd_gives_what_was_before_the_cut(tmp_path: Path, cut: int) -> None:
    data = PCAP_HEADER + random.Random(4).randbytes(2_000_000)
    path = tmp_path / "cut.pcap.zst"
    path.write_bytes(zstd(data)[:-cut])
    got, capture = contents(path)
    assert data.startswith(got)
    assert len(data) - len(got) <= cut + (128 << 10) + 4096  # a zstd block, and the last step
    assert capture.truncated
    assert capture.note == "the zstd stream ends early"


def test_a_damaged_zstd_is_reported(tmp_path: Path) -> None:
    packed = bytearray(zstd(pcap_bytes(3_000_000)))
    packed[len(packed) // 2 :] = bytes(len(packed) - len(packed) // 2)
    path = tmp_path / "damaged.zst"
    path.write_bytes(packed)
    _, capture = contents(path)
    assert capture.truncated
    assert capture.note is not None and "zstd stream" in capture.note


def test_standard_input_is_read_as_it_comes(tmp_path: Path) -> None:
    data = pcap_bytes(2_500_000)
    code = (
        "import hashlib; from kwsniff.sources.files import CaptureFile\n"
        "h = hashlib.sha256(); c = CaptureFile('-')\n"
        "for b in c.buffers(): h.update(b)\n"
        "print(h.hexdigest(), c.size, c.consumed)"
    )
    for packed in (data, gzip.compress(data), zstd(data)):
        done = subprocess.run([sys.executable, "-c", code], input=packed, capture_output=True, check=True)

        assert done.stdout.decode().split() == [hashlib.sha256(data).hexdigest(), "None", str(len(packed))]


def test_a_named_pipe_is_read_once_and_whole(tmp_path: Path) -> None:
    data = pcap_bytes(1_500_000)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert find_captures([path]).captures == [str(path)]
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    got, capture = contents(path)
    writer.join()
    assert got == data
    assert capture.size is None


def test_a_directory_gives_its_captures_in_the_order_they_were_rotated(tmp_path: Path) -> None:
    for name in ("x.pcap", "x.pcap1", "x.pcap2", "x.pcap10"):
        (tmp_path / name).write_bytes(PCAP_HEADER)
    (tmp_path / "x.pcap3").write_bytes(gzip.compress(PCAP_HEADER))
    (tmp_path / "x.pcap4").write_bytes(zstd(PCAP_HEADER))
    (tmp_path / "notes.pcap").write_text("not one")
    (tmp_path / "empty.pcap").write_bytes(b"")
    (tmp_path / ".hidden").write_bytes(PCAP_HEADER)
    (tmp_path / "deeper").mkdir()
    found = find_captures([tmp_path])
    names = [Path(name).name for name in found.captures]
    assert names == ["x.pcap", "x.pcap1", "x.pcap2", "x.pcap3", "x.pcap4", "x.pcap10"]
    assert [(Path(each.name).name, each.size) for each in found.unread] == [
        ("deeper", None),
        ("empty.pcap", 0),
        ("notes.pcap", 7),
    ]


def test_a_directory_hides_nothing_that_cannot_be_read(tmp_path: Path) -> None:
    """Each in a line of its own, the same by name as by folder; the rest is read."""
    (tmp_path / "good.pcap").write_bytes(PCAP_HEADER)
    odd: dict[str, tuple[bytes, str]] = {
        "a.pcap.gz": (gzip.compress(b"x" * 99)[:4] + b"\xff" * 20, "it cannot be decompressed"),
        "b.pcap.zst": (zstd(PCAP_HEADER)[:4] + b"\xff" * 20, "it cannot be decompressed"),
        "c.pcap": (b"", "is empty"),
        "d.pcap": (b"GIF89a", "is not a capture"),
        "e.pcap": (PCAP_HEADER[:12], "ends before its first packet"),
        "f.pcap.gz": (gzip.compress(PCAP_HEADER[:12]), "ends before its first packet"),
        "g.pcap": (b"\x0a\x0d\x0d\x0a" + bytes(4), "ends before its first packet"),
    }
    for name, (data, _) in odd.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "deeper").mkdir()
    (tmp_path / "gone.pcap").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    wanted = {name: says for name, (_, says) in odd.items()} | {
        "deeper": "is a nested directory",
        "gone.pcap": "no such file",
        "pipe": "neither a file nor a directory",
    }
    found = find_in_order([tmp_path])
    assert found.captures == [str(tmp_path / "good.pcap")]
    reasons = {Path(each.name).name: each.why for each in found.unread}
    assert reasons.keys() == wanted.keys()
    assert all(says in reasons[name] for name, says in wanted.items())
    named = find_in_order([tmp_path / name for name in (*odd, "good.pcap")])
    assert named.captures == found.captures
    assert {Path(each.name).name: each.why for each in named.unread} == {name: reasons[name] for name in odd}
    with pytest.raises(CaptureError, match=r"a\.pcap\.gz: it cannot .* \(and 6 more unreadable files"):
        find_in_order([tmp_path / name for name in odd])


class _Failing(io.RawIOBase):
    def readinto(self, buffer: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_file_that_fails_later_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap_bytes(3 * BUFFER_BYTES))
    capture = CaptureFile(path)
    pieces = capture.readable()
    assert len(next(pieces)) == BUFFER_BYTES
    capture._raw.close()
    capture._raw = _Failing()  # type: ignore[assignment]
    assert list(pieces) == []
    assert capture.truncated
    assert capture.note == "cannot read (Input/output error); copy it to a local disk and try again"


def test_named_files_keep_the_order_they_were_given_in(tmp_path: Path) -> None:
    first, second = tmp_path / "b", tmp_path / "a"
    for path in (first, second):
        path.write_bytes(PCAP_HEADER)
    assert find_captures([first, "-", second]).captures == [str(first), "-", str(second)]


@pytest.mark.parametrize("magic", ["a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "0a0d0d0a"])
def test_both_byte_orders_and_both_resolutions_are_captures(tmp_path: Path, magic: str) -> None:
    path = tmp_path / "capture"
    path.write_bytes(bytes.fromhex(magic) + bytes(40))
    assert find_captures([path]).captures == [str(path)]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.write_bytes(b""), "is empty"),
        (lambda path: path.write_text("hello there"), "is not a capture (begins with 68 65 6c 6c)"),
        (lambda path: path.write_bytes(gzip.compress(b"hello there")), "is not a capture (begins with 68 65"),
        (lambda path: path.write_bytes(gzip.compress(b"")), "it cannot be decompressed"),
        (lambda path: path.mkdir(), "no captures in this directory"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line_that_names_the_file(tmp_path: Path, make, says: str) -> None:
    path = tmp_path / "given"
    make(path)
    with pytest.raises(CaptureError) as caught:
        find_captures([path])
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert says in text
    assert "\n" not in text


def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    path = tmp_path / "secret.pcap"
    path.write_bytes(PCAP_HEADER)
    path.chmod(0)
    if os.geteuid() != 0:
        with pytest.raises(CaptureError, match="permission denied"):
            find_captures([path])
        return
    code = (
        "import os, sys; from kwsniff.sources.files import find_captures, CaptureError\n"
        "os.chdir(sys.argv[1]); os.setgid(65534); os.setuid(65534)\n"
        "try: find_captures(['secret.pcap'])\n"
        "except CaptureError as e: print(e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "secret.pcap: permission denied; make it readable for this user\n"


def test_of_many_zstd_frames_only_the_cut_one_is_missing(tmp_path: Path) -> None:
    """As of captures that are rotated into one file: each frame can be read without the next."""
    data = pcap_bytes(20_000)
    parts = [data, *[data[24:]] * 9]
    path = tmp_path / "cut.pcap.zst"
    path.write_bytes(b"".join(map(zstd, parts))[:-5])
    with CaptureFile(path) as capture:
        got = b"".join(bytes(buffer) for buffer in capture.buffers())
    whole = b"".join(parts[:-1])
    assert b"".join(parts).startswith(got)
    assert len(got) > len(whole) - 1024
    assert capture.truncated
