"""The worked example works, and puts out what is stored in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_notebook_puts_out_what_it_shows(spark: Any) -> None:
    """In processes of its own; `spark` only says that there is a Java."""
    for library in ("nbclient", "ipykernel", "matplotlib", "kwsniff.core.capture.file_splits"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    script = (
        "import nbformat\n"
        "from tests.spark.notebook import NOTEBOOK, alike, executed, texts\n"
        "stored = texts(nbformat.read(NOTEBOOK, as_version=4))\n"
        "assert len(stored) >= 5\n"
        "found = texts(executed())\n"
        "assert all(alike(*pair) for pair in zip(found, stored, strict=True)), (found, stored)\n"
        "assert 'figure' in found\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
