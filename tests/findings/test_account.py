"""Every call and connection is fine, routine, explained or unexplained, and the numbers add up."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.cli import main
from kwsniff.findings.evaluate import columns_of
from tests.findings.account import CAPTURES, Account, read_account
from tests.findings.conftest import AccountOf, FindingsOf, TablesOf, without_run
from tests.findings.measured import Recording, recordings
from tests.findings.stage import Stage
from tests.findings.test_unexplained import _given_up, _late

pytestmark = pytest.mark.sample_tests(4)

RECORDED = {(each.name, each.place): each for each in recordings()}
KILLED = CAPTURES / "killed_broker" / "capture.pcap"


@pytest.mark.sample(1)
@pytest.mark.parametrize("recording", RECORDED.values(), ids=lambda each: f"{each.name}-{each.place}")
def test_the_account_adds_up(recording: Recording, account_of: AccountOf, findings_of: FindingsOf) -> None:
    """Its findings, of all rules, are those that `analyze` has by figures made in passing."""
    account = account_of(recording.path)
    assert [*account.faults()] == []
    assert [columns_of(each) for each in account.findings] == without_run(findings_of(recording.path))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "recording",
    [each for each in RECORDED.values() if each.name.startswith("healthy")],
    ids=lambda each: f"{each.name}-{each.place}",
)
def test_healthy_recordings_have_no_harm(recording: Recording, account_of: AccountOf) -> None:
    account = account_of(recording.path)
    if recording.name.startswith("healthy_restart"):
        # a broker that stops may leave one call without a response
        assert account.harmed <= 2
    else:
        assert account.harmed == 0


def _why(capture: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    main.run(["why", str(capture), *options])
    return capsys.readouterr().out


def test_harm_that_no_rule_explains_is_counted_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The broker was killed while one Produce waited; it came again (captures/killed_broker/about.toml)."""
    told: dict[str, Any] = json.loads(_why(KILLED, capsys, "--json"))
    assert told["account"]["unexplained"] == 2
    assert told["account"]["calls"] == 33
    assert told["connections"]["unexplained"] == 1
    shown = _why(KILLED, capsys)
    assert "2 harmed without an explanation" in shown
    assert shown.startswith("No rule explains the harm in 33 calls")


@pytest.mark.slow
def test_analyze_and_the_page_do_not_hide_harm_that_no_rule_explains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main.run(["analyze", str(KILLED)])
    shown = capsys.readouterr().out
    assert "No rule explains the harm" in shown
    assert "No findings" not in shown
    main.run(["why", str(KILLED), "--html", str(tmp_path / "page.html")])
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "No rule explains the harm" in page
    assert "No findings" not in page


def test_the_account_is_there_where_nothing_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    capture = CAPTURES / "field" / "h_scale_up.pcap"
    account = json.loads(_why(capture, capsys, "--json"))["account"]
    assert account["explained"] == {}
    assert account["unexplained"] == 0
    assert account["fine"] + sum(account["routine"].values()) == account["calls"] == 563
    shown = _why(capture, capsys)
    assert "563 calls: " in shown
    assert shown.startswith("No finding in 563 calls")


def test_calls_of_a_finding_count_as_explained(tables_of: TablesOf) -> None:
    account = read_account(tables_of(CAPTURES / "incidents" / "metadata_storm_java" / "broker.pcap"))
    asked = {each.finding: each.calls for each in account.findings}["metadata_storm"]
    assert account.calls["explained"] == {"metadata_storm": asked}


def _of_stage(stage: Stage, folder: Path) -> Account:
    kwsniff.analyze(stage.write(), output=folder / "tables")
    return read_account(folder / "tables")


@pytest.mark.sample(1)
@pytest.mark.parametrize(("late", "milliseconds", "harmed"), [(1, 1500, 1), (2, 1500, 2), (2, 900, 0)])
def test_few_late_calls_are_a_fact_and_no_warning(
    late: int, milliseconds: int, harmed: int, tmp_path: Path
) -> None:
    account = _of_stage(_late(tmp_path, late=late, milliseconds=milliseconds), tmp_path)
    assert account.is_quiet
    assert account.calls["unexplained"] == harmed
    found = [(each.severity, each.calls) for each in account.findings if each.finding == "unexplained"]
    assert found == [("info", harmed)] * (harmed > 0)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("seconds", "harmed"), [(9, 1), (1, 0)])
def test_a_client_that_gives_up_was_harmed(seconds: float, harmed: int, tmp_path: Path) -> None:
    account = _of_stage(_given_up(tmp_path, seconds=seconds), tmp_path)
    assert account.harmed == harmed
    assert account.calls["routine"].get("closed_while_waiting", 0) == 1 - harmed


@pytest.mark.slow
def test_runs_in_one_folder_add_up_although_their_calls_have_the_same_ids(
    tables_of: TablesOf, tmp_path: Path
) -> None:
    names = ("metadata_storm_java/broker.pcap", "backend_down/client.pcap")
    folders = [tables_of(CAPTURES / "incidents" / name) for name in names]
    for number, folder in enumerate(folders):
        for file in folder.glob("*.parquet"):
            (tmp_path / file.stem).mkdir(exist_ok=True)
            shutil.copy(file, tmp_path / file.stem / f"{number}.parquet")
    both, *each = map(read_account, (tmp_path, *folders))
    assert [*both.faults()] == []
    assert both.calls["calls"] == sum(one.calls["calls"] for one in each)
    for one in each:
        assert one.calls["explained"].items() <= both.calls["explained"].items()
