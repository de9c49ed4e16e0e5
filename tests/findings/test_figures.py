"""Figures decide which rules are asked, never what is found."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.findings.client_settings import queries_of_settings
from kwsniff.findings.evaluate import TOTAL, columns_of, evaluate
from kwsniff.findings.finding_rows import find_in_files
from kwsniff.findings.prefilter import client_rates, partition_volumes
from kwsniff.findings.prefilter.call_rates import CallRates
from kwsniff.findings.prefilter.figures import Figures, figures_of
from kwsniff.findings.rule import Rule, load_gates, load_rules, rules_behind
from kwsniff.findings.views import open_folder, open_for
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.schema import TABLES
from kwsniff.tables.stored_files import files_of_tables
from tests.findings.conftest import AccountOf, FindingsOf, without_run
from tests.findings.scripted import find, lags, table_of
from tests.house.tree import ROOT
from tests.perf.loads import SMALL_PERIOD, Offsets, mixed, rounds, small
from tests.perf.repeat import write
from tests.traffic.exchange import Exchange

pytestmark = pytest.mark.sample_tests(8)

INCIDENTS = ROOT / "captures" / "incidents"
RECORDINGS = [
    about.parent / file
    for about in sorted(INCIDENTS.glob("*/about.toml"))
    for file in tomllib.loads(about.read_text("utf-8"))["files"].values()
]


def _tables(capture: Path, folder: Path) -> dict[str, list[str]]:
    kwsniff.analyze(capture, output=folder)
    return files_of_tables(folder)


@pytest.mark.sample(2)
@pytest.mark.parametrize("capture", RECORDINGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_rules_that_are_not_asked_would_find_nothing(
    capture: Path, account_of: AccountOf, findings_of: FindingsOf
) -> None:
    """What `analyze` found by figures it made in passing; those of its files: test_small_tables."""
    expected = [columns_of(each) for each in account_of(capture).findings]
    assert without_run(findings_of(capture)) == expected


@pytest.mark.slow
def test_sums_made_in_passing_are_those_of_the_rows(tmp_path: Path) -> None:
    capture = tmp_path / "small.pcap"
    write(capture, rounds(small), megabytes=3, period_ns=SMALL_PERIOD)
    files = _tables(capture, tmp_path / "out")
    with open_folder(tmp_path / "out") as database:
        expected = evaluate(database)
        sums = figures_of(files).sums()
        assert {name for name, columns in sums.items() if columns} == {
            "call_sum", "client_broker", "fetch_sum", "topic_width", "written",
        }  # fmt: skip
    found = find_in_files(files)
    assert {"request_storm"} <= {each.finding for each in found}
    assert found == expected


def test_rules_that_sums_suffice_for_are_asked_without_a_database(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a database was opened")

    capture = tmp_path / "small.pcap"
    write(capture, rounds(small), megabytes=3, period_ns=SMALL_PERIOD)
    monkeypatch.setattr("kwsniff.findings.views._set_up", refuse)
    # the calls of each finding are only in the files
    tables = [name for name in TABLES if name != "finding_calls"]
    kwsniff.analyze(capture, output=tmp_path / "out", tables=tables)
    found = pq.read_table(tmp_path / "out" / "findings.parquet")["finding"].to_pylist()
    assert {"request_storm"} <= set(found)


@pytest.mark.sample(1)
@pytest.mark.parametrize("capture", RECORDINGS[:8], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_bounds_of_rows_in_passing_are_those_of_files(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Figures] = []
    worth_asking = Figures.worth_asking

    def remember(figures: Figures) -> list[Rule]:
        seen.append(figures)
        return worth_asking(figures)

    monkeypatch.setattr(Figures, "worth_asking", remember)
    files = _tables(capture, tmp_path)
    assert seen[0].as_dict() == figures_of(files).as_dict()


def test_a_healthy_capture_needs_no_query(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a database was opened")

    monkeypatch.setattr("kwsniff.findings.views._set_up", refuse)
    calls = ROOT / "captures" / "idle" / "capture.pcap"
    assert kwsniff.analyze(calls, output=tmp_path).findings.num_rows == 0


def test_more_clients_or_partitions_than_are_counted_are_asked_about(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = _tables(ROOT / "captures" / "three_brokers" / "capture.pcap", tmp_path)
    few = {rule.name for rule in figures_of(files).worth_asking()}
    monkeypatch.setattr(client_rates, "MOST_CLIENTS", 0)
    monkeypatch.setattr(partition_volumes, "MOST_PARTITIONS", 0)
    more = {rule.name for rule in figures_of(files).worth_asking()}
    assert more >= few | {"client_silent", "request_storm", "hot_partition"}
    assert "hot_partition" not in few


def test_topics_that_got_their_names_later_are_asked_about(tmp_path: Path) -> None:
    figures = figures_of(_tables(ROOT / "captures" / "three_brokers" / "capture.pcap", tmp_path))
    assert "hot_partition" not in {rule.name for rule in figures.worth_asking()}
    figures.distrust()
    assert "hot_partition" in {rule.name for rule in figures.worth_asking()}


def test_errors_that_gates_name_are_those_of_the_query() -> None:
    for rule in load_rules():
        for floors in rule.when:
            for code in floors.get("errors", ()):
                assert str(code) in rule.query


def test_errors_that_other_rules_name_or_that_pass_are_those_of_the_causes() -> None:
    (beside,) = (
        floors["errors_beside"]
        for rule in load_rules()
        for floors in rule.when
        if rule.name == "persistent_error" and "errors_beside" in floors
    )
    causes = load_catalog().causes
    assert {*beside} - {0} == {code for code, cause in causes.items() if cause.findings or cause.passes_s}


def test_gates_are_those_of_the_rules() -> None:
    assert [(gate.name, gate.group, gate.when) for gate in load_gates()] == [
        (rule.name, rule.group, rule.when) for rule in load_rules()
    ]


@pytest.mark.slow
def test_a_database_for_some_queries_answers_them_as_one_for_all(tmp_path: Path) -> None:
    files = _tables(INCIDENTS / "hot_partition" / "broker.pcap", tmp_path)
    rules = load_rules()
    with open_folder(tmp_path) as whole:
        expected = evaluate(whole)
    assert expected
    for twins in (True, False):
        queries = [TOTAL, *(rule.query for rule in rules), *queries_of_settings(rules)]
        with open_for(queries, files, twins=twins) as database:
            assert evaluate(database) == expected


def test_tables_of_before_lack_columns_and_have_findings(tmp_path: Path) -> None:
    files = _tables(INCIDENTS / "hot_partition" / "broker.pcap", tmp_path)
    names = [each.finding for each in find_in_files(files)]
    for name, column in (("api_calls", "caller"), ("connections", "closed_by"), ("partitions", "lag")):
        (path,) = files[name]
        pq.write_table(pq.ParquetFile(path).read().drop_columns([column]), path)
    assert [each.finding for each in find_in_files(files)] == names


@pytest.mark.slow
@pytest.mark.parametrize("incident", ["hot_partition", "busy_fetch", "rebalance_storm"])
def test_calls_of_twins_hide_nothing(incident: str, tmp_path: Path) -> None:
    (capture,) = (INCIDENTS / incident).glob("broker.pcap")
    files = _tables(capture, tmp_path)
    (path,) = files["connections"]
    rows = pq.ParquetFile(path).read()
    at = rows.schema.get_field_index("twin_of")
    every_other = [place if place % 2 else None for place in range(rows.num_rows)]
    marked = rows.set_column(at, rows.schema.field(at), pa.array(every_other, pa.int64()))
    pq.write_table(marked, path)
    assert figures_of(files).twins
    with open_folder(tmp_path) as database:
        assert find_in_files(files) == evaluate(database)


def _calls(rows: Sequence[Mapping[str, Any]], caller: str) -> list[dict[str, Any]]:
    told = {"api_name": "OffsetCommit", "caller": caller}
    return [{**row, **told, "request_time": row["time"]} for row in rows]


def _growth(rows: Sequence[Mapping[str, Any]], caller: str = "client") -> float:
    figures = Figures()
    for name, some in (("api_calls", _calls(rows, caller)), ("commits", rows)):
        for batch in table_of(name, some).to_batches(max_chunksize=7):
            figures.add(name, batch)
    return figures.as_dict()["lag_growth"]


@pytest.mark.slow
def test_the_growth_of_lags_is_what_the_rule_goes_by() -> None:
    (rule,) = (rule for rule in load_rules() if rule.name == "lag_grows")
    rows = lags(groups=400)
    found = {each.subject for each in find(rule.name, {"commits": rows, "api_calls": _calls(rows, "client")})}
    assert 20 < len(found) < 200
    worth_asking = {
        group
        for group in {row["group_id"] for row in rows}
        if _growth([row for row in rows if row["group_id"] == group]) >= rule.floors["offsets"]
    }
    assert found <= worth_asking
    assert len(worth_asking - found) < 20  # equal times let the rule choose which one is the first


def test_where_servers_commit_every_lag_counts() -> None:
    told = {"run_id": "run", "group_id": "billing", "topic": "orders", "partition": 0}
    rows = [{**told, "call_id": each, "time": each * 1_000_000, "lag": 900 - 100 * each} for each in range(9)]
    assert _growth(rows) == 0
    assert _growth(rows, caller="broker") == 800


class _Behind(Offsets):
    """Consumers that always commit the same, far behind."""

    def of(self, client: int, topic: str) -> int:
        return 9

    def end(self, client: int, topic: str) -> int:
        return 1000

    def produce(self, *given: Any, **options: Any) -> Exchange:
        """Where they read, but long before: until their first Fetch the lag seems small."""
        return Offsets().produce(*given, **{**options, "partition": 0})


def test_lags_that_dip_at_first_open_no_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a database was opened")

    capture = tmp_path / "mixed.pcap"
    both = mixed(_Behind(), errors=0.0), mixed(_Behind(), errors=0.0)
    write(capture, both, megabytes=10, period_ns=SMALL_PERIOD)
    monkeypatch.setattr("kwsniff.findings.views._set_up", refuse)
    kwsniff.analyze(capture, output=tmp_path / "out")
    lags = pq.read_table(tmp_path / "out" / "commits.parquet", columns=["lag"])["lag"].drop_null()
    assert max(lags.to_pylist()) - min(lags.to_pylist()) >= 50


def test_rules_read_alone_are_those_of_all() -> None:
    rules = {rule.name: rule for rule in load_rules()}
    assert rules_behind(load_gates()) == [*rules.values()]
    for gate in load_gates():
        assert rules_behind([gate]) == [rules[gate.name]]


def _batches(clients: int) -> list[dict[str, Any]]:
    """Batches of clients that write more or less than the rule says, at a time or all together."""
    rng, rows = random.Random(3), []
    for client in range(clients):
        told = {"run_id": "run", "client_id": f"client {client}" if client else None, "connection_id": client}
        size, number = rng.choice(((4000, 5200), (4095, 5000), (4096, 4882), (4096, 4883), (9_000, 3000)))
        rows += [{**told, "api_name": "Produce", "codec": "none", "bytes": size}] * number
        rows += [{**told, "api_name": "Produce", "codec": "zstd", "bytes": 90_000_000}] * rng.randint(0, 1)
        rows += [{**told, "api_name": "Fetch", "codec": "none", "bytes": 90_000_000}] * rng.randint(0, 1)
        rows += [{**told, "api_name": "Produce", "codec": "none"}] * rng.randint(0, 2)
    rng.shuffle(rows)
    return [{**row, "call_id": number} for number, row in enumerate(rows)]


def _plain_bytes(rows: Sequence[Mapping[str, Any]], twins: int = 0) -> float:
    figures = Figures()
    figures.add_twins(twins)
    for batch in table_of("record_batches", rows).to_batches(max_chunksize=700):
        figures.add("record_batches", batch)
    return figures.as_dict()["plain_bytes"]


@pytest.mark.slow
def test_bytes_without_compression_are_those_of_clients_with_large_batches() -> None:
    (rule,) = (rule for rule in load_rules() if rule.name == "uncompressed")
    rows = _batches(clients=24)
    found = {each.subject for each in find(rule.name, {"record_batches": rows})}
    names = {row["client_id"] for row in rows}
    written = {name: _plain_bytes([row for row in rows if row["client_id"] == name]) for name in names}
    worth_asking = {name for name, total in written.items() if total >= rule.floors["bytes"]}
    assert found == {name or "an unnamed client" for name in worth_asking}
    assert 4 < len(found) < 20
    assert _plain_bytes(rows) == max(written.values())


def test_of_fewer_batches_more_may_be_large() -> None:
    told = {"run_id": "run", "api_name": "Produce", "codec": "none", "client_id": "ui"}
    rows = [{**told, "bytes": 8000}] * 3000 + [{**told, "bytes": 10}] * 9000
    assert _plain_bytes(rows) == 0
    assert _plain_bytes(rows, twins=1) == 3000 * 8000 + 9000 * 10


def test_commits_that_only_a_heartbeat_error_accompanies_were_not_refused() -> None:
    rates = CallRates("is_commit")
    rows = {"api_name": ["OffsetCommit", "Heartbeat"], "error_code": [0, 27], "client_id": ["a", "a"]}
    rates.add(pa.RecordBatch.from_pydict(rows | {"client_address": ["h", "h"], "request_time": [1, 2]}))
    assert rates.refused == 0
    again = rows | {"error_code": [22, 27], "client_address": ["h", "h"], "request_time": [3, 4]}
    rates.add(pa.RecordBatch.from_pydict(again))
    assert rates.refused == 1


def test_commits_are_a_storm_where_the_rule_has_enough_of_them() -> None:
    floors = next(rule.floors for rule in load_rules() if rule.name == "commit_storm")
    for number, span_s, enough in (
        (floors["commits"], floors["span_s"], True),
        (floors["commits"] - 1, floors["span_s"], False),
        (floors["commits"], floors["span_s"] - 1, False),
        (floors["many"], floors["span_s"] - 1, True),
    ):
        rates = CallRates("is_commit")
        times = [round(each * span_s * 1e6 / (number - 1)) for each in range(int(number))]
        columns = {"api_name": "OffsetCommit", "client_id": "a", "client_address": "h", "error_code": 0}
        rows = {name: [value] * len(times) for name, value in columns.items()}
        rates.add(pa.RecordBatch.from_pydict(rows | {"request_time": times}))
        assert (rates.greatest() > 0) == enough


def _show(figures: Figures, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    for batch in table_of(table, rows).to_batches():
        figures.add(table, batch)


def test_leaders_that_moved_and_brokers_that_refuse_are_counted_by_hand() -> None:
    moves = [("a", 0, 1), ("a", 0, 2), ("a", 1, 1), ("b", 0, 1), ("b", 0, -1), ("b", 1, 3), ("b", 1, 3)]
    leaders = [{"topic": topic, "partition": at, "leader": leader} for topic, at, leader in moves]
    told = [
        ("c1", 1, 6),
        ("c1", 1, 74),
        ("c2", 1, 6),
        ("c2", 2, 3),
        ("c3", 2, 75),
        ("c3", 1, 6),
        ("c3", 3, 6),
    ]
    errors = [
        {"client_id": client, "broker_address": f"10.0.0.{broker}", "broker_port": 9092, "error_code": code}
        for client, broker, code in told
    ]
    figures = []
    for some in (1, len(told)):
        figures.append(Figures())
        _show(figures[-1], "leaders", leaders)
        _show(figures[-1], "error_codes", errors[:some])
    assert figures[0].as_dict()["moved_leaders"] == 1
    assert [each.as_dict()["refusing_brokers"] for each in figures] == [1, 2]
    figures[0].merge(figures[1].state())
    assert figures[0].as_dict()["refusing_brokers"] == 2


def test_leaders_of_topics_without_a_name_may_all_have_moved() -> None:
    figures = Figures()
    _show(figures, "leaders", [{"topic_id": "x" * 22, "partition": 0, "leader": 1}])
    assert figures.as_dict()["moved_leaders"] == float("inf")
