"""Commands in findings, read by a shell: they name what they mean, whatever the names are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.cli.main import run
from kwsniff.findings.evaluate import evaluate, fetch
from kwsniff.findings.rule import load_rules
from kwsniff.findings.views import READ, open_tables
from tests.findings.conftest import TablesOf
from tests.house.tree import ROOT

CAPTURES = ROOT / "captures"
INCIDENTS = CAPTURES / "incidents"
RECORDINGS = sorted(path for path in CAPTURES.rglob("*.pcap*") if path.is_file())
NAMES = [
    "shop",
    "two  words",
    "o'brien",
    'say "yes"',
    'it\'s "$HOME" `id` \\ !1; true & #',
    "-q",
    "{subject} %s",
    "Bücher\tund\nmehr",
]


def words(command: str) -> list[str]:
    """What a shell gives to kwsniff."""
    script = f"kwsniff() {{ printf '%s\\0' \"$@\"; }}\n{command}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split("\0")[:-1]


def renamed(table: pa.Table, name: str) -> pa.Table:
    """With another name for every client that has one."""
    if "client_id" not in table.column_names:
        return table
    at = table.column_names.index("client_id")
    column = pc.if_else(pc.is_valid(table["client_id"].cast(pa.string())), name, pa.scalar(None, pa.string()))
    return table.set_column(at, table.schema.field(at), column.cast(table.schema.field(at).type))


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", NAMES)
def test_a_client_of_any_name_is_found_by_the_command(name: str) -> None:
    analysis = kwsniff.analyze(INCIDENTS / "throttled" / "broker.pcap")
    rules = [rule for rule in load_rules() if rule.name == "throttled"]
    with open_tables({table: renamed(analysis.table(table), name) for table in READ}) as database:
        (finding,) = evaluate(database, rules=rules)
        assert finding.subject == name
        assert finding.command.startswith("kwsniff sql DIR ")
        verb, _, query = words(finding.command)
        assert verb == "sql"
        rows = fetch(database, query)
        assert len(rows) == finding.calls
        assert {row["client_id"] for row in rows} == {name}


@pytest.mark.parametrize("name", NAMES)
def test_show_takes_a_client_of_any_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (rule,) = (each for each in load_rules() if each.name == "client_silent")
    from kwsniff.findings.command import write_command

    command = write_command(rule.command, {"capture": "first.pcap", "tables": "DIR", "subject": name})
    given = words(command)
    assert given[:2] == ["show", "first.pcap"]
    capture = ROOT / "captures" / "first_steps" / "capture.pcap"
    run(["show", str(capture), *given[2:]])  # whatever it finds: the name was no bad usage
    assert f"--client-is {name}" in " ".join(given).replace("--client-is=", "--client-is ")
    assert "usage" not in capsys.readouterr().err


@pytest.mark.sample(1)
@pytest.mark.parametrize("folder", ["plain", "two words", "o'brien's \"$x\""])
def test_captures_and_folders_are_quoted(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / folder
    place.mkdir()
    capture = shutil.copy(INCIDENTS / "message_too_large" / "broker.pcap", place)
    run(["why", str(capture), "--json"])
    of_capture = json.loads(capsys.readouterr().out)["findings"]
    run(["why", str(place), "--json"])
    of_folder = json.loads(capsys.readouterr().out)["findings"]
    for findings, named in ((of_capture, str(capture)), (of_folder, str(place))):
        shows = [words(each["command"]) for each in findings if each["command"].startswith("kwsniff show")]
        assert shows
        assert {given[1] for given in shows} == {named}
    tables = tmp_path / f"{folder} tables"
    kwsniff.analyze(INCIDENTS / "throttled" / "broker.pcap", output=tables)
    run(["why", str(tables), "--json"])
    of_tables = json.loads(capsys.readouterr().out)["findings"]
    asked = [words(each["command"]) for each in of_tables if each["command"].startswith("kwsniff sql")]
    assert {given[1] for given in asked} == {str(tables)}


def test_every_rule_has_a_command_that_a_shell_reads() -> None:
    for rule in load_rules():
        words_of = rule.command.split()
        assert words_of[:2] in (["kwsniff", "show"], ["kwsniff", "sql"])
        assert words_of[2] in ("{capture}", "{tables}"), rule.name
        named = re.findall(r"{(\w+)}", rule.command)[1:]
        assert named or rule.subject_kind == "capture", f"{rule.name}: shows more than its subject"


def called(given: list[str], capsys: pytest.CaptureFixture[str]) -> set[int]:
    """The calls that a command shows."""
    assert run([*given, *(["--json"] if given[0] == "show" else ["--format", "json"])]) == 0, given
    shown = capsys.readouterr().out
    rows = map(json.loads, shown.splitlines()) if given[0] == "show" else json.loads(shown)["rows"]
    return {row["call_id"] for row in rows if row.get("call_id") is not None}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "two"),
    [
        ("session_expired", ("session_expired", "session_kafkajs")),
        ("static_id_shared", ("static_848", "static_franz")),
        ("broker_stalled", ("broker_stalled", "stalled_zookeeper")),
        ("timeout_too_short", ("timeout_too_short", "timeout_sarama")),
    ],
)
def test_of_two_subjects_a_command_shows_its_own(
    name: str, two: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    captures = [str(next((INCIDENTS / each).glob("*.pcap"))) for each in two]
    kwsniff.analyze(captures, output=tmp_path / "tables")
    places = {"DIR": str(tmp_path / "tables"), "CAPTURE": captures[0]}
    table = pq.ParquetFile(tmp_path / "tables" / "findings.parquet").read()
    found = [each for each in table.to_pylist() if each["finding"] == name]
    assert len({each["subject"] for each in found}) > 1
    shown = []
    for finding in found:
        given = [places.get(word, word) for word in words(finding["command"])]
        if given[0] == "show":
            given[2:2] = captures[1:]
        shown.append(called(given, capsys))
        assert shown[-1] >= set(finding["call_ids"]) or finding["calls"] > 20 or not shown[-1], finding[
            "command"
        ]
    for finding, calls in zip(found, shown, strict=True):
        others = {
            call for each in found if each["subject"] != finding["subject"] for call in each["call_ids"]
        }
        assert not calls & others, finding["command"]


@pytest.mark.parametrize("name", ["shop", "10.88.0.11"])
def test_show_leaves_out_clients_whose_names_have_the_name_in_them(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In loss_5 aio-shop and py-shop are at work, from 10.88.0.11 and 10.88.0.12; nobody is called so."""
    capture = INCIDENTS / "loss_5" / "client.pcap"
    asked = {
        each.command for each in load_rules() if each.command.startswith("kwsniff show {capture} --client")
    }
    for command in sorted(asked):
        assert command.startswith("kwsniff show {capture} --client-is {subject}")
    assert run(["show", str(capture), "--client", name, "--json"]) == 0
    capsys.readouterr()
    assert run(["show", str(capture), "--client-is", name, "--json"]) == 1
    assert called(["show", str(capture), "--client-is", "aio-shop"], capsys)


@pytest.mark.slow
@pytest.mark.parametrize("capture", RECORDINGS, ids=lambda path: str(path.relative_to(CAPTURES)))
def test_each_command_shows_rows(
    capture: Path, tables_of: TablesOf, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command of every finding, and those that its sentences name."""
    tables = tables_of(capture)
    places = {"CAPTURE": str(capture), "DIR": str(tables)}
    for finding in pq.ParquetFile(tables / "findings.parquet").read().to_pylist():
        given = [places.get(word, word) for word in words(finding["command"])]
        if given[0] == "sql":
            assert run([*given, "--format", "json"]) == 0, finding["command"]
            assert json.loads(capsys.readouterr().out)["rows"], finding["command"]
        else:
            assert run(given) == 0, finding["command"]
            assert len(capsys.readouterr().out.splitlines()) > 1, finding["command"]
        for named in re.findall(r"`kwsniff ([^`]+)`", f"{finding['text']} {finding['advice']}"):
            assert run(named.split()) in (0, 1), named
            capsys.readouterr()
        assert not finding["advice"].startswith(("kwsniff ", "`kwsniff ")), finding["advice"]


def test_proof_of_a_slow_broker_is_slow_calls_alone() -> None:
    analysis = kwsniff.analyze(INCIDENTS / "slow_broker_java" / "broker.pcap")
    (finding,) = (each for each in analysis.findings.to_pylist() if each["finding"] == "broker_slow")
    took = {row["call_id"]: row["broker_ns"] for row in analysis.table("latencies").to_pylist()}
    assert len(finding["call_ids"]) == min(finding["calls"], 20)
    assert min(took[call] for call in finding["call_ids"]) >= finding["expected"] * 1e6
