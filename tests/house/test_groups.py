"""Tests that must not run at once have a group, and a group stays in one process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_MODULE = """
import pytest

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(12))
def test_it(number):
    pass
"""


@pytest.mark.slow
def test_a_group_of_tests_stays_in_one_process(tmp_path: Path) -> None:
    """Pytest 9.2 with pytest-xdist 3.8 forgets groups and says nothing: recordings would hear each other, and
    each process would start a Spark of its own."""
    (tmp_path / "test_one.py").write_text(_MODULE, "utf-8")
    settings = "-p no:cacheprovider -n 2 --dist loadgroup -v"
    command = [sys.executable, "-m", "pytest", *settings.split()]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    ran = subprocess.run(
        [*command, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=120,
    )
    workers = re.findall(r"\[(gw\d+)\].*PASSED", ran.stdout)
    assert len(workers) == 12, ran.stdout + ran.stderr
    assert len(set(workers)) == 1
