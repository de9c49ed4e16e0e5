"""The ring of packet files: how many there are, and what each begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwsniff.live.ring import PacketRing
from tests.traffic.files import frames, pcap, pcapng, read_frames
from tests.traffic.scenes import two_clients

ROWS = frames(two_clients().packets())


@pytest.mark.parametrize("files", [1, 3])
def test_the_last_files_are_kept(files: int, tmp_path: Path) -> None:
    """One packet each: a file is complete when it has so many bytes."""
    ring = PacketRing(tmp_path / "ring", files, file_bytes=1)
    ring.write(memoryview(pcap([])), 0)
    for row in ROWS[:5]:
        ring.write(memoryview(pcap([row])[24:]), 0)
    ring.close()
    kept = sorted((tmp_path / "ring").iterdir())
    assert [read_frames(path.read_bytes())[1][0].data for path in kept] == [
        row.data for row in ROWS[5 - files : 5]
    ]


def test_a_file_is_as_long_as_it_was_told_to_be(tmp_path: Path) -> None:
    ring = PacketRing(tmp_path / "ring", 99, file_bytes=2 * len(pcap(ROWS[:1])))
    ring.write(memoryview(pcap([])), 0)
    for _ in range(9):
        ring.write(memoryview(pcap(ROWS[:1])[24:]), 0)
    ring.close()
    assert [len(read_frames(path.read_bytes())[1]) for path in sorted((tmp_path / "ring").iterdir())] == [
        3
    ] * 3


def test_every_file_of_a_pcapng_begins_with_its_interfaces(tmp_path: Path) -> None:
    empty = len(pcapng([]))
    ring = PacketRing(tmp_path / "ring", 99, file_bytes=1)
    data = pcapng(ROWS[:3])
    ends = [empty, *(len(pcapng(ROWS[:number])) for number in (1, 2, 3))]
    for start, end in zip([0, *ends], ends, strict=False):
        ring.write(memoryview(data[start:end]), 0)
    ring.close()
    kept = b"".join(path.read_bytes() for path in sorted((tmp_path / "ring").iterdir()))
    assert kept == b"".join(pcapng([row]) for row in ROWS[:3])
