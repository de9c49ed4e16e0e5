"""A part of captures by time: the pipeline's rows are those of `kwsniff analyze`."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from tests.spark.compare import analyzed, written

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from tests.spark.test_pipeline import recorded, run


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("three_brokers", {"since": "+100ms", "until": "+300ms"}),
        ("rebalance", {"since": "-100ms"}),
        ("transactions", {"until": "+500ms"}),
        ("any_interface", {"since": "2030-01-01"}),
    ],
)
def test_a_part_of_a_recording_gives_the_tables_of_analyze(
    in_process: None, tmp_path: Path, name: str, times: Any
) -> None:
    capture = recorded(name)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(capture.read_bytes()))
    for path in (capture, tmp_path / "packed.gz"):
        result = run(path, tmp_path / "out", split_bytes=5000, **times)
        assert written(tmp_path / "out") == analyzed(path, **times) != analyzed(path)
        assert (result.no_packets is not None) == (times == {"since": "2030-01-01"})
