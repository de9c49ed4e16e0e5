"""`kwsniff.why` and `kwsniff.sql`: what the verbs print, as Python objects."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import kwsniff
from kwsniff.cli.main import run
from kwsniff.findings import finding_calls

pytestmark = pytest.mark.sample_tests(4)

CAPTURE = Path(__file__).parents[2] / "captures" / "incidents" / "broker_stalled" / "broker.pcap"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("out")
    kwsniff.analyze(CAPTURE, output=place)
    return place


def test_findings_are_those_of_the_verb(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", str(CAPTURE), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    for source in (CAPTURE, folder, io.BytesIO(CAPTURE.read_bytes())):
        found = kwsniff.why(source)
        assert [each.text for each in found] == [each["text"] for each in told["findings"]]
        assert (found.account, found.connections) == (told["account"], told["connections"])
        assert list(found.not_seen) == told["not_seen"]
    rows = found.to_pandas()
    assert rows["finding"].tolist() == [each["finding"] for each in told["findings"]]
    assert found[0].finding == "broker_stalled"
    assert [each.finding for each in found[1:]] == rows["finding"].tolist()[1:]
    assert repr(found).splitlines()[0].startswith("problem: broker_stalled: Broker 10.88.0.1:9092 ")


def test_only_chosen_calls_are_judged(folder: Path) -> None:
    for source in (CAPTURE, folder):
        found = kwsniff.why(source, where="api_name = 'Heartbeat'")
        assert found.account is not None
        assert found.account["calls"] == found.account["fine"] > 0
        assert repr(found) == f"no findings in {found.account['calls']} calls"
    part, whole = kwsniff.why(CAPTURE, until="+2s").account, kwsniff.why(CAPTURE).account
    assert part is not None
    assert whole is not None
    assert part["calls"] < whole["calls"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", ["why", "compare", "Python"])
def test_where_memory_lacks_for_the_account_findings_are_still_there(
    how: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """DuckDB raises this class; the account is then unknown."""

    class OutOfMemoryException(Exception):
        pass

    def refuse(*_: object) -> None:
        raise OutOfMemoryException

    monkeypatch.setattr(finding_calls, "_add_up", refuse)
    if how == "Python":
        found = kwsniff.why(folder)
        assert found.account is None
        assert found[0].finding == "broker_stalled"
    elif how == "why":
        assert run(["why", str(folder)]) == 1
        assert "PROBLEM broker_stalled" in capsys.readouterr().out
    else:
        assert run(["compare", str(folder), str(folder), "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["bad"]["harmed"] is None
        assert [each["finding"] for each in answer["bad"]["findings"]] == ["broker_stalled"]


def test_a_folder_of_tables_takes_no_option_of_captures(folder: Path) -> None:
    with pytest.raises(TypeError, match="no option 'since'"):
        kwsniff.why(folder, since="+1s")


def test_a_query_gives_a_table(folder: Path) -> None:
    calls = kwsniff.open(folder).api_calls.to_pylist()
    (row,) = kwsniff.sql(folder, "select count(*) as calls from api_calls").to_pylist()
    assert row == {"calls": len(calls)}
    (row,) = kwsniff.sql(
        folder, "select count(*) as calls from api_calls", where="api_name = 'Produce'"
    ).to_pylist()
    assert row == {"calls": sum(call["api_name"] == "Produce" for call in calls)}
    assert kwsniff.sql(folder, question="client_versions").num_rows > 0


@pytest.mark.parametrize("query", ["selec 1", "", "drop table api_calls", "from nowhere"])
def test_what_is_no_query_is_one_line(folder: Path, query: str) -> None:
    with pytest.raises(kwsniff.UsageError) as failed:
        kwsniff.sql(folder, query)
    assert "\n" not in str(failed.value)


def test_either_a_query_or_a_question(folder: Path) -> None:
    with pytest.raises(TypeError, match="a query or a question"):
        kwsniff.sql(folder)
    with pytest.raises(TypeError, match="a query or a question"):
        kwsniff.sql(folder, "from api_calls", question="client_versions")
