"""With --delta the folders are Delta tables: the same rows, seen through the log, by readers of their own."""

from __future__ import annotations

import builtins
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")

import deltalake

from kwsniff.cli.main import run
from kwsniff.spark.pipeline import run_pipeline
from kwsniff.tables.schema import TABLES

CAPTURE = Path(__file__).parents[2] / "captures" / "transactions" / "capture.pcap"


@pytest.mark.slow
def test_tables_are_delta_tables(in_process: None, tmp_path: Path) -> None:
    """Also after a second run in their place, and wherever the folder is moved to."""
    for _ in range(2):
        result = run_pipeline(
            CAPTURE, tmp_path / "out", spark=object(), tables=tuple(TABLES), num_buckets=3, delta=True
        )
    moved = shutil.move(tmp_path / "out", tmp_path / "moved")
    for name in TABLES:
        table = deltalake.DeltaTable(str(moved / name))
        assert table.version() == 0
        assert table.metadata().partition_columns == ["date"]
        assert table.to_pyarrow_table().num_rows == result.rows[name], name
        logged = {Path(path).name for path in table.file_uris()}
        assert logged == {path.name for path in (moved / name).rglob("date=*/*.parquet")}


def test_polars_reads_them(in_process: None, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    run_pipeline(
        CAPTURE, tmp_path / "out", spark=object(), tables=("transactions",), num_buckets=2, delta=True
    )
    frame = polars.read_delta(str(tmp_path / "out" / "transactions"))
    assert sorted(frame["outcome"]) == ["aborted", "committed", "committed", "fenced"]
    assert set(map(str, frame["date"])) == {str(when.date()) for when in frame["begin_time"]}


def test_without_the_library_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    there = builtins.__import__

    def absent(name: str, *others: Any) -> Any:
        if name == "deltalake":
            raise ImportError(name)
        return there(name, *others)

    monkeypatch.setattr(builtins, "__import__", absent)
    assert run(["pipeline", str(CAPTURE), "-o", str(tmp_path / "out"), "--delta"]) == 2
    assert "pip install '.[delta]'" in capsys.readouterr().err
