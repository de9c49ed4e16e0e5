"""``--since`` and ``--until`` wherever captures are read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kwsniff.core.analyzer", reason="the analyzer is not built")

import kwsniff
from kwsniff.cli.main import run

pytestmark = pytest.mark.sample_tests(5)

CAPTURES = Path(__file__).parents[2] / "captures"
CAPTURE = str(CAPTURES / "first_steps" / "capture.pcap")
QUOTA = str(CAPTURES / "clocks" / "quota" / "broker.pcap")
VERBS = (["analyze"], ["show"], ["why"], ["upgrade", "4.3.1"])


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = run(arguments)
    return status, *capsys.readouterr()


def summary(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return json.loads(said(capsys, "analyze", CAPTURE, "--json", *arguments)[1])


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[int]:
    rows = map(json.loads, said(capsys, "show", CAPTURE, "--json", *arguments)[1].splitlines())
    return [row["first_frame"] for row in rows if row["kind"] == "request"]


def test_analyze_and_show_read_the_same_part(capsys: pytest.CaptureFixture[str]) -> None:
    found = summary(capsys, "--since", "+1s", "--until", "+2s")
    (capture,) = found["captures"]
    assert found["since"] == "2026-11-20T19:36:06.357773000Z"
    assert found["until"] == "2026-11-20T19:36:07.357773000Z"
    assert found["no_packets"] is None
    assert 0 < capture["skipped_other_time"] < capture["packets"] == 146
    rows = kwsniff.analyze(CAPTURE, since="+1s", until="+2s").api_calls["request_frame"].to_pylist()
    assert 5 < found["rows"]["api_calls"] == len(rows) < 34
    assert sorted(shown(capsys, "--since", "+1s", "--until", "+2s")) == sorted(rows)


def test_from_the_last_packet(capsys: pytest.CaptureFixture[str]) -> None:
    """The capture goes on for 3.161806 s."""
    assert summary(capsys, "--since", "-1s")["since"] == summary(capsys, "--since", "+2.161806s")["since"]
    assert summary(capsys, "--since=-1s", "--until", "-10ms")["until"] == "2026-11-20T19:36:08.509579000Z"


@pytest.mark.parametrize("verb", VERBS)
def test_a_time_without_packets_says_what_there_is(
    verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = said(capsys, *verb, CAPTURE, "--since", "20:00")
    assert status == 1
    assert err == (
        "kwsniff: note: no packets from 20:00 on; the captures cover "
        "2026-11-20 19:36:05.357 UTC to 19:36:08.519\n"
    )
    assert "interface and filter" not in out


@pytest.mark.parametrize("verb", [*VERBS, ["compare", CAPTURE], ["pipeline", "-o", "never"]])
@pytest.mark.parametrize(
    "options", [["--since", "noon"], ["--until", "30"], ["--since", "+5s", "--until", "+5s"]]
)
def test_what_is_no_time_is_one_line(
    verb: list[str], options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = said(capsys, *verb, CAPTURE, *options)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert options[0][2:] in err


def test_bounds_of_different_kinds_that_hold_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = said(capsys, "analyze", CAPTURE, "--since", "+3s", "--until", "19:36:06")
    assert (status, err) == (2, "kwsniff: error: since +3s is not before until 19:36:06\n")


@pytest.mark.parametrize("verb", [["why"], ["upgrade", "4.3.1"], ["compare", CAPTURE]])
def test_tables_cannot_be_cut(verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kwsniff.analyze(CAPTURE, output=tmp_path)
    status, _, err = said(capsys, *verb, str(tmp_path), "--since", "+1s")
    assert (status, err.count("\n")) == (2, 1)
    assert "cannot be used with a folder of tables" in err


def test_a_stream_takes_no_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = said(
        capsys, "pipeline", "--stream", str(tmp_path), "-o", str(tmp_path / "out"), "--since", "+1s"
    )
    assert (status, err.count("\n")) == (2, 1)
    assert "cannot be used with --stream" in err


def test_each_side_of_a_comparison_counts_from_its_own_first_packet(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Recorded half an hour apart: one time would leave one of them empty."""
    near = str(CAPTURES / "clocks" / "near" / "broker.pcap")
    status, out, err = said(capsys, "compare", near, QUOTA, "--since", "+1s", "--json")
    assert (status, err) == (0, "")
    assert ("client", "shop", "throttle_ms") in {
        (row["subject_kind"], row["subject"], row["what"]) for row in json.loads(out)["differences"]
    }


def test_commands_of_findings_read_the_same_part(capsys: pytest.CaptureFixture[str]) -> None:
    incident = str(CAPTURES / "incidents" / "message_too_large" / "broker.pcap")
    _, out, _ = said(capsys, "why", incident, "--since", "+1s", "--json")
    commands = [each["command"] for each in json.loads(out)["findings"] if " show " in each["command"]]
    assert commands
    assert all("--since=+1s" in command for command in commands)


def test_standard_input_counts_from_its_first_packet() -> None:
    command = [sys.executable, "-m", "kwsniff.cli.main", "analyze", "-", "--json", "--since", "+1s"]
    with Path(CAPTURE).open("rb") as capture:
        found = subprocess.run(command, stdin=capture, capture_output=True, check=True)
    assert json.loads(found.stdout)["since"] == "2026-11-20T19:36:06.357773000Z"
    command[-1] = "-1s"
    with Path(CAPTURE).open("rb") as capture:
        refused = subprocess.run(command, stdin=capture, capture_output=True, check=False)
    assert (refused.returncode, refused.stdout, refused.stderr.count(b"\n")) == (2, b"", 1)
