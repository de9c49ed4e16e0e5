"""A session over Spark Connect, in processes of its own: it and a classic one do not go together."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.spark.compare import analyzed, written

_SCRIPT = """
import sys
from pyspark.sql import SparkSession
from kwsniff.errors import OutputError
from kwsniff.spark import register
from kwsniff.spark.pipeline import run_pipeline
capture, output = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
try:
    run_pipeline([capture], output, spark=spark)
    register(spark)
    print("rows", spark.read.format("kafka_capture").load(capture).count())
except OutputError as error:
    print(error)
"""


def with_connect(capture: Path, output: Path, python: str) -> str:
    for module in ("grpc", "grpc_status", "google.rpc", "zstandard"):
        pytest.importorskip(module, reason="what Spark Connect needs is not installed (pyspark[connect])")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _SCRIPT, str(capture), str(output)],
        capture_output=True,
        text=True,
        check=True,
        cwd=output.parent,
        env={**os.environ, "PYSPARK_PYTHON": python},
        timeout=300,
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_a_session_over_spark_connect_gives_the_same_rows(spark: Any, tmp_path: Path, capture: Path) -> None:
    """`spark` only says that there is a Java."""
    assert with_connect(capture, tmp_path / "out", sys.executable) == "rows 34"
    found, expected = written(tmp_path / "out"), analyzed(capture)
    assert len(found["api_calls"]) == 34
    for table in ("api_calls", "latencies", "error_codes", "connections", "partitions", "groups", "members"):
        assert found[table] == expected[table]


@pytest.mark.slow
def test_workers_without_kwsniff_are_told_as_such(spark: Any, tmp_path: Path, capture: Path) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    told = with_connect(capture, tmp_path / "out", str(tmp_path / "bare" / "bin" / "python"))
    assert told.startswith(
        "a Spark task failed after all retries: ModuleNotFoundError: No module named 'kwsniff'"
    )
    assert "install it there" in told
