"""Runs one thing and says how long it took and how much memory it needed."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Measured:
    """Wall seconds and peak resident bytes of a process; `problem` when it did not end well."""

    seconds: float
    peak_bytes: int
    problem: str | None = None


def process(command: Sequence[str], output: Path, environment: dict[str, str] | None = None) -> Measured:
    """A whole process, its standard output going to a file; peak memory as the kernel counted it (wait4)."""
    errors = output.with_suffix(".err")
    with output.open("wb") as out, errors.open("wb") as err:
        started = time.perf_counter()
        try:
            child = subprocess.Popen(
                command, stdout=out, stderr=err, env={**os.environ, **(environment or {})}
            )
        except OSError as error:
            return Measured(0.0, 0, str(error))
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    problem = None
    if child.returncode:
        lines = errors.read_text(errors="replace").strip().splitlines()
        problem = f"exit {child.returncode}: {lines[-1] if lines else 'no message'}"
    return Measured(seconds, usage.ru_maxrss * 1024, problem)


def fastest(run: Callable[[], object], times: int) -> float:
    """Seconds of the quickest of several runs."""
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - started)
    return best
