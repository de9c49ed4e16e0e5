"""Captures that become shorter while they are mapped, as a rotating tool makes them."""

import mmap
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from kwsniff.core.capture.file_splits import meet, read_head
from kwsniff.core.capture.mapping import Guard
from kwsniff.errors import CaptureError
from kwsniff.spark.inputs import Mapped, mapped
from kwsniff.spark.scan import Split, scan_split
from tests.hostile import greed

PAGE = mmap.PAGESIZE


def _shrunk(path: Path, keep: int, _: object) -> int:
    os.truncate(path, keep)
    return keep


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "capture.pcap"
    greed.write(path, "small_connections", 400_000)
    return path


def test_pages_that_a_file_lost_are_zeroes_and_told_of(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 4 * PAGE)
    with (
        path.open("r+b") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        Guard(data) as guard,
    ):
        file.truncate(PAGE + 10)
        assert data[PAGE : PAGE + 12] == b"x" * 10 + bytes(2)
        assert not guard.has_holes
        assert data[2 * PAGE :] == bytes(2 * PAGE)
        assert guard.has_holes


def test_elsewhere_it_ends_the_process_as_before(tmp_path: Path) -> None:
    script = """
import mmap, sys
from kwsniff.core.capture.mapping import Guard
file = open(sys.argv[1], "r+b")
file.write(bytes(8192)); file.flush()
guarded, other = (mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) for _ in range(2))
with Guard(guarded):
    file.truncate(0)
    print(guarded[5000], flush=True)
    print(other[5000])
"""
    path = tmp_path / "file"
    path.touch()
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-7, "0\n")


@pytest.mark.parametrize("left", [0.9, 0.6, 0.1])
def test_a_scan_of_what_is_gone_is_truncated(
    capture: Path, tmp_path: Path, left: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file shrinks between the moments at which it is mapped and at which it is walked."""
    size = capture.stat().st_size
    keep = int(size * left)
    with mapped(str(capture)) as file:
        head = read_head(file.data)
    monkeypatch.setattr(Mapped, "size", property(partial(_shrunk, capture, keep)))
    (tmp_path / "work").mkdir()
    halves = [Split(str(capture), head, 0, size // 2), Split(str(capture), head, size // 2, size)]
    found = scan_split(halves[0], folder=str(tmp_path / "work"), num_buckets=1, limits={}).scan
    assert (found.stop == "truncated") == (keep < size // 2)
    assert found.end <= keep
    whole = Split(str(capture), head, found.end, size)
    rest = scan_split(whole, folder=str(tmp_path / "work"), num_buckets=1, limits={}).scan
    assert rest.stop == "truncated"
    assert rest.end <= keep or rest.packets == 0
    kept, again = meet(head, [found, rest])
    assert again is None
    assert kept[-1].stop == "truncated"


def test_a_file_that_is_empty_now_is_an_error(capture: Path, tmp_path: Path) -> None:
    with mapped(str(capture)) as file:
        head = read_head(file.data)
    os.truncate(capture, 0)
    with pytest.raises(CaptureError, match="is empty"):
        scan_split(Split(str(capture), head, 0, 1000), folder=str(tmp_path), num_buckets=1, limits={})
