"""`run_id`: the same in all rows of a run, another in every run; with `call_id` it joins many runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.errors import UsageError
from kwsniff.live.files import RollingTables
from kwsniff.live.session import Session
from kwsniff.live.sniff import Sniffer
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.column import RUN
from kwsniff.tables.schema import TABLES
from tests.live.running import FileSource

CAPTURE = Path(__file__).parents[2] / "captures" / "first_steps" / "capture.pcap"


def ids(table: pa.Table) -> list[str]:
    found: list[str] = table[RUN].unique().to_pylist()
    return found


def test_every_table_ends_with_it() -> None:
    for table in (*TABLES.values(), *AGGREGATES.values()):
        assert table.columns[-1].name == RUN
        assert RUN not in {column.name for column in table.own}


@pytest.mark.parametrize("written", [False, True], ids=["in memory", "written"])
def test_all_rows_of_a_run_have_its_id_and_no_other_run_has_it(tmp_path: Path, written: bool) -> None:
    seen = []
    for number in range(2):
        options: dict[str, Any] = {"output": tmp_path / str(number)} if written else {}
        run = kwsniff.analyze(CAPTURE, **options)
        filled = [run.table(name) for name in TABLES if run.table(name).num_rows]
        assert len(filled) >= 8
        assert {each for table in filled for each in ids(table)} == {run.run_id}
        seen.append(run.run_id)
    assert seen[0] != seen[1]


def test_an_id_can_be_chosen() -> None:
    run = kwsniff.analyze(CAPTURE, run_id="day 7")
    assert ids(run.captures) == ids(run.api_calls) == ["day 7"]


@pytest.mark.parametrize("given", ["", "two\nlines", "x" * 201])
def test_an_id_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="printable characters"):
        kwsniff.analyze(CAPTURE, run_id=given)


def test_a_sniffer_has_one(tmp_path: Path) -> None:
    with Sniffer(Session(FileSource(CAPTURE)), interval=0.1, duration=None, stop_after=None) as sniffer:
        tables = [table for step in sniffer for table in step.values()]
    assert tables
    assert {each for table in tables for each in ids(table)} == {sniffer.run_id}


def test_runs_in_one_folder_join_exactly(tmp_path: Path) -> None:
    """Their ids of calls are the same ones; by these alone rows come out that never were."""
    for _ in range(2):
        with (
            Session(FileSource(CAPTURE)) as session,
            RollingTables(tmp_path, tuple(TABLES)) as files,
        ):
            session.wait(60)
            files.write(session.drain())
            files.close_files()
            files.write(session.finish())
            files.finish()
    kwsniff.analyze(CAPTURE, output=tmp_path / "analyzed")
    for name in ("api_calls", "latencies"):
        (tmp_path / "analyzed" / f"{name}.parquet").rename(tmp_path / name / "analyzed.parquet")
    one = kwsniff.analyze(CAPTURE).latencies.num_rows
    with duckdb.connect() as database:
        calls, latencies = (
            f"read_parquet('{tmp_path / name}/*.parquet')" for name in ("api_calls", "latencies")
        )
        joined = f"from {calls} a join {latencies} l using"
        exact = database.execute(
            f"select count(*), count(distinct run_id) {joined} (run_id, call_id)"
        ).fetchone()
        wrong = database.execute(f"select count(*) {joined} (call_id)").fetchone()
        different = "where a.latency_ns is distinct from l.total_ns"
        apart = database.execute(f"select count(*) {joined} (run_id, call_id) {different}").fetchone()
    assert exact == (3 * one, 3)
    assert apart == (0,)
    assert wrong is not None
    assert wrong[0] > 3 * one


def test_it_costs_a_few_bytes_per_row_group(tmp_path: Path) -> None:
    path = kwsniff.analyze(CAPTURE, output=tmp_path).paths["api_calls"]
    group = pq.read_metadata(path).row_group(0)
    (column,) = (group.column(n) for n in range(group.num_columns) if group.column(n).path_in_schema == RUN)
    assert column.total_compressed_size < 200
    assert column.statistics.min == column.statistics.max == ids(pq.read_table(path))[0]
