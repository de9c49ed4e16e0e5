"""Every object that a verb prints as JSON says the version of its form first, as docs/stability.md has it."""

import json
from pathlib import Path

import pytest

from kwsniff.cli import main

FIRST_STEPS = str(Path(__file__).parents[2] / "captures" / "first_steps" / "capture.pcap")


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "words",
    [
        ("analyze", FIRST_STEPS, "--json"),
        ("show", FIRST_STEPS, "--json", "-n", "2"),
        ("why", FIRST_STEPS, "--json"),
        ("upgrade", "4.0.0", FIRST_STEPS, "--json"),
        ("compare", FIRST_STEPS, FIRST_STEPS, "--json"),
        ("explain", "fetch", "--json"),
        ("explain", "fetch", "12", "--json"),
        ("explain", "OffsetCommitValue", "4", "--json"),
        ("explain", "error", "6", "--json"),
        ("explain", "errors", "--json"),
        ("explain", "release", "4.0.0", "--json"),
    ],
    ids=" ".join,
)
def test_the_first_key_is_the_version(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(words) in (0, 1)
    out = capsys.readouterr().out
    objects = [json.loads(line) for line in out.splitlines()] if words[0] == "show" else [json.loads(out)]
    assert objects
    for each in objects:
        assert next(iter(each.items())) == ("version", 1)


def test_rows_of_sql_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["analyze", FIRST_STEPS, "-o", str(tmp_path), "--table", "captures"]) == 0
    capsys.readouterr()
    assert main.run(["sql", str(tmp_path), "select 7 as seven", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"version": 1, "rows": [{"seven": 7}]}
