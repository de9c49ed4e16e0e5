"""A capture that has every connection at two places says the same as one that has it at one."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kwsniff.analysis.analyze import analyze
from kwsniff.cli.main import run
from kwsniff.cli.summary.summary import show_summary
from tests.traffic.nat import with_nat_twin, without_twin

pytestmark = pytest.mark.sample_tests(4)

ROOT = Path(__file__).parents[2] / "captures"
SHOWN = ("first_steps", "group_classic", "rebalance", "transactions", "compression", "refusals")
"""Errors, groups, rebalances, transactions and commits, batches, findings."""
TIMELINES = (
    *("groups", "members", "transactions", "commits", "deliveries", "brokers", "leaders"),
    *("api_ranges", "clients", "servers"),
)
# What names packets and calls by number; the same packets have others where each was captured twice.
NUMBERED = ("frames", "call_ids", "command", "display_filters")
PLACES = {"run_id", "capture", "captures", "connection_id", "frame"}
Folders = tuple[Path, Path]


@pytest.fixture(scope="session")
def folders_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Folders]:
    @cache
    def make(recording: str) -> Folders:
        made = tmp_path_factory.mktemp(recording)
        (path,) = (ROOT / recording).glob("capture.pcap*")
        for name, packets_of in (("once", without_twin), ("twice", with_nat_twin)):
            (made / f"{name}.pcap").write_bytes(packets_of(path))
            analyze(made / f"{name}.pcap", output=made / name)
        return made / "once", made / "twice"

    return make


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in SHOWN])
def folders(request: pytest.FixtureRequest, folders_of: Callable[[str], Folders]) -> Folders:
    """Captures and their tables, without and with twins. One process has all tests of a recording."""
    return folders_of(request.param)


def plain(value: Any) -> Any:
    """Without places in captures, which differ."""
    if isinstance(value, dict):
        return {
            key: plain(each)
            for key, each in value.items()
            if key not in PLACES and not key.endswith(("_frame", "frames", "call_id", "call_ids"))
        }
    return [plain(each) for each in value] if isinstance(value, list) else value


def rows(folder: Path, table: str) -> list[Any]:
    import pyarrow.parquet as pq

    return sorted(map(repr, plain(pq.ParquetFile(folder / f"{table}.parquet").read().to_pylist())))


@pytest.mark.sample(2)
@pytest.mark.parametrize("table", TIMELINES)
def test_tables_of_what_happened_over_several_calls(folders: Folders, table: str) -> None:
    once, twice = folders
    assert rows(once, table) == rows(twice, table)


@pytest.mark.sample(1)
def test_every_connection_has_its_twin_and_the_time_between(folders: Folders) -> None:
    import pyarrow.parquet as pq

    once, twice = (pq.ParquetFile(folder / "connections.parquet").read().to_pylist() for folder in folders)
    twins = [row for row in twice if row["twin_of"] is not None]
    assert len(twice) == 2 * len(once)
    assert len(twins) == len(once)
    assert {row["client_address"][:7] for row in twins} == {"198.18."}
    assert {row["twin_delay_ns"] for row in twins if row["handshake"]} == {40_000}
    assert {row["twin_delay_ns"] for row in twins if not row["handshake"]} <= {None}
    assert {row["twin_delay_ns"] for row in once} == {None}


@cache
def summary_of(folder: Path) -> dict[str, Any]:
    return analyze(folder.with_suffix(".pcap")).summary


def summaries(folders: Folders) -> list[dict[str, Any]]:
    return [deepcopy(summary_of(folder)) for folder in folders]


@pytest.mark.sample(1)
def test_summaries(folders: Folders) -> None:
    once, twice = summaries(folders)
    assert twice["twins"] == {"left_out": twice["rows"]["connections"] // 2, "counted": 0}
    found = [
        [plain(row) for row in each["findings"] if row["finding"] != "captured_twice"]
        for each in (once, twice)
    ]
    assert sorted(map(told, found[0])) == sorted(map(told, found[1]))
    for each in (once, twice):
        for name in ("rows", "captures", "tables", "twins", "findings"):
            del each[name]
    assert once == twice


def told(finding: dict[str, Any]) -> str:
    """Without the calls that prove it, of which there is a number of others."""
    return repr({key: value for key, value in finding.items() if key not in NUMBERED})


@pytest.mark.slow
def test_what_is_on_the_screen(folders: Folders) -> None:
    shown = []
    for summary in summaries(folders):
        out = io.StringIO()
        summary["findings"] = []
        show_summary(summary, out, top=100)
        lines = out.getvalue().splitlines()
        shown.append([line for line in lines if not line.startswith((str(folders[0].parent), "  payload"))])
    (more,) = [line for line in shown[1] if "captured at a second point" in line]
    shown[1].remove(more)
    assert shown[0] == shown[1]


def said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    run(arguments)
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("verb", ["why", "upgrade"])
def test_verbs(folders: Folders, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["4.3.1"] if verb == "upgrade" else []
    once, twice = (plain(said([verb, *more, str(folder), "--json"], capsys)) for folder in folders)
    if verb == "why":
        for each in (once, twice):
            each["findings"] = sorted(
                map(told, (f for f in each["findings"] if f["finding"] != "captured_twice"))
            )
    assert once == twice


@pytest.mark.sample(1)
def test_nothing_is_different(folders: Folders, capsys: pytest.CaptureFixture[str]) -> None:
    """compare: the same traffic on both sides."""
    once, twice = folders
    assert said(["compare", str(once), str(twice), "--json"], capsys)["differences"] == []


QUESTIONS = ("client_versions", "compression", "consumer_lag", "errors", "slow_producers", "network")


@pytest.mark.sample(1)
@pytest.mark.parametrize("question", QUESTIONS)
def test_questions(folders: Folders, question: str, capsys: pytest.CaptureFixture[str]) -> None:
    answers = []
    for folder in folders:
        run(["sql", str(folder), "--question", question, "--format", "csv"])
        answers.append(sorted(capsys.readouterr().out.splitlines()))
    assert answers[0] == answers[1]


@pytest.mark.sample(1)
def test_charts(folders: Folders) -> None:
    """The calls of twins are in no figure of the report."""
    from kwsniff.findings.context import describe_basis
    from kwsniff.findings.views import open_folder

    counts = []
    for folder in folders:
        database = open_folder(folder)
        counts.append(
            [
                database.execute(f"select count(*) from {view}").fetchall()  # noqa: S608
                for view in ("call", "latency", "refusal", "partition_call", "batch", "connection")
            ]
        )
        assert describe_basis(database)
    assert counts[0] == counts[1]


@pytest.mark.sample(1)
def test_standard_input_is_read_once(folders: Folders) -> None:
    """What cannot be read again is counted with its twins, and says so."""
    with folders[1].with_suffix(".pcap").open("rb") as capture:
        done = subprocess.run(
            [sys.executable, "-c", "from kwsniff.cli.main import run; run()", "analyze", "-", "--json"],
            stdin=capture,
            capture_output=True,
            check=True,
        )
    summary = json.loads(done.stdout)
    assert summary["twins"] == {"left_out": 0, "counted": summary["rows"]["connections"] // 2}
