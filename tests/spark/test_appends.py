"""Appends that are cut off, repeated, or given what the tables already have. The witness of what a table
holds is its format's own library."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

import kwsniff
from kwsniff.cli import main as cli
from kwsniff.errors import OutputError, UsageError
from kwsniff.spark.pipeline import run_pipeline
from kwsniff.tables.stored_files import INTENT, open_catalog
from tests.spark.compare import analyzed_once

pytestmark = pytest.mark.sample_tests(3)

ROOT = Path(__file__).parents[2]
ONE, OTHER = (ROOT / "captures" / name / "capture.pcap" for name in ("transactions", "first_steps"))
SHOWN = ("api_calls", "connections", "transactions", "partitions")
FORMS = ("delta", "iceberg")


@pytest.fixture(autouse=True)
def quick(in_process: None) -> None:
    pytest.importorskip("deltalake", reason="deltalake is not installed")
    pytest.importorskip("pyiceberg", reason="pyiceberg is not installed")


def append(captures: Any, output: Path, form: str, **options: Any) -> Any:
    spark: Any = object()
    return run_pipeline(
        captures,
        output,
        spark=spark,
        tables=(*SHOWN, "captures"),
        num_buckets=2,
        form=form,
        mode="append",
        **options,
    )


def rows_by_library(output: Path, form: str) -> dict[str, int]:
    if form == "delta":
        import deltalake

        return {
            table: deltalake.DeltaTable(str(output / table)).to_pyarrow_table().num_rows for table in SHOWN
        }
    with open_catalog(output) as catalog:
        return {table: catalog.load_table(f"kwsniff.{table}").scan().to_arrow().num_rows for table in SHOWN}


def rows_by_kwsniff(output: Path) -> dict[str, int]:
    found = kwsniff.open(output)
    return {table: found.rows(table) for table in SHOWN}


def rows_of(*captures: Path) -> dict[str, int]:
    return {table: sum(len(analyzed_once(path)[table]) for path in captures) for table in SHOWN}


def die(capture: Path, output: Path, form: str, steps: int) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.spark.in_process",
            str(capture),
            str(output),
            form,
            ",".join((*SHOWN, "captures")),
            str(steps),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("steps", range(6))
def test_an_append_that_is_killed_and_repeated_has_its_rows_once(
    form: str, steps: int, tmp_path: Path
) -> None:
    """Killed before the first table, between any two, before the manifest; then the same command again."""
    output = tmp_path / "lake"
    append(ONE, output, form)
    die(OTHER, output, form, steps)
    half = rows_by_library(output, form)
    assert (half == rows_of(ONE)) == (steps == 0)
    # Whoever reads in between sees all tables as they were.
    assert rows_by_kwsniff(output) == rows_of(ONE)
    result = append(OTHER, output, form)
    assert result.finished
    assert {table: result.rows[table] for table in SHOWN} == rows_of(OTHER)
    assert rows_by_library(output, form) == rows_by_kwsniff(output) == rows_of(ONE, OTHER)
    assert not (output / INTENT).exists()
    with pytest.raises(UsageError, match="already has the rows of"):
        append(OTHER, output, form)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_another_append_completes_the_one_that_was_killed(form: str, tmp_path: Path) -> None:
    output = tmp_path / "lake"
    die(OTHER, output, form, 2)  # the first run into this folder
    result = append(ONE, output, form)
    assert result.finished is None
    assert rows_by_library(output, form) == rows_by_kwsniff(output) == rows_of(ONE, OTHER)


def test_the_command_says_what_it_completed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "lake"
    die(OTHER, output, "delta", 2)
    monkeypatch.setattr("kwsniff.spark.session.start_session", lambda *_: object())
    command = ["pipeline", str(OTHER), "-o", str(output), "--format", "delta", "--mode", "append"]
    tables = ["--table", ",".join((*SHOWN, "captures")), "--buckets", "2"]
    capsys.readouterr()
    assert cli.run([*command, *tables, "--json"]) == 0
    said = capsys.readouterr()
    assert "an earlier run over these captures ended before all tables had its rows" in said.err
    assert json.loads(said.out)["rows"]["api_calls"] == rows_of(OTHER)["api_calls"]
    assert cli.run([*command, *tables]) == 2
    assert "say --again to have these rows twice" in capsys.readouterr().err
    assert cli.run([*command, *tables, "--again"]) == 0
    assert rows_by_library(output, "delta") == rows_of(OTHER, OTHER)
    assert cli.run([*command[:-2], *tables, "--again"]) == 2
    assert "--again needs --mode append" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["parquet", *FORMS])
def test_captures_are_known_by_what_is_in_them(form: str, tmp_path: Path) -> None:
    """Under another name, and compressed; beside one that is new nothing is appended."""
    output, copy, packed = tmp_path / "lake", tmp_path / "copy.pcap", tmp_path / "packed.pcap.gz"
    append([ONE], output, form)
    shutil.copy(ONE, copy)
    packed.write_bytes(gzip.compress(ONE.read_bytes()))
    for again in (ONE, copy, packed):
        with pytest.raises(UsageError, match="--again"):
            append([again, OTHER], output, form)
    assert rows_by_kwsniff(output) == rows_of(ONE)
    append(OTHER, output, form)
    with pytest.raises(UsageError, match="--again"):
        append(ONE, output, form)
    append(copy, output, form, again=True)
    assert rows_by_kwsniff(output) == rows_of(ONE, OTHER, ONE)


def test_other_times_of_a_capture_are_other_rows(tmp_path: Path) -> None:
    output = tmp_path / "lake"
    whole = analyzed_once(ONE)["captures"][0]
    middle = (whole["first_time"] + (whole["last_time"] - whole["first_time"]) / 2).isoformat()
    append(ONE, output, "parquet", until=middle)
    append(ONE, output, "parquet", since=middle)
    with pytest.raises(UsageError, match="--again"):
        append(ONE, output, "parquet", since=middle)
    found = kwsniff.open(output)
    assert found.captures.num_rows == 2
    rows = found.captures.to_pylist()
    assert sum(row["packets"] - row["skipped_other_time"] for row in rows) == whole["packets"]


@pytest.mark.parametrize("mode", ["overwrite", "replace-dates"])
def test_rows_that_are_replaced_may_come_again(mode: str, tmp_path: Path) -> None:
    output = tmp_path / "lake"
    spark: Any = object()
    append(ONE, output, "parquet")
    for _ in range(2):
        run_pipeline(ONE, output, spark=spark, tables=(*SHOWN, "captures"), form="parquet", mode=mode)
    assert rows_by_kwsniff(output) == rows_of(ONE)
    run_pipeline(OTHER, output, spark=spark, tables=(*SHOWN, "captures"))
    append(ONE, output, "parquet")
    assert rows_by_kwsniff(output) == rows_of(ONE, OTHER)


def test_an_intent_that_cannot_be_carried_out_says_what_to_do(tmp_path: Path) -> None:
    output = tmp_path / "lake"
    append(ONE, output, "delta")
    die(OTHER, output, "delta", 1)
    for log in (output / "transactions" / "_delta_log").iterdir():
        log.write_text("{")
    with pytest.raises(OutputError, match=r"could not finish it: repair that table, or remove .*intent"):
        append(OTHER, output, "delta")
    (output / INTENT).write_text('{"mode": "app')  # its writer died while it wrote this
    with pytest.raises(OutputError, match="transactions"):
        append(OTHER, output, "delta")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_run_that_is_given_up_takes_no_file_from_a_table(form: str, tmp_path: Path) -> None:
    """Without its intent, the tables that it had changed keep what their logs show."""
    output = tmp_path / "lake"
    append(ONE, output, form)
    die(OTHER, output, form, 2)
    (output / INTENT).unlink()
    half = rows_by_library(output, form)
    append(ONE, output, form, again=True)
    more = rows_of(ONE)
    assert rows_by_library(output, form) == {table: half[table] + more[table] for table in SHOWN}


@pytest.mark.slow
def test_a_run_that_replaces_rows_does_so_after_one_that_was_cut_off(tmp_path: Path) -> None:
    output = tmp_path / "lake"
    spark: Any = object()
    append(ONE, output, "delta")
    die(OTHER, output, "delta", 2)
    run_pipeline(OTHER, output, spark=spark, tables=(*SHOWN, "captures"), form="delta")
    assert rows_by_library(output, "delta") == rows_by_kwsniff(output) == rows_of(OTHER)


@pytest.mark.slow
def test_a_repeated_run_for_other_tables_reads_its_captures(tmp_path: Path) -> None:
    output = tmp_path / "lake"
    spark: Any = object()
    die(OTHER, output, "delta", 2)
    options: dict[str, Any] = {"form": "delta", "mode": "append", "again": True}
    result = run_pipeline(OTHER, output, spark=spark, tables=("api_calls",), **options)
    assert result.finished is None
    assert rows_by_library(output, "delta")["api_calls"] == 2 * rows_of(OTHER)["api_calls"]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_folder_that_is_named_from_here_shows_tables_as_they_were(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "lake"
    append(ONE, output, form)
    die(OTHER, output, form, 2)
    monkeypatch.chdir(tmp_path)
    assert rows_by_kwsniff(Path("lake")) == rows_of(ONE)


def test_what_a_run_replaced_is_known_to_later_ones(tmp_path: Path) -> None:
    """A run that replaces a folder of this machine names its files without its id."""
    output = tmp_path / "lake"
    spark: Any = object()
    run_pipeline(ONE, output, spark=spark, tables=(*SHOWN, "captures"))
    for _ in range(2):
        with pytest.raises(UsageError, match="--again"):
            append(ONE, output, "parquet")
        append(OTHER, output, "parquet", again=True)
    run_pipeline(OTHER, output, spark=spark, tables=(*SHOWN, "captures"), form="parquet")
    append(ONE, output, "parquet")
