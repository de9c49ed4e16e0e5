"""The worst captures that `python -m tests.hostile.search` found stay below the bound of memory."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.hostile.greed import analyze
from tests.hostile.search import Genes, made, write
from tests.house.tree import ROOT

_MEMORY = 400_000_000
WORST: dict[str, tuple[int, Genes]] = {
    # 32 bytes of memory for each byte: short connections that offer 1,274 versions each, and lose bytes.
    "offers of versions": (
        15_000_000,
        made(
            versions=5, holes=8, name=787, names=1153, topics=6, partitions=1274, epochs=5, calls=4, late=2,
            unanswered=5, piece=167, turned=50, values=9, value=97, codec=2, failing=1, interfaces=7508,
        ),
    ),
    # 25 bytes: errors of partitions, whose leaders move, in names of 2.4 kB.
    "partitions that fail": (
        15_000_000,
        made(
            metadata=8, fetches=8, name=2442, names=1, topics=6, partitions=282, epochs=5, calls=25, late=10,
            unanswered=14, piece=167, turned=9, values=5, value=97, failing=1, moving=1, interfaces=7288,
        ),
    ),
    # The most work for each byte: the same, with offers of versions.
    "versions and moving leaders": (
        10_000_000,
        made(
            metadata=8, fetches=8, versions=8, name=2442, names=1, topics=6, partitions=282, epochs=5,
            calls=25, late=10, unanswered=14, piece=167, turned=9, values=5, value=97, codec=2, failing=1,
            moving=1, interfaces=7288,
        ),
    ),
}  # fmt: skip
"""Bytes of a capture, and its genes."""


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", list(WORST))
def test_the_worst_that_was_found_stays_below_the_bound(tmp_path: Path, name: str) -> None:
    size, genes = WORST[name]
    capture = tmp_path / "capture"
    write(capture, genes, size)
    found = analyze(capture, tmp_path)
    assert found.problem is None
    assert found.peak_bytes < _MEMORY
    assert pq.ParquetFile(tmp_path / "tables" / "api_calls.parquet").metadata.num_rows > 100


@pytest.mark.slow
def test_a_search_tells_the_worst_that_it_tried() -> None:
    command = [sys.executable, "-m", "tests.hostile.search", "--minutes", "0", "--bytes", "100000"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "1 captures tried" in done.stdout
    assert {line.split()[0] for line in done.stdout.splitlines()[-2:]} == {"memory", "nanoseconds"}
