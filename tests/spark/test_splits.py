"""How captures are cut and shared out: sizes by arithmetic."""

from __future__ import annotations

import pytest

from kwsniff.spark.inputs import Capture, Split, share_out, sizes

MB = 1 << 20
GB = 1 << 30


def capture(size: int, compression: str | None = None) -> Capture:
    return Capture(f"{size}.pcap", size, b"head", 1, 7, compression)


def cuts(tasks: list[list[Split]]) -> list[list[tuple[int, int, int]]]:
    return [[(each.capture, each.begin, each.end) for each in task] for task in tasks]


def test_a_capture_is_cut_and_only_its_beginning_is_known() -> None:
    tasks = share_out([capture(250_000)], 100_000)
    assert cuts(tasks) == [[(0, 0, 100_000)], [(0, 100_000, 200_000)], [(0, 200_000, 250_000)]]
    assert [task[0].exact for task in tasks] == [True, False, False]


def test_neighbours_share_a_task_as_long_as_they_fit() -> None:
    sizes_ = [30_000, 40_000, 30_000, 1, 99_999, 1]
    assert cuts(share_out([*map(capture, sizes_)], 100_000)) == [
        [(0, 0, 30_000), (1, 0, 40_000), (2, 0, 30_000)],
        [(3, 0, 1), (4, 0, 99_999)],
        [(5, 0, 1)],
    ]


def test_a_compressed_capture_is_one_split() -> None:
    tasks = share_out([capture(10_000), capture(250_000, "gzip"), capture(10_000)], 100_000)
    assert cuts(tasks) == [[(0, 0, 10_000)], [(1, 0, 250_000)], [(2, 0, 10_000)]]


def test_an_empty_capture_is_read() -> None:
    assert cuts(share_out([capture(0)], 100_000)) == [[(0, 0, 0)]]


@pytest.mark.parametrize(
    ("size", "cores", "split", "buckets", "tasks"),
    [
        (0, 4, 128 * MB, 1, 8),
        (128 * MB, 4, 128 * MB, 1, 8),
        (128 * MB + 1, 4, 128 * MB, 2, 8),
        (6 * GB, 4, 512 * MB, 8, 48),  # three splits and two buckets for each core
        (100 * GB, 4, 2 * GB, 25, 800),  # no split above 2 GB, no bucket above 4 GB
        (1 << 50, 4, 2 * GB, 65_536, 1 << 23),
    ],
)
def test_sizes_follow_from_bytes_and_cores(
    size: int, cores: int, split: int, buckets: int, tasks: int
) -> None:
    found = sizes([capture(size)], cores)
    assert (found.split_bytes, found.buckets, found.tasks) == (split, buckets, tasks)


def test_a_compressed_byte_counts_four_times() -> None:
    assert sizes([capture(6 * GB)], 4) == sizes([capture(6 * GB // 4, "zstd")], 4)
    assert sizes([capture(3 * GB), capture(3 * GB // 4, "gzip")], 4) == sizes([capture(6 * GB)], 4)
