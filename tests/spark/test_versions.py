"""The pipeline under other versions of Spark, each in an environment of its own.

KWSNIFF_SPARKS: the Python of each, between colons. It has pyspark, pandas, pyarrow, duckdb, rich, and kwsniff
by `pip install -e .` of this checkout with its built core: it is of the same Python version.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kwsniff.spark.java import find_java_home
from kwsniff.tables.aggregates import AGGREGATES
from tests.spark.compare import analyzed, followed, in_order, parts, written
from tests.spark.followed import of_this_folder

ROOT = Path(__file__).parents[2]
PYTHONS = [each for each in os.environ.get("KWSNIFF_SPARKS", "").split(os.pathsep) if each]
SKETCHES = (4, 1)
SOURCES = (4, 0)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHONS, reason="KWSNIFF_SPARKS names no other versions of Spark"),
]
_READ = """
import sys
import pyspark.sql
from kwsniff.spark.session import start_session
spark = start_session("local[2]")
import kwsniff.spark
kwsniff.spark.register(spark)
print(spark.read.format("kafka_capture").load(sys.argv[1]).count())
"""


@pytest.fixture(params=PYTHONS or [""])
def python(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def version(python: str) -> tuple[int, ...]:
    said = run(python, "-c", "import pyspark; print(pyspark.__version__)").stdout
    return tuple(int(word) for word in said.split(".")[:2])


def run(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    home = find_java_home()
    environment = {
        **os.environ,
        **({"JAVA_HOME": home} if home else {}),
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": python,
    }
    command = [python, "-W", "ignore", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def pipeline(python: str, folder: Path, *arguments: str) -> dict[str, Any]:
    conf = [f"spark.local.dir={folder / 'spark'}", "spark.driver.memory=768m"]
    options = [word for each in conf for word in ("--conf", each)]
    done = run(python, "-m", "kwsniff.spark", *arguments, *options, "--master", "local[2]", "--json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout if "--stream" not in arguments else done.stdout.splitlines()[-1]))


def test_tables_and_aggregates_are_there(
    spark: Any, python: str, version: tuple[int, ...], capture: Path, tmp_path: Path
) -> None:
    """Aggregates are those of this Spark; percentiles too, since a minute has few calls of a kind."""
    from kwsniff.spark.pipeline import run_pipeline

    pipeline(python, tmp_path, str(capture), "-o", str(tmp_path / "out"), "--buckets", "3")
    assert written(tmp_path / "out") == analyzed(capture)
    run_pipeline(capture, tmp_path / "again", spark=spark, num_buckets=2)
    for name in AGGREGATES:
        found, wanted = (_rows(tmp_path / folder, name) for folder in ("out", "again"))
        assert in_order(found, ("sketch",)) == in_order(wanted, ("sketch",)), name
    sketches = _rows(tmp_path / "out", "latency_minutes")["sketch"]
    assert len(sketches)
    assert sketches.null_count == (0 if version >= SKETCHES else len(sketches))


def test_a_stream_is_followed_to_its_end(python: str, capture: Path, tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    copy = tmp_path / "captures" / capture.name
    copy.write_bytes(capture.read_bytes())
    pipeline(python, tmp_path, "--stream", str(copy.parent), "-o", str(tmp_path / "out"), "--finish")
    found = of_this_folder(written(tmp_path / "out"), copy.parent)
    assert found == of_this_folder(followed(capture), capture.parent)


def test_the_data_source_works_or_says_in_one_line_why_not(
    python: str, version: tuple[int, ...], capture: Path
) -> None:
    done = run(python, "-c", _READ, str(capture))
    if version >= SOURCES:
        assert done.stdout.split()[-1:] == [str(len(analyzed(capture)["api_calls"]))], done.stderr
    else:
        assert "has no Python data sources" in done.stderr.strip().splitlines()[-1]


def _rows(folder: Path, name: str) -> pa.Table:
    return pa.concat_tables([pq.ParquetFile(path).read() for path in parts(folder, name)])
