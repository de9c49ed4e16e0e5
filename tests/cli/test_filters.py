"""Filters choose the same calls for every verb: what show prints is what analyze and slice take."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.cli import main
from kwsniff.filter.rows_of_calls import TABLES_OF_CALLS

CAPTURES = Path(__file__).parents[2] / "captures"
FIRST_STEPS = str(CAPTURES / "first_steps" / "capture.pcap")
THROTTLED = str(next((CAPTURES / "throttled").glob("capture.pcap*")))

FILTERS = [
    (FIRST_STEPS, "--error any"),
    (FIRST_STEPS, "--api produce --api fetch"),
    (FIRST_STEPS, "--client billing"),
    (FIRST_STEPS, "--topic orders"),
    (FIRST_STEPS, "--where 'group_id = billing'"),
    (FIRST_STEPS, "--client billing --where 'api_name = Fetch or error_code != 0'"),
    (FIRST_STEPS, "--where 'error in (NOT_LEADER_OR_FOLLOWER, 3) and topic is not null'"),
    (FIRST_STEPS, "--where 'request_time > +1s and request_bytes < 100B'"),
    (FIRST_STEPS, "--call 20000"),
    (THROTTLED, "--where 'latency >= 100ms'"),
    (FIRST_STEPS, "--connection 1"),
]


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> set[int]:
    assert main.run(["show", *words, "--json"]) == 0
    return {json.loads(line)["call_id"] for line in capsys.readouterr().out.splitlines()}


@pytest.mark.sample(4)
@pytest.mark.parametrize(("capture", "words"), FILTERS, ids=[words for _, words in FILTERS])
def test_the_tables_hold_the_calls_that_show_shows(
    capture: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = shown(capsys, capture, *shlex.split(words))
    assert main.run(["analyze", capture, *shlex.split(words), "-o", str(tmp_path), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    whole = kwsniff.analyze(capture)
    assert len(wanted) < whole.api_calls.num_rows
    assert {path.stem for path in tmp_path.glob("*.parquet")} == set(TABLES_OF_CALLS)
    assert sum(each["calls"] for each in summary["calls"]) == len(wanted)
    connections = {row["connection_id"] for row in rows(whole.api_calls) if row["call_id"] in wanted}
    for name in set(TABLES_OF_CALLS) - {"captures"}:
        found = rows(pq.ParquetFile(tmp_path / f"{name}.parquet").read())
        key, values = (
            ("connection_id", connections)
            if name in ("connections", "anomalies", "tcp_events")
            else ("call_id", wanted)
        )
        assert found == [row for row in rows(whole.table(name)) if row[key] in values], name


def rows(table: Any) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "run_id"} for row in table.to_pylist()]


def test_no_call_that_fits_is_exit_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["analyze", FIRST_STEPS, "--client", "nobody", "-o", str(tmp_path / "out")]) == 1
    assert pq.ParquetFile(tmp_path / "out" / "api_calls.parquet").metadata.num_rows == 0


def test_a_table_of_many_calls_together_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["analyze", FIRST_STEPS, "--client", "shop", "--table", "groups"]) == 2
    assert "groups is not made of chosen calls" in capsys.readouterr().err


def test_a_pipe_cannot_be_read_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["analyze", "-", "--client", "shop"]) == 2
    assert capsys.readouterr().err == (
        "kwsniff: error: -: a pipe cannot be read twice, as these filters need; write it to a file first\n"
    )


def test_slice_takes_standard_input(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "kwsniff", "slice"]
    both: dict[str, bytes] = {}
    for name in ("-", FIRST_STEPS):
        output = tmp_path / f"{len(both)}.pcapng"
        with Path(FIRST_STEPS).open("rb") as capture:
            done = subprocess.run(
                [*words, name, "--error", "any", "-o", str(output)],
                stdin=capture,
                capture_output=True,
                text=True,
                check=True,
            )
        assert done.stderr == ""
        both[name] = output.read_bytes()
    assert both["-"] == both[FIRST_STEPS]
    shutil.rmtree(tmp_path)
