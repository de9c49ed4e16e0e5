"""`python -m tests.perf.training`: a profile of the core, for a build that is optimised by it.

    python -m tests.perf.training
    KWSNIFF_PROFILE=use pip wheel --no-deps .

The first command builds the core so that it counts how often each branch is taken, has it read the recordings
in captures/ and a round of each load of the benchmark, and leaves the counts in build/profiled. Every Python
that a wheel is built for is trained by itself, with the compiler that builds its wheel. GCC only. Nothing but
setuptools and Cython needs to be installed.

Source: GCC's manual, -fprofile-generate and -fprofile-use.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.perf import loads
from tests.traffic.files import frames, pcap

ROOT = Path(__file__).parents[2]
TRAINED = ROOT / "build" / "training"
"""An importable package with the core that counts."""
_READ = "from tests.perf.training import read_all; read_all()"
_AT_ONCE = 1 << 20


def build() -> None:
    """Builds the core that counts. Raises CalledProcessError where it does not compile."""
    for profile in (ROOT / "build" / "profiled").rglob("*.gcda"):
        profile.unlink()
    command = [sys.executable, "setup.py", "-q", "build", "--build-lib", str(TRAINED)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "KWSNIFF_PROFILE": "generate"}, check=True)


def captures() -> Iterator[bytes]:
    """What the core reads: each capture whole."""
    for path in sorted((ROOT / "captures").rglob("*.pcap*")):
        yield path.read_bytes()
    for scene in (loads.small(), loads.mixed(), loads.large()):
        yield pcap(frames(scene.packets()))


def read_all() -> None:
    """Reads every capture into columns, which are dropped. The counts are written when the process ends."""
    from kwsniff.core.analyzer import Analyzer
    from kwsniff.core.declared import INNER_COLUMNS, TABLES
    from kwsniff.errors import CaptureError
    from kwsniff.layout.catalog import load_catalog

    catalog, tables = load_catalog(), (*TABLES, *INNER_COLUMNS)

    def program(api_key: int, version: int, direction: int) -> tuple[bytes, tuple[str, ...]] | None:
        found = catalog.program(api_key, version, direction)
        return (found.code, found.paths) if found else None

    for data in captures():
        analyzer = Analyzer(program, catalog.spoken(), tables=tables)
        analyzer.open_capture("capture")
        try:
            for begin in range(0, len(data), _AT_ONCE):
                analyzer.feed(data[begin : begin + _AT_ONCE])
            analyzer.close_capture()
        except CaptureError:
            continue
        analyzer.finish()
        for table in tables:
            analyzer.take(table)


def main() -> int:
    build()
    found = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TRAINED), str(ROOT)])}
    return subprocess.run([sys.executable, "-P", "-c", _READ], env=found, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
