"""Runs one thing and says how long it took and how much memory it needed."""

from __future__ import annotations

import compileall
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import kwsniff

LAUNCH = Path(__file__).with_name("launch.py")


@dataclass(frozen=True, slots=True)
class Measured:
    """Wall and processor seconds and peak resident bytes of a process; `problem` when it did not end well."""

    seconds: float
    processor_seconds: float
    peak_bytes: int
    problem: str | None = None


def process(command: Sequence[str], output: Path, *, done: Sequence[int] = (0,)) -> Measured:
    """A whole process, its standard output going to a file; processor time and peak memory as from wait4.

    `done`: exit statuses that are no problem.
    """
    errors = output.with_suffix(".err")
    launcher = [sys.executable, "-S", "-E", str(LAUNCH), str(output), str(errors), *command]
    launched = subprocess.run(launcher, capture_output=True, text=True, check=False)
    if launched.returncode:
        lines = launched.stderr.strip().splitlines()
        return Measured(0.0, 0.0, 0, lines[-1] if lines else "the launcher failed")
    told = json.loads(launched.stdout)
    problem = None
    if told["exit_code"] not in done:
        lines = errors.read_text(errors="replace").strip().splitlines()
        problem = f"exit {told['exit_code']}: {lines[-1] if lines else 'no message'}"
    return Measured(told["seconds"], told["processor_seconds"], told["peak_bytes"], problem)


def least(runs: Sequence[Measured]) -> Measured:
    """The least wall and the least processor time of several runs of one command, and the greatest peak."""
    for run in runs:
        if run.problem:
            return run
    return Measured(
        min(run.seconds for run in runs),
        min(run.processor_seconds for run in runs),
        max(run.peak_bytes for run in runs),
    )


def fastest(run: Callable[[], object], times: int) -> float:
    """Seconds of the quickest of several runs."""
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - started)
    return best


def compile_sources() -> None:
    """Compiles kwsniff's modules to byte code, as an installed package has them.

    A checkout may have none, and is not given any where PYTHONDONTWRITEBYTECODE is set: every run would
    compile everything that it imports.
    """
    compileall.compile_dir(Path(kwsniff.__file__).parent, quiet=1)
