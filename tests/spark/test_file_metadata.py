"""Every parquet file of a pipeline says what its columns are, also one without rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from kwsniff.spark.pipeline import run_pipeline
from kwsniff.tables.schema import TABLES
from tests.tables.test_file_metadata import CAPTURE, check_file


@pytest.mark.slow
def test_files_of_the_pipeline(tmp_path: Path, spark: Any) -> None:
    run_pipeline([str(CAPTURE)], tmp_path / "out", spark=spark)
    files = sorted((tmp_path / "out").rglob("*.parquet"))
    assert {path.parent.parent.name for path in files} >= set(TABLES)
    for path in files:
        check_file(path)
