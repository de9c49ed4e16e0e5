"""Captures that become shorter after they were looked into, as a rotating tool makes them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from kwsniff.core.capture.file_splits import meet
from kwsniff.errors import CaptureError
from kwsniff.spark.inputs import Split, find_inputs, share_out
from kwsniff.spark.jobs import Items
from kwsniff.spark.scan import Routed, scan_split
from kwsniff.spark.storage import Place
from tests.hostile import greed


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "capture.pcap"
    greed.write(path, "small_connections", 400_000)
    return path


def scanned(splits: list[Split], folder: Path) -> Routed:
    folder.mkdir(exist_ok=True)
    place = Place(str(folder))
    return scan_split(0, tasks=Items.write(place, [splits]), folder=place, num_buckets=1, limits={})


@pytest.mark.parametrize("left", [0.9, 0.6, 0.5, 0.1])
def test_a_scan_of_what_is_gone_is_truncated(capture: Path, tmp_path: Path, left: float) -> None:
    """The file shrinks between the moments at which it is looked into and at which it is walked."""
    size = capture.stat().st_size
    captures = find_inputs([capture])
    splits = [split for task in share_out(captures, size // 2 + 1) for split in task]
    assert len(splits) == 2
    keep = int(size * left)
    os.truncate(capture, keep)
    found = [walk.scan for walk in scanned(splits, tmp_path / "work").walks]
    kept, again = meet(captures[0].head, found, size)
    if again is not None:
        rest = replace(splits[1], begin=again.begin, end=again.end, head=again.head, exact=True)
        found = [*kept, *(walk.scan for walk in scanned([rest], tmp_path / "work").walks)]
        kept, again = meet(captures[0].head, found, size)
    assert again is None
    assert kept[-1].stop == "truncated"
    assert kept[-1].end <= keep
    assert sum(scan.packets for scan in kept) > 0


def test_a_file_that_is_gone_is_an_error(capture: Path, tmp_path: Path) -> None:
    (splits,) = share_out(find_inputs([capture]), 1 << 30)
    capture.unlink()
    with pytest.raises(CaptureError, match="workers do not see it"):
        scanned(splits, tmp_path / "work")
