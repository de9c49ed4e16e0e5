"""A capture that a rotating tool shortens while Spark's tasks read it: no worker ends by a signal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import greed
from tests.spark.compare import analyzed, written

pytest.importorskip("pyspark", reason="pyspark is not installed")

from kwsniff.errors import CaptureError
from kwsniff.spark.jobs import run_tasks
from kwsniff.spark.pipeline import run_pipeline
from kwsniff.spark.scan import scan_captures


@pytest.mark.slow
@pytest.mark.parametrize("left", [0.7, 0.2])
def test_what_is_gone_before_it_is_scanned_is_truncated(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: float
) -> None:
    """The driver knows the file's size from before; workers that mapped so much of it died by a signal."""
    capture = tmp_path / "capture.pcap"
    greed.write(capture, "small_connections", 400_000)

    def shrunk(*given: Any, **named: Any) -> Any:
        os.truncate(capture, int(capture.stat().st_size * left))
        return scan_captures(*given, **named)

    monkeypatch.setattr("kwsniff.spark.pipeline.scan_captures", shrunk)
    run_pipeline([capture], tmp_path / "out", spark=spark, num_buckets=2, split_bytes=100_000)
    found = written(tmp_path / "out")
    (row,) = found["captures"]
    assert row["truncated"] is True
    of_what_is_left = analyzed(capture)
    assert len(found["api_calls"]) > 100
    assert found["api_calls"] == of_what_is_left["api_calls"]
    assert found["latencies"] == of_what_is_left["latencies"]


@pytest.mark.slow
def test_what_is_gone_between_scan_and_decoding_is_one_error(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packets are named by their places in the file, which are no longer there: nothing is written then."""
    capture = tmp_path / "capture.pcap"
    greed.write(capture, "small_connections", 400_000)

    def shrunk(*given: Any, **named: Any) -> Any:
        os.truncate(capture, 150_000)
        return run_tasks(*given, **named)

    monkeypatch.setattr("kwsniff.spark.pipeline.run_tasks", shrunk)
    with pytest.raises(CaptureError, match=r"capture\.pcap: changed during the run"):
        run_pipeline([capture], tmp_path / "out", spark=spark, num_buckets=2, split_bytes=100_000)
    assert not list((tmp_path / "out").rglob("*.parquet"))
    assert spark.range(10).count() == 10
