"""``kwsniff upgrade``: the verdicts that real brokers of 4.3.1 gave, and what is said of each."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

import kwsniff
from kwsniff.cli.main import BAD_NEWS, DONE, FAILED, run
from kwsniff.findings.upgrade import Client, find_breaks, judge
from kwsniff.findings.views import open_folder
from tests.cli.shown import CAPTURES, ROOT, page, recorded

pytestmark = pytest.mark.sample_tests(7)


def written(place: Path, *names: str) -> str:
    kwsniff.analyze([recorded(name) for name in names], output=place)
    return str(place)


def verdicts(capsys: pytest.CaptureFixture[str], release: str, *inputs: str) -> tuple[int, Any]:
    status = run(["upgrade", release, *inputs, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["version"] == 1
    assert answer["release"] == release
    return status, answer["clients"]


def test_a_client_that_asks_and_knows_nothing_newer_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    """Java 0.10.2.2 sends ApiVersions; a broker of 4.3.1 hung up on its Produce 2."""
    status, (client,) = verdicts(capsys, "4.3.1", recorded("java_0_10"))
    assert status == BAD_NEWS
    assert (client["client_id"], client["verdict"]) == ("old-shop", "breaks")
    found = [
        (each["api_name"], each["api_version"], each["min_version"], each["max_version"])
        for each in client["reasons"]
    ]
    assert found == [("Produce", 2, 3, 13), ("Fetch", 3, 4, 18)]  # KIP-896
    assert "CreateTopics" in client["not_tested"]
    assert "Produce" not in client["not_tested"]
    assert "Vote" not in client["not_tested"], "controllers alone use it"


def test_a_broker_of_4_3_1_did_hang_up_on_what_is_said_to_break(capsys: pytest.CaptureFixture[str]) -> None:
    """It advertises Produce from 0 on all the same: the release table counts."""
    _, clients = verdicts(capsys, "4.3.1", str(CAPTURES / "incidents" / "broker_hangs_up" / "broker.pcap"))
    broken = {each["client_id"]: each for each in clients if each["verdict"] == "breaks"}
    assert list(broken) == ["old-shop"]
    assert {each["api_name"] for each in broken["old-shop"]["reasons"]} == {"Produce"}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "name",
    ["java_0_11", "java_1_1", "java_2_3", "franz_go", "kafkajs", "aiokafka", "kafka_python", "first_steps"],
)
def test_clients_that_brokers_of_4_3_1_served_work(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, clients = verdicts(capsys, "4.3.1", recorded(name))
    assert status == DONE
    assert clients
    assert {each["verdict"] for each in clients} == {"works"}
    assert [each["reasons"] for each in clients] == [[]] * len(clients)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["franz_go", "kafkajs", "java_2_3", "aiokafka"])
def test_who_asks_a_broker_is_negotiated_down_on_all_connections_to_it(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, clients = verdicts(capsys, "2.2.0", recorded(name))
    assert status == DONE
    assert {each["verdict"] for each in clients} == {"works"}


def test_a_newer_version_on_a_connection_begun_before_the_capture_is_unknown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, clients = verdicts(capsys, "2.2.0", recorded("begun_late"))
    assert status == DONE
    uses = {
        each["client_id"]: each["reasons"][0]["api_name"] for each in clients if each["verdict"] == "unknown"
    }
    assert uses == {"billing-1": "Fetch", "shop-producer": "Produce"}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["replication", "zookeeper_0_10", "kraft_start"])
def test_brokers_among_themselves_are_left_out(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, clients = verdicts(capsys, "2.2.0", recorded(name))
    assert status == DONE
    assert [each["client_id"] for each in clients if "fetcher" in each["client_id"]] == []
    assert [each["client_id"] for each in clients if each["client_id"].startswith("raft")] == []


def test_an_api_that_the_release_lacks_is_unknown_to_who_asks(capsys: pytest.CaptureFixture[str]) -> None:
    _, clients = verdicts(capsys, "3.5.0", recorded("group_share"))
    (packer,) = (each for each in clients if each["client_id"] == "packer")
    assert packer["verdict"] == "unknown"
    assert {(each["api_name"], each["max_version"]) for each in packer["reasons"]} >= {("ShareFetch", None)}


def judged(database: duckdb.DuckDBPyConnection, release: str = "4.3.1") -> Client:
    (client,) = judge(database, release)
    return client


def changed(folder: str, change: str) -> duckdb.DuckDBPyConnection:
    """The tables of a folder, with columns of api_calls replaced."""
    path = Path(folder, "api_calls.parquet")
    with duckdb.connect() as database:
        database.execute("set TimeZone = 'UTC'")
        rows = database.sql(f"select * replace ({change}) from '{path}'").to_arrow_table()  # noqa: S608

    parquet.write_table(rows, path)
    return open_folder(folder)


def test_a_fixed_version_above_the_greatest_breaks_who_never_asks(tmp_path: Path) -> None:
    """The same calls, without those that ask."""
    folder = written(tmp_path, "java_2_3")
    silent = (
        "case when api_name = 'ApiVersions' then 99 else api_key end::smallint as api_key, "
        "case when api_name = 'ApiVersions' then null else api_name end as api_name"
    )
    with changed(folder, silent) as database:
        client = judged(database, "2.2.0")
    assert client.verdict == "breaks"
    assert {each.why for each in client.reasons} == {"above"}


def test_the_greatest_version_of_the_present_broker_tells_nothing(tmp_path: Path) -> None:
    folder = written(tmp_path, "java_0_10")
    with open_folder(folder) as database:
        (produce, fetch) = judged(database).reasons
        offered = pa.table(
            {
                "broker_address": ["127.0.0.1"] * 2,
                "broker_port": pa.array([9092] * 2, pa.int32()),
                "api_key": pa.array([0, 1], pa.int16()),
                "max_version": pa.array([2, 3], pa.int16()),
            }
        )
        database.register("offered", offered)
        database.execute("drop table api_ranges")  # a small table is kept, not shown by a view
        database.execute("create temp view api_ranges as from offered")
        client = judged(database)
        assert client.verdict == "unknown"
        assert {each.why for each in client.reasons} == {"held_back"}
        database.execute("create or replace temp view api_ranges as from offered where api_key = 0")
        assert [each.api_name for each in judged(database).reasons] == ["Fetch"]
        assert (produce.why, fetch.why) == ("below", "below")


def test_a_breaking_client_is_a_finding(tmp_path: Path) -> None:
    with open_folder(written(tmp_path, "java_0_10", "first_steps")) as database:
        clients = judge(database, "4.3.1")
        (finding,) = find_breaks(database, "4.3.1", clients)
    assert (finding.finding, finding.severity, finding.blames) == ("breaks_on_upgrade", "problem", "client")
    assert (finding.subject_kind, finding.subject) == ("client", "old-shop")
    assert "Produce 2, records in format 1 (4.3.1 accepts 3-13)" in finding.text
    assert finding.calls == sum(each.calls for each in clients[0].reasons)
    assert finding.call_ids == [each.call_id for each in clients[0].reasons]
    assert finding.first_time is not None


def test_folders_of_tables_tell_the_same_as_captures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path, "java_0_10")
    assert verdicts(capsys, "4.3.1", folder) == verdicts(capsys, "4.3.1", recorded("java_0_10"))


@pytest.mark.sample(1)
@pytest.mark.parametrize("columns", [60, 80])
def test_no_line_is_wider_than_the_screen(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run(["upgrade", "4.3.1", recorded("java_0_10"), recorded("group_share")]) == BAD_NEWS
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    words = " ".join(out.split())
    assert "BREAKS old-shop at 127.0.0.1" in words
    assert "Produce 2, records in format 1 (4.3.1 accepts 3-13)" in words


@pytest.mark.parametrize(
    ("release", "hint"), [("4.31", "did you mean 4.3.1"), ("wombat", "4.3.1"), ("4.5.0", "4.3.1")]
)
def test_an_unknown_release_is_one_line_with_the_known_ones(
    release: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["upgrade", release, "no such file"]) == FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert hint in line
    assert "2.2.0, 2.2.1" in line


def test_the_page_shows_what_the_verb_says() -> None:
    path = ROOT / "docs" / "upgrade.md"
    assert page(path) == path.read_text("utf-8"), "run: python -m tests.cli.shown"
