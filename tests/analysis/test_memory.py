"""What a process holds before an analysis, as a notebook does, takes nothing of the analysis' own memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("kwsniff.core.columns.allocator", reason="the core is not built")

from tests.house.tree import ROOT

_MB = 1_000_000
_LIMIT = 400 * _MB
_ASKED = """
import sys
import pyarrow.parquet
from kwsniff.memory import foreign_bytes, memory_left
held = bytearray(b"x") * int(sys.argv[1])
foreign = foreign_bytes()
added = bytearray(b"x") * int(sys.argv[2])
print(foreign, memory_left(int(sys.argv[3]) + foreign))
"""


def asked(held: int, added: int = 0, limit: int = _LIMIT) -> tuple[int, int]:
    """Bytes that are not kwsniff's, and those left for rules, of a process that holds and adds so many."""
    command = [sys.executable, "-c", _ASKED, *map(str, (held, added, limit))]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, timeout=300)
    foreign, left = map(int, done.stdout.split())
    return foreign, left


def test_the_interpreter_and_its_libraries_are_part_of_the_limit() -> None:
    foreign, left = asked(0)
    assert foreign == 0
    assert left < (_LIMIT - 110 * _MB) * 0.9  # less what the process has


def test_what_was_there_before_leaves_rules_their_memory() -> None:
    foreign, left = asked(600 * _MB)
    assert 500 * _MB < foreign < 600 * _MB
    # 150 MB of the limit are the interpreter's, 110 DuckDB's beside what it counts.
    assert left == pytest.approx((_LIMIT - 260 * _MB) * 0.9, abs=5 * _MB)


@pytest.mark.slow
def test_what_the_analysis_adds_counts() -> None:
    _, before = asked(600 * _MB)
    _, left = asked(600 * _MB, added=60 * _MB)
    assert left == pytest.approx(before - 54 * _MB, abs=8 * _MB)
    assert asked(600 * _MB, added=300 * _MB)[1] == 48 * _MB  # the least there is
