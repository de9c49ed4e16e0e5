"""Which files of a folder go: the oldest beyond an age, or beyond a size, and no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kwsniff.live.retention import Retention

NOW = 1_000_000.0


def file(folder: Path, name: str, age: float, size: int) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    os.utime(path, (NOW - age, NOW - age))
    return path


def tables(folder: Path) -> list[Path]:
    """Four files, oldest first: 40, 30, 20 and 10 seconds, 100 bytes each."""
    stamp = "20261120T191500.123456Z-00000{}"
    return [
        file(folder, f"api_calls/{stamp.format(1)}.parquet", 40, 100),
        file(folder, f"latencies/{stamp.format(1)}.parquet", 30, 100),
        file(folder, f"packets/packets-{stamp.format(2)}.pcap", 20, 100),
        file(folder, f"api_calls/{stamp.format(3)}.parquet", 10, 100),
    ]


@pytest.mark.parametrize(
    ("retention", "gone"),
    [
        (Retention(seconds=40), 0),
        (Retention(seconds=39.9), 1),
        (Retention(seconds=30), 1),
        (Retention(seconds=15), 3),
        (Retention(most_bytes=400), 0),
        (Retention(most_bytes=399), 1),
        (Retention(most_bytes=250), 2),
        (Retention(most_bytes=0), 4),
        (Retention(seconds=35, most_bytes=250), 2),
        (Retention(seconds=15, most_bytes=399), 3),
        (Retention(), 0),
    ],
)
def test_the_oldest_files_go(tmp_path: Path, retention: Retention, gone: int) -> None:
    paths = tables(tmp_path)
    assert retention.apply(tmp_path, NOW) == gone
    assert [path.exists() for path in paths] == [False] * gone + [True] * (4 - gone)


def test_files_of_others_stay(tmp_path: Path) -> None:
    stamp = "20261120T191500.123456Z-000001"
    paths = [
        file(tmp_path, "api_calls/mine.parquet", 1000, 10),
        file(tmp_path, f"{stamp}.parquet", 1000, 10),
        file(tmp_path, f".kwsniff-abc/{stamp}.parquet", 1000, 10),
        file(tmp_path, f"packets/.packets-{stamp}.pcap", 1000, 10),
        file(tmp_path, "packets/packets-today.pcap", 1000, 10),
    ]
    assert Retention(seconds=1, most_bytes=0).apply(tmp_path, NOW) == 0
    assert all(path.exists() for path in paths)


def test_one_limit_is_enough() -> None:
    assert [bool(each) for each in (Retention(), Retention(seconds=1), Retention(most_bytes=1))] == [
        False,
        True,
        True,
    ]
