"""Every call and connection that a finding explains is in `finding_calls`, not only the first twenty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.findings import evaluate as evaluation
from kwsniff.findings.evaluate import evaluate
from kwsniff.findings.finding_rows import find_in_files
from kwsniff.findings.prefilter.figures import figures_of
from kwsniff.findings.views import open_folder
from kwsniff.tables.stored_files import files_of_tables
from tests.findings.conftest import TablesOf
from tests.house.tree import ROOT

INCIDENTS = ROOT / "captures" / "incidents"


def _number(found: kwsniff.Analysis, name: str) -> int:
    (number,) = [row["finding_id"] for row in found.findings.to_pylist() if row["finding"] == name]
    return int(number)


def _explained(found: kwsniff.Analysis, name: str) -> tuple[set[int], set[int]]:
    """Calls and connections of the only finding of a name."""
    rows = [row for row in found.finding_calls.to_pylist() if row["finding_id"] == _number(found, name)]
    calls = {row["call_id"] for row in rows if row["call_id"] is not None}
    return calls, {row["connection_id"] for row in rows}


@pytest.mark.slow
def test_findings_are_the_same_where_their_calls_are_not_wanted(tables_of: TablesOf) -> None:
    folder = tables_of(INCIDENTS / "wrong_topic_java" / "broker.pcap")
    found = find_in_files(files_of_tables(folder))
    with open_folder(folder) as database:
        assert found == evaluate(database)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["keep_small", "keep_harm"])
def test_where_harm_cannot_be_kept_the_last_rule_is_named_or_asked(
    name: str, tables_of: TablesOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB may lack memory once; what is found then is complete, or says that it is not."""
    usual: Callable[..., None] = getattr(evaluation, name)
    asked: list[int] = []

    def fail_once(*arguments: object) -> None:
        asked.append(1)
        if len(asked) == 1:
            raise duckdb.OutOfMemoryException("failed to allocate")
        usual(*arguments)

    folder = tables_of(INCIDENTS.parent / "killed_broker" / "capture.pcap")  # complete: others read it, too
    monkeypatch.setattr(evaluation, name, fail_once)
    rules = figures_of(files_of_tables(folder)).worth_asking()
    with open_folder(folder) as database:
        found = {each.finding for each in evaluate(database, rules=rules)}
    assert asked
    assert {"unexplained", "findings_incomplete"} & found


def test_a_storm_explains_each_call_of_its_kind() -> None:
    found = kwsniff.analyze(INCIDENTS / "metadata_storm_franz" / "broker.pcap")
    asked = {
        row["call_id"]
        for row in found.api_calls.to_pylist()
        if row["client_id"] == "go-dashboard" and row["api_name"] == "Metadata"
    }
    assert len(asked) > 20
    assert _explained(found, "metadata_storm")[0] == asked


def test_closed_connections_are_explained_with_their_calls() -> None:
    found = kwsniff.analyze(INCIDENTS / "churn_kafkajs" / "broker.pcap")
    own = {row["connection_id"] for row in found.connections.to_pylist() if row["client_id"] == "js-webshop"}
    calls, connections = _explained(found, "connection_churn")
    assert len(connections) > 20
    assert connections <= own
    assert calls == {
        row["call_id"] for row in found.api_calls.to_pylist() if row["connection_id"] in connections
    }


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("capture", "finding"),
    [
        ("broker_stalled/client.pcap", "broker_stalled"),
        ("link_full_java/client.pcap", "link_full"),
        ("nagle_stall/client.pcap", "nagle_stall"),
        ("window_of_the_broker/broker.pcap", "window_limited"),
        ("metadata_storm_java/broker.pcap", "metadata_storm"),
        ("sasl_mechanism_refused/broker.pcap", "connection_churn"),
        ("receiver_full/client.pcap", "receiver_full"),
    ],
)
def test_as_many_are_listed_as_the_rule_counted(capture: str, finding: str) -> None:
    found = kwsniff.analyze(INCIDENTS / capture)
    (row,) = [row for row in found.findings.to_pylist() if row["finding"] == finding]
    calls, _ = _explained(found, finding)
    assert len(calls) == row["calls"]
    assert calls >= set(row["call_ids"])


def test_files_and_memory_have_the_same(tables_of: TablesOf) -> None:
    capture = INCIDENTS / "backend_down" / "client.pcap"
    folder = tables_of(capture)
    written = pq.read_table(folder / "finding_calls.parquet").drop_columns(["run_id"])
    assert written.equals(kwsniff.analyze(capture).finding_calls.drop_columns(["run_id"]))
    findings = pq.read_table(folder / "findings.parquet")["finding_id"].to_pylist()
    assert findings == [*range(1, len(findings) + 1)]
    assert set(written["finding_id"].to_pylist()) <= set(findings)
    keys = Counter(tuple(row.values()) for row in written.to_pylist())
    assert set(keys.values()) == {1}


def test_the_table_alone_can_be_asked_for(tmp_path: Path) -> None:
    capture = INCIDENTS / "throttled" / "broker.pcap"
    found = kwsniff.analyze(capture, output=tmp_path, tables=["finding_calls"])
    assert [*found.paths] == ["finding_calls"]
    assert found.finding_calls.num_rows == kwsniff.analyze(capture).finding_calls.num_rows > 0
