"""README's blocks as a newcomer runs them: in a clone, after the first command."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .tree import ROOT, relative, tracked_files

README = (ROOT / "README.md").read_text("utf-8")
PYTHON = README.partition("```python\n")[2].partition("```")[0]


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """In a folder that hides what is installed."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_python_of_the_readme_prints_what_stands_below_it() -> None:
    done = python(PYTHON, ROOT)
    assert done.stderr == ""
    printed = README.partition("```python\n")[2].partition("```text\n")[2].partition("```")[0]
    assert done.stdout == printed


def test_ci_runs_it_right_after_the_first_command() -> None:
    steps = (ROOT / ".ci" / "run").read_text("utf-8").split("\nstep ")
    first = next(at for at, step in enumerate(steps) if "pip install . " in step)
    assert "```python" in steps[first + 1]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The package's folder without a compiled module."""
    for path in tracked_files():
        name = relative(path)
        if name.startswith(("kwsniff/", "dissectors/")):
            target = tmp_path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    return tmp_path


@pytest.mark.parametrize("code", [PYTHON, "from kwsniff import calls"])
def test_a_folder_that_is_not_compiled_says_what_to_do(code: str, clone: Path) -> None:
    done = python(code, clone)
    last = done.stderr.splitlines()[-1]
    assert re.fullmatch(rf"ImportError: {re.escape(str(clone))}/kwsniff is not compiled for this .*", last)
    assert last.endswith(f"pip install -e {clone}")


def test_the_command_says_it_in_one_line(clone: Path) -> None:
    command = [sys.executable, "-m", "kwsniff", "analyze", "x.pcap"]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"kwsniff: error: \S+/kwsniff is not compiled for this Python, .*\n", done.stderr)


def test_what_needs_no_compiled_module_works_all_the_same(clone: Path) -> None:
    done = python("import kwsniff; print(sorted(dir(kwsniff))[0], kwsniff.KwsniffError.__name__)", clone)
    assert (done.returncode, done.stdout) == (0, "CaptureError KwsniffError\n")


def test_a_clone_finds_its_layouts_beside_the_package(clone: Path) -> None:
    """Without what an installation knows of other places (-S)."""
    code = (
        "from kwsniff.layout.catalog import load_catalog as c; from kwsniff.layout.protocols import *; "
        "print(c().folder, len(c().apis), len(load_protocols()))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=clone, capture_output=True, text=True, check=True
    )
    folder, apis, protocols = done.stdout.split()
    assert Path(folder) == clone / "dissectors" / "kafka"
    assert (int(apis) > 90, int(protocols) > 20) == (True, True)
