"""The process ends without taking itself apart, and leaves nothing undone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kwsniff
from tests.house.tree import ROOT

CAPTURE = ROOT / "captures" / "first_steps" / "capture.pcap"


def left(arguments: list[str], folder: Path, begins_with: str = "") -> subprocess.CompletedProcess[str]:
    """A run with a module that Python loads before all others."""
    (folder / "sitecustomize.py").write_text(begins_with, "utf-8")
    return subprocess.run(
        [sys.executable, "-m", "kwsniff", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT}", "TMPDIR": str(folder)},
    )


def test_what_was_to_be_done_at_the_end_is_done(tmp_path: Path) -> None:
    """As pytest-cov has its figures written."""
    told = "import atexit, pathlib; atexit.register(pathlib.Path('ended').write_text, 'yes')"
    assert left(["explain", "errors"], tmp_path, told).returncode == 0
    assert (tmp_path / "ended").read_text("utf-8") == "yes"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["explain", "apis"], 0), (["show", str(CAPTURE), "--call", "7"], 1), (["analyze", "nowhere.pcap"], 2)],
)
def test_the_status_is_that_of_the_verb(arguments: list[str], status: int, tmp_path: Path) -> None:
    assert left(arguments, tmp_path).returncode == status


def test_all_that_was_printed_comes(tmp_path: Path) -> None:
    done = left(["show", str(CAPTURE), "--json"], tmp_path)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 2 * kwsniff.analyze(CAPTURE).api_calls.num_rows
    assert done.stdout.endswith("}\n")
    assert {each.name for each in tmp_path.iterdir()} <= {"sitecustomize.py", "__pycache__"}


@pytest.mark.parametrize(
    ("arguments", "usual"),
    [(["explain", "errors"], False), (["live", "-i", str(CAPTURE), "--json", "--speed", "max"], True)],
)
def test_a_verb_that_goes_on_for_long_has_its_cycles_collected_as_usual(
    arguments: list[str], usual: bool, tmp_path: Path
) -> None:
    told = (
        "import atexit, gc, pathlib; before = gc.get_threshold(); "
        "atexit.register(lambda: pathlib.Path('usual').write_text(str(gc.get_threshold() == before)))"
    )
    assert left(arguments, tmp_path, told).returncode == 0
    assert (tmp_path / "usual").read_text("utf-8") == str(usual)
