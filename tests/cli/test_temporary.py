"""Verbs that keep nothing have room beside other temporary files, or say in one line that there is none."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from kwsniff.errors import OutputError
from kwsniff.temporary import temporary_folder
from tests.house.tree import ROOT

CAPTURE = ROOT / "captures" / "first_steps" / "capture.pcap"
VERBS = [
    ("analyze", str(CAPTURE)),
    ("why", str(CAPTURE)),
    ("why", "-"),
    ("compare", str(CAPTURE), str(CAPTURE)),
    ("upgrade", "4.3.1", str(CAPTURE)),
    ("slice", "-", "-o", "calls.pcapng", "--call", "1"),
]


def run(arguments: tuple[str, ...], spare: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """kwsniff, where no file may grow beyond some kB: the kernel refuses that as it does on a full disk.
    Python would leave compiled modules that are cut off there, for all who come later."""
    with CAPTURE.open("rb") as capture:
        return subprocess.run(
            [sys.executable, "-m", "kwsniff", *arguments],
            stdin=capture,
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd,
            env={**os.environ, "TMPDIR": str(spare), "PYTHONDONTWRITEBYTECODE": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        )


@pytest.mark.sample(2)
@pytest.mark.parametrize("arguments", VERBS, ids=" ".join)
def test_no_room_for_temporary_files_is_one_line_with_what_helps(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    spare, place = tmp_path / "spare", tmp_path / "place"
    spare.mkdir()
    place.mkdir()
    done = run(arguments, spare, place)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"kwsniff: error: {spare}: cannot write temporary files (File too large); ")
    assert line.endswith("set TMPDIR to another folder")
    assert [*spare.iterdir(), *place.iterdir()] == []


def test_without_any_place_for_temporary_files_something_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile._candidate_tempdir_list", lambda: ["/proc/none"])
    monkeypatch.setattr("tempfile.tempdir", None)
    with (
        pytest.raises(OutputError, match=r"cannot create a temporary folder .*; set TMPDIR"),
        temporary_folder(),
    ):
        raise AssertionError("a folder was made")
