"""Rotated files are read in the order in which they were captured, however they are named."""

import gzip
import random
from pathlib import Path

import kwsniff
from kwsniff.sources.order import find_in_order, first_time
from tests.tables.runs import of_any_run
from tests.traffic.files import frames, pcap, pcapng
from tests.traffic.scenes import pipelined


def rotated(folder: Path, num: int) -> list[Path]:
    packets = frames(pipelined().packets())
    size = -(-len(packets) // num)
    parts = [packets[at : at + size] for at in range(0, len(packets), size)]
    paths = []
    for number, part in enumerate(parts):
        path = folder / f"x.pcap{number or ''}"
        data = pcapng(part) if number % 3 == 1 else pcap(part)
        path.write_bytes(gzip.compress(data) if number % 3 == 2 else data)
        paths.append(path)
    return paths


def test_any_order_gives_the_same_tables(tmp_path: Path) -> None:
    paths = rotated(tmp_path, 12)
    whole = kwsniff.analyze(paths)
    assert set(whole.api_calls["status"].to_pylist()) == {"answered"}
    shuffled = paths.copy()
    for seed in range(3):
        random.Random(seed).shuffle(shuffled)
        again = kwsniff.analyze(shuffled)
        assert of_any_run(again.api_calls).equals(of_any_run(whole.api_calls))
        assert of_any_run(again.latencies).equals(of_any_run(whole.latencies))
        assert again.captures["capture"].to_pylist() == [str(path) for path in paths]


def test_a_ring_of_files_begins_with_its_oldest(tmp_path: Path) -> None:
    """`tcpdump -W 3` goes on with the first name: the newest packets may be in ring0."""
    old = rotated(tmp_path, 3)
    ring = [path.rename(tmp_path / f"ring{number}") for path, number in zip(old, (1, 2, 0), strict=True)]
    assert find_in_order([tmp_path]).captures == [str(path) for path in ring]


def test_captures_without_a_packet_come_last(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(pcap([]))
    path, *_ = rotated(tmp_path, 1)
    assert first_time(str(tmp_path / "a")) is None
    assert find_in_order([tmp_path / "a", path]).captures == [str(path), str(tmp_path / "a")]
