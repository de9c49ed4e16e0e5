"""Sizes of captures, ends of files of several sections, and who may read a key log."""

from __future__ import annotations

import os
import struct
from contextlib import nullcontext
from pathlib import Path

import pytest

from kwsniff.errors import UsageError
from kwsniff.sources.files import CaptureFile
from kwsniff.sources.keylog import Sessions, is_open_to_others
from kwsniff.sources.order import last_time, size_of
from kwsniff.sources.times import TimeRange
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import two_clients

ROWS = frames(two_clients().packets())
SECOND = 10**9


def test_only_files_have_a_size(tmp_path: Path) -> None:
    for name, number in (("a", 2), ("b", 3)):
        (tmp_path / name).write_bytes(pcap(ROWS[:number]))
    names = [str(tmp_path / name) for name in "ab"]
    assert size_of(names) == len(pcap(ROWS[:2])) + len(pcap(ROWS[:3]))
    os.mkfifo(tmp_path / "pipe")
    assert size_of([*names, str(tmp_path / "pipe")]) is None
    assert size_of(["-"]) is None


def section(resolution: int, ticks: int) -> bytes:
    """A pcapng section with an interface that counts 10^-resolution seconds, and one packet."""
    head = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    option = struct.pack("<HHBxxxHH", 9, 1, resolution, 0, 0)
    interface = struct.pack("<IIHHI", 1, 32, 1, 0, 0) + option + struct.pack("<I", 32)
    data = ROWS[0].data + bytes(-len(ROWS[0].data) % 4)
    size = 32 + len(data)
    numbers = (ticks >> 32, ticks & 0xFFFFFFFF, len(ROWS[0].data), len(ROWS[0].data))
    packet = struct.pack("<III4I", 6, size, 0, *numbers) + data + struct.pack("<I", size)
    return head + interface + packet


def test_the_last_packet_has_the_time_that_its_own_section_gives(tmp_path: Path) -> None:
    path = tmp_path / "joined.pcapng"
    path.write_bytes(section(6, 1_700_000_000 * 10**6) + section(9, 1_700_000_007 * SECOND + 5))
    assert last_time(str(path)) == 1_700_000_007 * SECOND + 5


@pytest.mark.parametrize(
    ("mode", "is_open"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True), (0o620, True)]
)
def test_a_key_log_is_for_its_owner_alone(mode: int, is_open: bool, tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    path.touch(mode)
    path.chmod(mode)
    assert bool(is_open_to_others(str(path))) == is_open


def test_sections_in_buffers_of_their_own_have_their_own_interfaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwsniff.sources.files.BUFFER_BYTES", 70)
    path = tmp_path / "joined.pcapng"
    path.write_bytes(section(6, 1_700_000_000 * 10**6) + section(9, 1_700_000_007 * SECOND + 5))
    assert last_time(str(path)) == 1_700_000_007 * SECOND + 5


def test_a_range_of_no_length_is_refused_once_its_bounds_are_known(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(ROWS, nanoseconds=True))
    first = min(row.time_ns for row in ROWS)
    for until, is_refused in ((first, True), (first + 1, False)):
        times = TimeRange("+0s", f"{until:019}")
        with (
            CaptureFile(str(path)) as capture,
            pytest.raises(UsageError, match="is not before") if is_refused else nullcontext(),
        ):
            times.resolve([str(path)], capture)


def test_a_range_without_packets_says_what_captures_cover() -> None:
    facts = {"packets": 10, "packets_other_time": 10}
    times = TimeRange("2023-11-14T23:00:00Z")
    for minute in (20, 13, 40):
        begin = (1_700_000_000 + 60 * minute) * SECOND
        times.add_facts({**facts, "other_first_time": begin, "other_last_time": begin + 5 * SECOND})
    assert times.missed == (
        "no packets from 2023-11-14T23:00:00Z on; "
        "the captures cover 2023-11-14 22:26:20.000 UTC to 22:53:25.000"
    )
    times.add_facts({**facts, "packets_other_time": 9, "other_first_time": None, "other_last_time": None})
    assert times.missed is None


def test_secrets_are_new_once_and_master_keys_go_by_session_id_too() -> None:
    random, session, secret = b"ab" * 32, b"cd" * 32, b"0f" * 48
    lines = {
        bytes.fromhex(random.decode()): b"CLIENT_RANDOM " + random + b" " + secret + b"\n",
        bytes.fromhex(session.decode()): b"RSA Session-ID:" + session + b" Master-Key:" + secret + b"\n",
    }
    for key, line in lines.items():
        known = Sessions()
        assert [known.add_lines(line), known.add_lines(line), len(known)] == [1, 0, 1]
        assert known.secrets(key) == {0: bytes.fromhex(secret.decode())}
