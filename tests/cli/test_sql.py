"""``kwsniff sql``: rows out of a folder of tables, and nothing else out, in or changed."""

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

import kwsniff
from kwsniff.cli.main import DONE, FAILED, run
from kwsniff.findings.sql import load_questions
from kwsniff.tables.schema import TABLES
from tests.cli.shown import FIRST_STEPS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("it's") / "out"
    kwsniff.analyze(FIRST_STEPS, output=place)
    return str(place)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["sql", *arguments]) == DONE
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["sql", *arguments]) == FAILED
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


def test_tables_go_by_their_names(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The broker's own log has 10 Metadata and 8 ApiVersions (witness.tsv)."""
    out = told(
        capsys, folder, "select api_name, count(*) n from api_calls group by all order by n desc limit 2"
    )
    assert [line.split() for line in out.splitlines()] == [
        ["api_name", "n"],
        ["Metadata", "10"],
        ["ApiVersions", "8"],
    ]


def test_the_list_has_every_table_and_question(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, folder, "--list")
    assert out == told(capsys, folder) == told(capsys, "--list")
    words = out.split()
    assert {*TABLES, *load_questions()} <= set(words)


@pytest.mark.parametrize("name", sorted(load_questions()))
def test_every_question_can_be_asked_of_any_folder(
    name: str, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, folder, "--question", name)


def test_csv_json_and_parquet_have_the_same_rows(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "select call_id, api_name, request_time, topics, latency_ns from api_calls order by call_id"
    for form in ("csv", "json", "jsonl", "ndjson", "parquet"):
        told(capsys, folder, query, "-o", str(tmp_path / f"rows.{form}"))
    rows = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert len(rows) == 34
    answer = json.loads((tmp_path / "rows.json").read_text("utf-8"))
    assert answer["version"] == 1
    assert [each["call_id"] for each in answer["rows"]] == [each["call_id"] for each in rows]
    assert answer["rows"][0]["request_time"] == rows[0]["request_time"].isoformat()
    assert [each["topics"] for each in answer["rows"]] == [each["topics"] for each in rows]
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as lines:
        table = list(csv.DictReader(lines))
    assert [each["latency_ns"] for each in table] == [str(each["latency_ns"]) for each in rows]
    lines_of_rows = (tmp_path / "rows.jsonl").read_text("utf-8")
    assert [json.loads(line) for line in lines_of_rows.splitlines()] == answer["rows"]
    assert (tmp_path / "rows.ndjson").read_text("utf-8") == lines_of_rows
    assert len(list(tmp_path.iterdir())) == 5
    assert capsys.readouterr().out == ""


def test_columns_of_one_name_stay_two(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, folder, "select 1 as n, 2 as n", "--format", "csv")
    assert out.splitlines() == ["n,n", "1,2"]


@pytest.mark.parametrize("name", ["rows.xls", "rows", "rows.txt", "rows.csv.gz", ".csv"])
def test_an_ending_that_says_no_format_is_refused(
    name: str, folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / name
    said = refused(capsys, folder, "from api_calls", "-o", str(place))
    assert said.endswith("use .csv, .json, .jsonl, .ndjson, .parquet, or give --format")
    assert not place.exists()
    told(capsys, folder, "from api_calls", "-o", str(place), "--format", "csv")
    assert len(place.read_text("utf-8").splitlines()) == 35


_LONG = {
    "one row, hours from now": "select count(*) from range(100000000000) a, range(1000) b where a.range = -1",
    "rows without end": "select a.range, b.range from range(100000000000) a, range(1000) b",
}
_SAYS_WHEN = """
import sys
from kwsniff.cli import main
from kwsniff.findings import sql
asked = sql._reader
def ask(*given):
    print("asked", file=sys.stderr, flush=True)
    return asked(*given)
sql._reader = ask
main.main()
"""


@pytest.mark.parametrize("query", _LONG.values(), ids=list(_LONG))
@pytest.mark.parametrize("output", [None, "rows.csv", "rows.parquet"])
def test_ctrl_c_ends_a_query(query: str, output: str | None, folder: str, tmp_path: Path) -> None:
    words = ["sql", folder, query, "--format", "csv"] if output is None else ["sql", folder, query, "-o"]
    words += [] if output is None else [str(tmp_path / output)]
    command = [sys.executable, "-c", _SAYS_WHEN, *words]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
        try:
            assert process.stderr.readline() == "asked\n"
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=100)  # the query takes hours
        finally:
            process.kill()
    assert (process.returncode, err) == (130, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl", "parquet"])
def test_a_query_that_fails_on_the_way_leaves_no_file(
    suffix: str, folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Two batches of 65,536 rows are written before.
    query = "select case when i > 150000 then error('no more') else i end as i from range(200000) r(i)"
    assert "no more" in refused(capsys, folder, query, "-o", str(tmp_path / f"rows.{suffix}"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("selec 1", "syntax error"),
        ("select nope from api_calls", "nope"),
        ("from nowhere", "nowhere"),
        ("", "no query given"),
        ("select 1; select 2", "one at a time"),
    ],
)
def test_wrong_sql_is_one_line(
    query: str, says: str, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refused(capsys, folder, query)


def test_nothing_but_the_tables_can_be_read_or_written(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.csv").write_text("secret\n1\n", "utf-8")
    before = {path: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}
    table = str(next(iter(before))).replace("'", "''")
    for query in (
        f"from read_csv('{tmp_path}/other.csv')",
        f"from '{tmp_path}/other.csv'",
        f"from glob('{tmp_path}/*')",
        f"from read_text('{tmp_path}/other.csv')",
        f"copy (select 1) to '{tmp_path}/new.csv'",
        f"copy (select 1) to '{table}'",
        f"explain analyze copy (select 1) to '{table}'",
        f"attach '{tmp_path}/new.db'",
        "set enable_external_access = true",
        "reset lock_configuration",
        "install httpfs",
        "load httpfs",
        "drop view api_calls",
        "create table t as select 1",
    ):
        assert "secret" not in refused(capsys, folder, query)
    assert [path.name for path in tmp_path.iterdir()] == ["other.csv"]
    assert {path: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()} == before


def test_what_names_from_the_wire_hold_does_not_steer_the_terminal(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "\x1b" not in told(capsys, folder, "select 'a' || chr(27) || '[2J' as x")


@pytest.mark.parametrize("way", ["live", "pipeline"])
def test_folders_of_files_are_tables_too(
    way: str, folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """live: DIR/table/stamp-number.parquet; pipeline: DIR/table/date=.../part.parquet, with a column date."""
    rows = parquet.read_table(Path(folder, "api_calls.parquet"))
    inner = tmp_path / "api_calls" if way == "live" else tmp_path / "api_calls" / "date=2026-11-20"
    inner.mkdir(parents=True)
    parquet.write_table(rows.slice(0, 10), inner / "20261120T191500.000000Z-000001.parquet")
    parquet.write_table(rows.slice(10), inner / "20261120T191500.000000Z-000002.parquet")
    parquet.write_table(rows, inner / ".hidden.parquet")
    (tmp_path / "groups").mkdir()
    assert told(capsys, str(tmp_path), "select count(*) n from api_calls", "--format", "csv") == "n\n34\n"
    assert told(capsys, str(tmp_path), "select count(*) n from groups", "--format", "csv") == "n\n0\n"
    if way == "pipeline":
        query = "select distinct date from api_calls"
        assert told(capsys, str(tmp_path), query, "--format", "csv") == "date\n2026-11-20\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no such folder", "select 1"], "no such folder"),
        (["{}", "--question", "slow_producer"], "did you mean slow_producers?"),
        (["{}", "select 1", "--list"], "one of"),
        (["--question", "errors"], "give DIR"),
        (["{}", "select 1", "--format", "parquet"], "-o"),
        (["{}", "select 1", "-o", "/dev/null"], "/dev/null"),
        (["{}", "select 1", "-o", "/no such folder/x.csv"], "cannot write"),
    ],
)
def test_bad_usage_is_one_line(
    arguments: list[str], says: str, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refused(capsys, *(each.format(folder) for each in arguments))


def test_a_damaged_table_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "api_calls.parquet").write_bytes(b"PAR1 is not all")
    assert "cannot read" in refused(capsys, str(tmp_path), "from api_calls")


def test_a_folder_above_the_tables_is_told_from_one_of_them(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    above = str(Path(folder).parent)
    said = refused(capsys, above, "select 1")
    assert f"{above}: no tables in this folder; did you mean {folder}?" in said
