"""`kwsniff why`: what it prints, what it exits with, what a folder of tables gives."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.cli.main import run
from kwsniff.findings.evaluate import conclude
from kwsniff.findings.rule import load_rules
from tests.core.hand import ACK, FIN, START_NS, Talk
from tests.house.tree import ROOT
from tests.traffic.files import Frame, pcap
from tests.traffic.hello import client_hello, records, server_hello

pytestmark = pytest.mark.sample_tests(6)

STALLED = ROOT / "captures" / "incidents" / "broker_stalled" / "broker.pcap"
HEALTHY = ROOT / "captures" / "incidents" / "healthy_idle" / "broker.pcap"


def _why(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """In this process, on a screen of 80 columns."""
    command, out, err = ["why", *map(str, arguments)], io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as changed, redirect_stdout(out), redirect_stderr(err):
        changed.setenv("COLUMNS", "80")
        status = run(command)
    return subprocess.CompletedProcess(command, status, out.getvalue(), err.getvalue())


def test_a_problem_is_told_with_its_proof_and_exits_with_1() -> None:
    command = [sys.executable, "-m", "kwsniff.cli.main", "why", str(STALLED)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={"COLUMNS": "80", "PATH": ""}
    )
    assert done.returncode == 1, done.stderr
    assert _why(STALLED).stdout == done.stdout
    assert "PROBLEM broker_stalled" in done.stdout
    assert "Proof: calls " in done.stdout
    prose = [
        line for line in done.stdout.splitlines() if not line.startswith(("  See:", "The commands above"))
    ]
    assert max(map(len, prose)) <= 80


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "capture",
    [
        "versions_4_3/capture.pcap",
        "incidents/sasl_expected/broker.pcap",
        "incidents/follower_falls_out/broker.pcap",
    ],
)
def test_it_fits_a_screen_unless_asked_for_all(capture: str) -> None:
    """24 rows of 80 columns, one of which is the shell's; long commands take several."""
    said = _why(ROOT / "captures" / capture).stdout.splitlines()
    assert sum(max(1, -(-len(line) // 80)) for line in said) <= 23
    whole = _why(ROOT / "captures" / capture, "--all").stdout.splitlines()
    assert said[:4] == whole[:4]
    assert any(line.startswith("Limits of this capture:") for line in said)
    assert len(whole) > len(said)
    bad = {line.split()[1].rstrip(":") for line in whole if line.startswith(("PROBLEM ", "WARNING "))}
    assert {name for name in bad if not any(f" {name}" in line for line in said)} == set()


def test_a_healthy_capture_is_told_with_what_the_judgement_stands_on() -> None:
    done = _why(HEALTHY)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("No finding in ")
    assert "PROBLEM" not in done.stdout


@pytest.mark.parametrize("answered", [False, True])
def test_what_tls_hides_is_not_said_of_a_hello_without_an_answer(answered: bool, tmp_path: Path) -> None:
    talk = Talk().open()
    talk.send(True, records(client_hello()))
    talk.send(False, records(server_hello()) if answered else b"")
    talk.send(False, flags=FIN | ACK)
    place = tmp_path / "hello.pcap"
    place.write_bytes(pcap([Frame(START_NS, packet, len(packet)) for packet in talk.packets], 101))
    said = _why(place).stdout
    assert ("1 TLS connection stayed encrypted" in said) == answered
    assert ("--tls-keylog" in said) == answered


@pytest.mark.parametrize(
    ("value", "said"), [(1, "1 TLS connection of a(s), "), (2, "2 TLS connections of a(s), ")]
)
def test_nouns_agree_with_their_numbers(value: int, said: str) -> None:
    rule = next(each for each in load_rules() if each.name == "encrypted")
    row = {"subject": "a(s)", "value": value, "bytes": 10, "first_time": None, "last_time": None}
    (finding,) = conclude([(rule, row)], 0)
    assert finding.text.startswith(said)


def test_what_is_no_capture_is_one_line_and_exits_with_2(tmp_path: Path) -> None:
    done = _why(tmp_path / "nothing")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_a_folder_of_tables_says_what_its_capture_says(tmp_path: Path) -> None:
    written = kwsniff.analyze(STALLED, output=tmp_path / "out")
    of_capture, of_folder = (
        json.loads(_why(place, "--json").stdout) for place in (STALLED, tmp_path / "out")
    )
    told = {"errors_by_client", "errors_by_broker", "account", "connections", "deliveries", "rebalances"}
    assert set(of_capture) == {"version", "kwsniff", "captures", "findings", "not_seen", *told}
    names = [[each["finding"] for each in found["findings"]] for found in (of_capture, of_folder)]
    assert names[0] == names[1] == written.findings["finding"].to_pylist()
    assert pq.read_table(tmp_path / "out" / "findings.parquet").num_rows == len(names[0])


def test_proofs_are_calls_of_the_capture() -> None:
    found = kwsniff.analyze(STALLED)
    calls = set(found.api_calls["call_id"].to_pylist())
    proofs = [call for row in found.findings.to_pylist() for call in row["call_ids"]]
    assert proofs
    assert set(proofs) <= calls


def test_every_rule_has_a_name_of_its_own_and_known_causes() -> None:
    names = [rule.name for rule in load_rules()]
    assert len(names) == len(set(names)) >= 40
    assert all(cause in names for rule in load_rules() for cause in rule.explained_by)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x" * 3000, "y z " * 800], ids=["one word", "words"])
def test_it_fits_a_screen_whatever_names_are_long(name: str, tmp_path: Path) -> None:
    kwsniff.analyze(ROOT / "captures" / "incidents" / "rebalance_storm" / "broker.pcap", output=tmp_path)
    for file in tmp_path.glob("*.parquet"):
        table = pq.ParquetFile(file).read()
        for column in {"client_id", "group_id"}.intersection(table.column_names):
            at, rows = table.column_names.index(column), table[column].to_pylist()
            long = pa.array([each and f"{each} {name}" for each in rows], pa.string())
            table = table.set_column(at, column, long)
        pq.write_table(table, file)
    said = _why(tmp_path).stdout.splitlines()
    assert sum(max(1, -(-len(line) // 80)) for line in said) <= 23
    assert any(line.startswith("  See: ") for line in said)
    sentence, _, commands = _why(tmp_path, "--all").stdout.partition("  See: ")
    assert name.strip() in " ".join(sentence.split())
    assert name.strip() in commands.splitlines()[0]


def test_tables_that_are_kept_are_those_of_analyze_and_the_printed_command_runs(tmp_path: Path) -> None:
    kept = tmp_path / "kept tables"
    done = _why(STALLED, "--keep", kept)
    assert done.returncode == 1
    assert " DIR" not in done.stdout
    (command,) = (line for line in done.stdout.splitlines() if line.startswith("  See: "))
    words = shlex.split(command.removeprefix("  See: "))
    assert words[:3] == ["kwsniff", "sql", str(kept)]
    out = io.StringIO()
    with redirect_stdout(out):
        assert run([*words[1:], "--format", "jsonl"]) == 0
    waited = [json.loads(line) for line in out.getvalue().splitlines()]
    assert len(waited) == 13
    kwsniff.analyze(STALLED, output=tmp_path / "analyzed")
    names = {path.name for path in kept.glob("*.parquet")}
    assert names == {path.name for path in (tmp_path / "analyzed").glob("*.parquet")}
    assert _why(kept).stdout.partition("\n")[0] == done.stdout.partition("\n")[0]


def test_a_folder_of_tables_is_not_kept_again(tmp_path: Path) -> None:
    kwsniff.analyze(HEALTHY, output=tmp_path / "out")
    done = _why(tmp_path / "out", "--keep", tmp_path / "again")
    assert done.returncode == 2
    assert "--keep" in done.stderr
    assert not (tmp_path / "again").exists()
