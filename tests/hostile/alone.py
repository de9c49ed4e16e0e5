"""Work in a process of its own, bounded in time and memory: what hangs or grows only fails its test."""

import os
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
GIB = 1 << 30

FEED = """
import sys
from tests.hostile import seeds
from tests.hostile.targets import LIMITS
from tests.hostile.fuzz import has_swarm
hold = bytes
if has_swarm():
    from tests.hostile.swarm import Exact as hold
for path, limits, step in ((p, l, s) for p in sys.argv[1:] for l in LIMITS for s in (1 << 30, 7)):
    data = open(path, "rb").read()
    analyzer = seeds.analyzer(limits=limits)
    analyzer.open_capture("crash")
    for at in range(0, len(data), step):
        analyzer.feed(hold(data[at : at + step]))
    analyzer.close_capture()
    analyzer.finish()
    for table in ("api_calls", "latencies", "error_codes", "connections", "anomalies"):
        analyzer.drain(table)
"""


def run_alone(script: str, *arguments: str, seconds: float = 120, memory: int = 4 * GIB) -> str:
    """What `script` writes. Fails with its last words, or because it took more than it may."""

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        preexec_fn=bound,
    )
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


def feed_alone(path: Path) -> None:
    """The capture under every set of limits, in one piece and in pieces of seven bytes."""
    run_alone(FEED, str(path), seconds=60, memory=2 * GIB)
