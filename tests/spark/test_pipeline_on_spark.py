"""The pipeline's tasks on Spark itself: the same rows, tasks that die, errors in one line."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from kwsniff.spark.inputs import Capture, find_inputs
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.schema import TABLES
from tests.spark.compare import analyzed, parts, rotated, written
from tests.spark.test_pipeline import recorded, run


@pytest.mark.sample(1)
@pytest.mark.parametrize("split_bytes", [500, 1 << 30])
def test_on_spark_the_tables_are_those_of_analyze(spark: Any, tmp_path: Path, split_bytes: int) -> None:
    paths = rotated(recorded("first_steps").read_bytes(), 3, tmp_path)
    made = run(
        [paths[2], paths[0], paths[1]], tmp_path / "out", spark, split_bytes=split_bytes, num_buckets=4
    )
    assert written(tmp_path / "out") == analyzed(*paths)
    assert made.rows == {name: len(rows) for name, rows in analyzed(*paths).items()}


@pytest.mark.slow
def test_spark_reads_what_was_written(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql.types import StructType

    from kwsniff.tables.schema import spark_ddl

    run(recorded("first_steps"), tmp_path / "out", spark)
    for name, table in TABLES.items():
        frame = spark.read.parquet(str(tmp_path / "out" / name)).drop("date")
        assert frame.schema == StructType.fromDDL(spark_ddl(table))
    calls = spark.read.parquet(str(tmp_path / "out" / "api_calls"))
    assert calls.where("date = '2026-11-20'").count() == len(analyzed(recorded("first_steps"))["api_calls"])
    assert (
        "PartitionFilters: [isnotnull(date"
        in calls.where("date = '2026-11-20'")._jdf.queryExecution().toString()
    )


@pytest.mark.slow
def test_a_task_that_dies_is_tried_again_and_doubles_no_row(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each task of the second stage is killed once, when its files are complete."""
    from pyspark import cloudpickle

    from kwsniff.spark import pipeline
    from tests.spark import dying

    cloudpickle.register_pickle_by_value(dying)
    monkeypatch.setattr(pipeline, "decode_bucket", dying.decode_then_die)
    capture = recorded("first_steps")
    run(capture, tmp_path / "out", spark, num_buckets=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["died-0", "died-1", "out"]
    assert written(tmp_path / "out") == analyzed(capture)


@pytest.mark.slow
def test_an_error_of_ours_in_a_task_is_one_line_and_leaves_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kwsniff.spark import pipeline

    capture = tmp_path / "capture.pcap"
    shutil.copy(recorded("first_steps"), capture)
    found = find_inputs([capture])

    def and_remove(_: object) -> list[Capture]:
        capture.unlink()
        return found

    monkeypatch.setattr(pipeline, "find_inputs", and_remove)
    with pytest.raises(Exception, match=r"^(?!.*\n).*capture\.pcap"):
        run(capture, tmp_path / "out", spark)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_aggregates_are_made_by_default(spark: Any, tmp_path: Path) -> None:
    made = run(recorded("first_steps"), tmp_path / "out", spark, tables=None)
    assert set(made.rows) == {*TABLES, *AGGREGATES}
    assert all(parts(tmp_path / "out", name) for name in made.rows)
