"""Filters of `kwsniff live`: of a replayed file, the calls that `kwsniff show` shows and their rows."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import kwsniff
from kwsniff.filter.parser import parse_filter
from kwsniff.filter.rows_of_calls import TABLES_OF_CALLS
from kwsniff.live.filtered_rows import FilteredRows, _remember
from kwsniff.tables.schema import TABLES, coded_schema
from kwsniff.timelines.waits.pending_rows import UNSETTLED

from .running import PATIENCE_S, ROOT

FIRST_STEPS = str(ROOT / "captures" / "first_steps" / "capture.pcap")
FILTERS = [
    "--error any", "--error 3", "--error 0 --api produce", "--api produce --api fetch", "--client billing",
    "--client 127.0.0.1:43882", "--call 20000", "--connection 11", "--status answered",
    "--connection 127.0.0.1:9092", "--where 'latency >= 10ms'",
    "--where 'request_time > +1s and topic = orders'", "--client BILL --api fetch",
    "--client-is billing-1",
]  # fmt: skip


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kwsniff", *words],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip


def numbers(*words: str) -> list[int]:
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    return sorted({json.loads(line)["call_id"] for line in done.stdout.splitlines()})


@pytest.mark.sample(2)
@pytest.mark.parametrize("words", FILTERS)
def test_the_calls_are_those_of_show(words: str) -> None:
    wanted = numbers("show", FIRST_STEPS, *shlex.split(words))
    assert wanted
    assert numbers("live", "-i", FIRST_STEPS, "--speed", "max", *shlex.split(words)) == wanted


def test_groups_and_topics_are_what_the_columns_say() -> None:
    """What stands in a bytes field (the topics of a JoinGroup) is in no row."""
    rows = kwsniff.analyze(FIRST_STEPS).api_calls.to_pylist()
    live = ("live", "-i", FIRST_STEPS, "--speed", "max")
    wanted = sorted(row["call_id"] for row in rows if row["group_id"] == "billing")
    assert numbers(*live, "--where", "group_id = billing") == wanted
    wanted = sorted(row["call_id"] for row in rows if "orders" in (row["topics"] or ()))
    assert numbers(*live, "--topic", "orders") == wanted


def test_tables_hold_what_belongs_to_the_calls(tmp_path: Path) -> None:
    done = run("live", "-i", FIRST_STEPS, "--speed", "max", "--error", "any", "--lines", "-o", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "6 calls in 146 packets" in done.stderr
    found, whole = kwsniff.open(tmp_path), kwsniff.analyze(FIRST_STEPS)
    wanted = {row["call_id"] for row in whole.api_calls.to_pylist() if row["error_count"]}
    connections = {row["connection_id"] for row in whole.api_calls.to_pylist() if row["call_id"] in wanted}
    assert set(found.names) <= set(TABLES_OF_CALLS)
    assert set(found.api_calls["call_id"].to_pylist()) == wanted
    assert set(found.latencies["call_id"].to_pylist()) == wanted
    assert set(found.error_codes["call_id"].to_pylist()) == wanted
    assert set(found.connections["connection_id"].to_pylist()) == connections


def test_lines_count_and_name_only_the_calls_that_fit() -> None:
    done = run("live", "-i", FIRST_STEPS, "--speed", "max", "--json", "--lines", "--client", "billing")
    last = json.loads(done.stdout.splitlines()[-1])
    assert {row["client_id"] for row in last["errors_by_client"]} == {"billing-1"}


def test_a_table_of_many_calls_together_is_refused(tmp_path: Path) -> None:
    done = run("live", "-i", FIRST_STEPS, "--client", "x", "-o", str(tmp_path), "--table", "groups")
    assert done.returncode == 2
    assert "groups is not made of chosen calls" in done.stderr


def test_a_filter_that_is_none_is_one_line() -> None:
    done = run("live", "-i", FIRST_STEPS, "--api", "fetsh")
    assert done.returncode == 2
    assert "did you mean Fetch" in done.stderr


def test_rows_that_come_later_than_their_call_are_there(tmp_path: Path) -> None:
    """Rows of latencies wait for what other connections may prove; a filter that every call fits leaves none
    out."""
    capture = str(ROOT / "captures" / "group_consumer" / "capture.pcap")
    done = run(
        "live", "-i", capture, "--speed", "max", "--where", "latency >= 0ms", "--lines", "-o", str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    assert {row["call_id"] for row in kwsniff.open(tmp_path).latencies.to_pylist()} == {
        row["call_id"] for row in kwsniff.analyze(capture).latencies.to_pylist()
    }


def test_a_call_is_remembered_until_its_later_row_comes() -> None:
    chosen = FilteredRows(parse_filter("call_id > 0"), lambda: None)
    calls = pa.RecordBatch.from_pylist(
        [{"call_id": 7, "connection_id": 1, "api_key": 1}], coded_schema(TABLES["api_calls"])
    )
    later = pa.RecordBatch.from_pylist([{"call_id": 7}, {"call_id": 8}])
    assert [*chosen.select({"api_calls": calls})] == ["api_calls"]
    assert chosen.select({"latencies": later})["latencies"]["call_id"].to_pylist() == [7]
    assert chosen.select({UNSETTLED: later})[UNSETTLED]["call_id"].to_pylist() == [7]


def test_what_is_remembered_is_bounded() -> None:
    latest: dict[int, None] = {}
    _remember(latest, [*range(15), 7], 10)
    assert [*latest] == [5, 6, 8, 9, 10, 11, 12, 13, 14, 7]
