"""A damaged file of a folder of tables is one line that names it."""

from __future__ import annotations

from pathlib import Path

import pytest

import kwsniff
from kwsniff.cli.main import run
from tests.house.tree import ROOT


@pytest.mark.sample(1)
@pytest.mark.parametrize("rest", [b"", b"hello", None])
def test_why_names_the_file(tmp_path: Path, rest: bytes | None, capsys: pytest.CaptureFixture[str]) -> None:
    kwsniff.analyze(ROOT / "captures" / "killed_broker" / "capture.pcap", output=tmp_path)
    damaged = tmp_path / "api_calls.parquet"
    damaged.write_bytes(damaged.read_bytes()[:3000] if rest is None else rest)
    assert run(["why", str(tmp_path)]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"kwsniff: error: {damaged}: damaged (")
    assert line.count("\n") == 1
