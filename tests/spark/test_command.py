"""`kwsniff pipeline` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwsniff.cli.main import run
from kwsniff.spark import session


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give either captures or --stream DIR"),
        (["x.pcap", "--stream", "."], "give either captures or --stream DIR"),
        (["x.pcap", "--once"], "--once and --source need --stream"),
        (["--stream", ".", "--table", "api_calls"], "omit --table"),
        (["--stream", ".", "--delta"], "--delta needs complete tables"),
        (["x.pcap", "--conf", "spark.driver.memory"], "give a name and a value"),
        (["x.pcap", "--buckets", "0"], "--buckets 0 is too small"),
        (["x.pcap", "--split-mb", "0"], "--split-mb 0 is too small"),
        (["x.pcap", "--port", "0"], "give a number from 1 to 65535"),
        (["x.pcap", "--limit", "connections"], "give a name and a whole number"),
    ],
)
def test_bad_usage_is_one_line_before_spark_starts(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["pipeline", *arguments, "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert words in said.err
    assert said.err.count("\n") == 1


def test_without_pyspark_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(session, "find_spec", lambda _: None)
    assert run(["pipeline", "x.pcap", "-o", str(tmp_path / "out")]) == 2
    assert "pip install '.[spark]'" in capsys.readouterr().err


@pytest.mark.slow
def test_what_was_made_is_shown(
    spark: Any, capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = capture.read_bytes()
    (tmp_path / "cut.pcap").write_bytes(data[:-5])
    command = [
        "pipeline",
        str(tmp_path / "cut.pcap"),
        "-o",
        str(tmp_path / "out"),
        "--table",
        "api_calls,captures",
    ]
    assert run([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["rows"]) == {"api_calls", "captures"}
    assert told["rows"]["captures"] == 1
    assert told["captures"][0]["truncated"] is True
    assert run(command) == 0
    shown = capsys.readouterr().out
    assert "cut.pcap: ends inside a packet" in shown
    assert f"{told['rows']['api_calls']}  {tmp_path / 'out' / 'api_calls'}" in shown


@pytest.mark.slow
@pytest.mark.parametrize("buckets", ["1", "3"])
def test_limits_that_each_bucket_holds_to_are_named(
    spark: Any, capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], buckets: str
) -> None:
    """Those of one connection hold as anywhere."""
    command = [
        "pipeline",
        str(capture),
        "-o",
        str(tmp_path / "out"),
        "--buckets",
        buckets,
        "--table",
        "api_calls",
    ]
    assert run([*command, "--limit", "connections=1000", "--limit", "in_flight_requests=100"]) == 0
    told = "note: connections=1000 applies to each of 3 buckets of connections"
    said = capsys.readouterr().err
    assert (told in said) == (buckets == "3")
    assert "in_flight_requests" not in said


@pytest.mark.slow
def test_a_directory_is_followed_once_and_finished(
    spark: Any, capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    captures = tmp_path / "captures"
    captures.mkdir()
    (captures / "a.pcap").write_bytes(capture.read_bytes())
    command = ["pipeline", "--stream", str(captures), "-o", str(tmp_path / "out")]
    assert run([*command, "--once"]) == 0
    assert capsys.readouterr().out.startswith("batch 1: ")
    assert run([*command, "--finish"]) == 0
    assert capsys.readouterr().out.startswith("batch 2: ")
    assert (tmp_path / "out" / "latency_minutes").is_dir()
    assert run([*command, "--once"]) == 0
    assert capsys.readouterr().out == ""
