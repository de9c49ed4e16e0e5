"""Captures that ask for much memory in few bytes stay below the one bound; greed.py has more of them."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.hostile import greed

_MEMORY = 400_000_000
_SIZES = {
    "client_ids": 40_000_000,
    "sessions": 10_000_000,
    "frames": 40_000_000,
    "topics": 40_000_000,
    "errors": 60_000_000,
}


@pytest.mark.parametrize("generator", list(_SIZES))
def test_memory_stays_below_its_bound(tmp_path: Path, generator: str) -> None:
    """Today's peaks are 230 to 320 MB; before there was a bound, the first of them took 1 GB."""
    capture = tmp_path / "capture.pcap"
    greed.write(capture, generator, _SIZES[generator])
    found = greed.analyze(capture, tmp_path)
    assert found.problem is None
    assert found.peak_bytes < _MEMORY


def test_every_row_of_a_capture_that_is_taken_in_parts_is_there(tmp_path: Path) -> None:
    """Tables are taken between two calls, and no text is lost: 20 MB of names, taken several times."""
    capture = tmp_path / "capture.pcap"
    greed.write(capture, "client_ids", 20_000_000)
    found = greed.analyze(capture, tmp_path)
    assert found.problem is None
    tables = {
        name: pq.ParquetFile(tmp_path / "tables" / f"{name}.parquet").read()
        for name in ("api_calls", "latencies", "anomalies")
    }
    names = tables["api_calls"]["client_id"].to_pylist()
    assert len(names) == tables["latencies"].num_rows > 600
    assert names == [greed.name(number) for number in range(len(names))]
    assert tables["latencies"]["client_id"].to_pylist() == names
    assert tables["anomalies"].num_rows == 0
