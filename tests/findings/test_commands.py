"""Commands in findings, read by a shell: they name what they mean, whatever the names are."""

from __future__ import annotations

import json
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
from kwsniff.findings.tables import READ, open_tables
from tests.house.tree import ROOT

INCIDENTS = ROOT / "captures" / "incidents"
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


@pytest.mark.parametrize("name", NAMES)
def test_a_client_of_any_name_is_found_by_the_command(name: str) -> None:
    analysis = kwsniff.analyze(INCIDENTS / "throttled" / "broker.pcap")
    with open_tables({table: renamed(analysis.table(table), name) for table in READ}) as database:
        (finding,) = (each for each in evaluate(database) if each.finding == "throttled")
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
    assert f"--client {name}" in " ".join(given).replace("--client=", "--client ")
    assert "usage" not in capsys.readouterr().err


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


@pytest.mark.slow
@pytest.mark.parametrize("incident", sorted(each.parent.name for each in INCIDENTS.glob("*/about.toml")))
def test_commands_show_something(incident: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for capture in sorted((INCIDENTS / incident).glob("*.pcap")):
        tables = tmp_path / capture.stem
        kwsniff.analyze(capture, output=tables)
        places = {"CAPTURE": str(capture), "DIR": str(tables)}
        for finding in pq.ParquetFile(tables / "findings.parquet").read().to_pylist():
            given = [places.get(word, word) for word in words(finding["command"])]
            assert run(given) == 0, finding["command"]
            assert len(capsys.readouterr().out.splitlines()) > 1, finding["command"]
