"""The ring of packet files: how many there are, and what each begins with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from kwsniff.live.ring_buffer import PacketRing, capture_header
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


def test_packets_are_for_their_owner_alone(tmp_path: Path) -> None:
    ring = PacketRing(tmp_path / "ring", 2, file_bytes=1)
    ring.write(memoryview(pcap(ROWS[:1])), 0)
    ring.close()
    (path,) = (tmp_path / "ring").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("piece", [1, 7, 40, 100])
def test_packets_that_come_in_pieces_are_whole(piece: int, tmp_path: Path) -> None:
    """However short the pieces are: each says how much of its end begins a packet."""
    data = pcap(ROWS[:4])
    ends = [len(pcap(ROWS[:number])) for number in range(5)]
    ring = PacketRing(tmp_path / "ring", 9)
    for start in range(0, len(data), piece):
        end = min(start + piece, len(data))
        ring.write(
            memoryview(data[start:end]), end - max((each for each in ends if each <= end), default=end)
        )
    ring.close()
    (path,) = (tmp_path / "ring").iterdir()
    assert path.read_bytes() == data


@pytest.mark.parametrize(("free", "kept"), [(1 << 40, 3), (1, 1)])
def test_a_disk_that_is_full_keeps_the_last_file(
    free: int, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    ring = PacketRing(tmp_path / "ring", 3, file_bytes=100)
    ring.write(memoryview(pcap([])), 0)
    for row in ROWS[:5]:
        ring.write(memoryview(pcap([row] * 2)[24:]), 0)
    ring.close()
    paths = sorted((tmp_path / "ring").iterdir())
    assert [read_frames(path.read_bytes())[1][0].data for path in paths] == [
        row.data for row in ROWS[5 - kept : 5]
    ]


def test_the_header_of_a_big_endian_pcapng_ends_with_its_interfaces() -> None:
    """Section header (28 bytes), interface (20), packet: numbers in the order that the section says."""
    section = b"\x0a\x0d\x0d\x0a" + (28).to_bytes(4, "big") + b"\x1a\x2b\x3c\x4d" + bytes(12)
    section += (28).to_bytes(4, "big")
    interface = (1).to_bytes(4, "big") + (20).to_bytes(4, "big") + bytes(8) + (20).to_bytes(4, "big")
    packet = (6).to_bytes(4, "big") + (32).to_bytes(4, "big") + bytes(24)
    assert capture_header(section + interface) is None
    assert capture_header(section + interface + packet) == section + interface
    assert capture_header(section + interface * 2 + packet) == section + interface * 2


def test_what_is_not_known_to_be_whole_waits_until_it_is(tmp_path: Path) -> None:
    """A piece of which nothing is said, one that ends within the next packet, and the rest."""
    data = pcap(ROWS[:3])
    first = len(pcap(ROWS[:1]))
    ring = PacketRing(tmp_path / "ring", 9)
    for start, end, unfinished in (
        (0, first + 20, None),
        (first + 20, first + 30, 30),
        (first + 30, len(data), 0),
    ):
        ring.write(memoryview(data[start:end]), unfinished)
    ring.close()
    (path,) = (tmp_path / "ring").iterdir()
    assert path.read_bytes() == data
