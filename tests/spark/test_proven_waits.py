"""A wait and what proves it lie on different connections, and so in different buckets: rows are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.clocks import CLOCKS
from tests.spark.compare import analyzed, followed, rotated, written
from tests.spark.followed import Growing, of_this_folder
from tests.spark.test_pipeline import run

NAMES = ("follower_stopped/broker.pcap", "members_slow/broker.pcap")


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("num_buckets", [1, 5, 64])
def test_in_any_number_of_buckets_the_same_is_proven(
    in_process: None, tmp_path: Path, name: str, num_buckets: int
) -> None:
    run(CLOCKS / name, tmp_path / "out", num_buckets=num_buckets, split_bytes=3000)
    found = written(tmp_path / "out")
    assert found == analyzed(CLOCKS / name)
    assert {row["wait"] for row in found["latencies"]} & {"replicas", "group"}


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", NAMES)
def test_a_stream_that_dies_and_goes_on_proves_the_same(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    paths = rotated((CLOCKS / name).read_bytes(), 3, tmp_path)
    growing = Growing(tmp_path, 1, 2)
    growing.write([(path.name, path.read_bytes()) for path in paths])
    growing.finish(monkeypatch)
    found = of_this_folder(written(growing.output), growing.directory)
    assert found == of_this_folder(followed(*paths), tmp_path)
