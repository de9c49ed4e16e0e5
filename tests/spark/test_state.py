"""Runs that continue where the one before ended: pieces of a capture give the rows of one run."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

import kwsniff
from kwsniff.cli.main import run
from kwsniff.errors import OutputError, UsageError
from kwsniff.spark.checkpoint import FOLLOWED
from kwsniff.spark.pipeline import run_pipeline
from kwsniff.spark.run_state import State, StateFolder
from kwsniff.spark.storage import Place
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.tables.stored_files import open_catalog
from tests.spark.compare import Rows, followed, in_order, records, unjudged, written
from tests.spark.followed import pieces
from tests.spark.hourly import Hours, lives, run_with_deaths

pytestmark = pytest.mark.sample_tests(6)


def rows_by_kwsniff(output: Path, tables: Sequence[str] = FOLLOWED) -> Rows:
    """What readers find, whatever files lie there."""
    found = kwsniff.open(output)
    there = {name: found.table(name) if name in tables else None for name in TABLES}
    return {
        name: [] if rows is None else in_order(pa.table(rows).cast(arrow_schema(TABLES[name])), ())
        for name, rows in there.items()
    }


def rows_by_library(output: Path, form: str) -> dict[str, int]:
    if form == "delta":
        import deltalake

        tables = {name: deltalake.DeltaTable(str(output / name)) for name in FOLLOWED}
        return {name: table.to_pyarrow_table().num_rows for name, table in tables.items()}
    with open_catalog(output) as catalog:
        return {name: catalog.load_table(f"kwsniff.{name}").scan().to_arrow().num_rows for name in FOLLOWED}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "name", ["first_steps", "transactions", "group_consumer", "versions_4_4", "rebalance"]
)
@pytest.mark.parametrize("num_buckets", [1, 3])
def test_pieces_give_the_rows_of_one_run(
    in_process: None, tmp_path: Path, name: str, num_buckets: int
) -> None:
    paths = pieces(name, 5, tmp_path)
    hours = Hours(tmp_path / "tables", tmp_path / "state", num_buckets=num_buckets)
    for path in paths:
        hours.run(path, finish=path == paths[-1])
    assert written(tmp_path / "tables") == followed(*paths)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_tables_with_a_history_hold_the_same_rows(in_process: None, tmp_path: Path, form: str) -> None:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[form])
    paths = pieces("transactions", 4, tmp_path)
    hours = Hours(tmp_path / "tables", tmp_path / "state", form)
    for path in paths:
        hours.run(path, finish=path == paths[-1])
    wanted = followed(*paths)
    assert rows_by_kwsniff(tmp_path / "tables") == wanted
    assert rows_by_library(tmp_path / "tables", form) == {name: len(wanted[name]) for name in FOLLOWED}


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("form", ["parquet", "delta", "iceberg"])
def test_runs_that_are_killed_and_repeated_give_each_row_once(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, seed: int
) -> None:
    paths = pieces("transactions", 4, tmp_path)
    hours = Hours(tmp_path / "tables", tmp_path / "state", form)
    assert run_with_deaths(hours, paths, seed, monkeypatch) > 3
    assert rows_by_kwsniff(tmp_path / "tables") == followed(*paths)


@pytest.mark.slow
def test_a_run_killed_at_any_write_has_its_rows_and_state_or_neither(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run after it takes up what is there; of the files of a state only those of one run stay."""
    paths = pieces("transactions", 3, tmp_path)
    tables = ("api_calls", "connections", "captures")
    wanted = {name: unjudged(followed(*paths))[name] for name in tables}
    steps, lived = 1, False
    while not lived:
        folder = tmp_path / str(steps)
        hours = Hours(folder / "tables", folder / "state", num_buckets=1, tables=tables)
        hours.run(paths[0])
        lived = lives(hours, paths[1], steps, monkeypatch)
        for path in paths[1:]:
            hours.run(path, finish=path == paths[-1])
        found = rows_by_kwsniff(folder / "tables", tables)
        assert {name: found[name] for name in tables} == wanted, steps
        assert len([*(folder / "state").rglob("*.state")]) == 1
        assert len([*(folder / "state").rglob("*.json")]) == 1
        steps += 2
    assert steps > 20


def test_a_piece_that_was_read_is_passed_over(in_process: None, tmp_path: Path) -> None:
    paths = pieces("transactions", 3, tmp_path)
    hours = Hours(tmp_path / "tables", tmp_path / "state")
    hours.run(paths[:1])
    before = (tmp_path / "tables" / "_kwsniff.json").read_bytes()
    assert hours.run(paths[:1]).known == (str(paths[0]),)
    assert (tmp_path / "tables" / "_kwsniff.json").read_bytes() == before
    assert hours.run(paths[:2]).known == (str(paths[0]),)
    hours.run(paths, finish=True)
    assert written(tmp_path / "tables") == followed(*paths)


def test_a_piece_that_has_grown_since_is_refused(in_process: None, tmp_path: Path) -> None:
    (path,) = pieces("transactions", 1, tmp_path)
    data = path.read_bytes()
    hours = Hours(tmp_path / "tables", tmp_path / "state")
    path.write_bytes(data[: len(data) // 2])
    hours.run(path)
    path.write_bytes(data)
    with pytest.raises(UsageError, match="has grown since it was read"):
        hours.run(path)


def test_what_cannot_be_read_is_told_once(in_process: None, tmp_path: Path) -> None:
    paths = pieces("transactions", 2, tmp_path)
    broken = tmp_path / "whole" / "zz.pcap"
    broken.write_bytes(b"no capture at all, whatever it is called")
    hours = Hours(tmp_path / "tables", tmp_path / "state")
    for path in paths:
        hours.run([path, broken], finish=path == paths[-1])
    assert written(tmp_path / "tables") == followed(*paths, broken)


def test_bytes_of_a_state_that_are_not_those_that_were_left_are_refused(
    in_process: None, tmp_path: Path
) -> None:
    paths = pieces("transactions", 3, tmp_path)
    hours = Hours(tmp_path / "tables", tmp_path / "state", num_buckets=1)
    hours.run(paths[0])
    files = {file.suffix: file for file in (tmp_path / "state").rglob("*.*")}
    assert {*files} == {".state", ".json", ".timelines"}
    for file in files.values():
        data = file.read_bytes()
        for wrong in (data[:-1] + b"x", b""):
            file.write_bytes(wrong)
            with pytest.raises(OutputError, match="is damaged"):
                hours.run(paths[1])
        file.write_bytes(data)
    files[".state"].unlink()
    with pytest.raises(OutputError, match="is missing"):
        hours.run(paths[1])


def test_a_state_of_another_version_is_refused(tmp_path: Path) -> None:
    folder = StateFolder(Place(str(tmp_path)), "run")
    for version in (0, 2):
        said = folder.save(State({}, version=version), "commit")
        with pytest.raises(UsageError, match="another version of kwsniff"):
            folder.load(said, "tables")
    assert folder.load(folder.save(State({}), "commit"), "tables").version == 1


def test_a_folder_of_states_is_for_its_owner_only(in_process: None, tmp_path: Path) -> None:
    (path,) = pieces("transactions", 1, tmp_path)
    Hours(tmp_path / "tables", tmp_path / "state").run(path)
    (folder,) = (tmp_path / "state").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_runs_with_and_without_a_state_do_not_mix(in_process: None, tmp_path: Path) -> None:
    paths = pieces("transactions", 2, tmp_path)
    spark: Any = object()
    for first in (True, False):
        output = tmp_path / f"tables{first}"
        hours = Hours(output, tmp_path / "state")
        if first:
            hours.run(paths[0])
            with pytest.raises(UsageError, match="runs with --state; give it"):
                run_pipeline(paths[1], output, spark=spark, tables=FOLLOWED, mode="append")
        else:
            run_pipeline(paths[0], output, spark=spark, tables=FOLLOWED, mode="append")
            with pytest.raises(UsageError, match="runs without --state"):
                hours.run(paths[1])


def test_other_options_than_those_of_the_first_run_are_refused(in_process: None, tmp_path: Path) -> None:
    paths = pieces("transactions", 2, tmp_path)
    Hours(tmp_path / "tables", tmp_path / "state", num_buckets=2).run(paths[0])
    with pytest.raises(UsageError, match="begun with other ports, limits"):
        Hours(tmp_path / "tables", tmp_path / "state", num_buckets=3).run(paths[1])
    with pytest.raises(UsageError, match="continue from another --state"):
        Hours(tmp_path / "tables", tmp_path / "other").run(paths[1])
    Hours(tmp_path / "tables", tmp_path / "state", num_buckets=None).run(paths[1], finish=True)
    with pytest.raises(UsageError, match="is complete after --finish"):
        Hours(tmp_path / "tables", tmp_path / "state").run(paths[1])


def test_captures_of_several_places_are_refused(in_process: None, tmp_path: Path) -> None:
    """The same packets at two places, with clocks of their own."""
    (path,) = pieces("transactions", 1, tmp_path)
    data = path.read_bytes()
    other = tmp_path / "other.pcap"
    late = b"".join(
        struct.pack("<I", struct.unpack_from("<I", each)[0] + 1) + each[4:] for each in records(data)
    )
    other.write_bytes(data[:24] + late)
    with pytest.raises(UsageError, match="captures of one place"):
        Hours(tmp_path / "tables", tmp_path / "state").run([path, other])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["x.pcap", "--state", "s"], "add --mode append"),
        (["x.pcap", "--state", "s", "--mode", "append", "--again"], "omit --again"),
        (["x.pcap", "--state", "s", "--mode", "append", "--table", "talkers"], "add it to --table"),
        (["x.pcap", "--finish"], "--finish needs --stream DIR or --state DIR"),
        (["--stream", ".", "--state", "s"], "omit --state"),
    ],
)
def test_bad_usage_is_one_line(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kwsniff.spark.session.start_session", lambda *_: object())
    assert run(["pipeline", *arguments, "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.count("\n") == 1


def test_the_command_says_what_it_passes_over(
    in_process: None, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwsniff.spark.session.start_session", lambda *_: object())
    (path,) = pieces("transactions", 1, tmp_path)
    command = ["pipeline", str(path), "-o", str(tmp_path / "out"), "--mode", "append"]
    command += ["--state", str(tmp_path / "state"), "--table", "api_calls,captures", "--keep-old", "1h"]
    assert run(command) == 0
    assert "api_calls" in capsys.readouterr().out
    assert run(command) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "kwsniff: note: 1 capture of earlier runs passed over\n"
    assert run([*command[:-1], "soon"]) == 2
    assert "--keep-old soon: give a duration" in capsys.readouterr().err
