"""The targets against a core built with AddressSanitizer and UndefinedBehaviorSanitizer.

    python -m tests.hostile.sanitize [--seconds N] [--seed N] [--target NAME ...] [--keep DIR]

Builds into a temporary directory (or DIR, used as it is when something is built there), runs the
targets in a process of its own, prints executions per target. Ends with 1 and the sanitizer's report when the
core broke. Leaks are looked for without the sanitizer, by memory (test_stress.py).
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.hostile.alone import FEED
from tests.hostile.build import ROOT, SANITIZERS, build

_ASAN = "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:detect_stack_use_after_return=0"
_UBSAN = "halt_on_error=1:print_stacktrace=1"


def missing() -> str | None:
    """What this machine lacks to build and run a sanitized core, or None."""
    try:
        import Cython  # noqa: F401
    except ImportError:
        return "Cython is not installed"
    return (
        None if _library("libasan.so") and _library("libubsan.so") else "gcc has no libasan or libubsan here"
    )


def _library(name: str) -> str | None:
    try:
        said = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    except OSError:
        return None
    path = said.stdout.strip()
    return path if Path(path).is_absolute() and Path(path).exists() else None


def environment(folder: Path) -> dict[str, str]:
    """The variables under which Python runs the core built in `folder`."""
    preloaded = " ".join(filter(None, (_library("libasan.so"), _library("libubsan.so"))))
    return {
        **os.environ,
        "LD_PRELOAD": preloaded,
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": _ASAN,
        "UBSAN_OPTIONS": _UBSAN,
        "PYTHONPATH": str(folder),
        "KWSNIFF_CHECKOUT": os.environ.get("KWSNIFF_CHECKOUT", str(ROOT)),
    }


def run(folder: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """tests.hostile.fuzz over the core built in `folder`."""
    command = [sys.executable, "-m", "tests.hostile.fuzz", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )


def feed(folder: Path, captures: Sequence[Path]) -> subprocess.CompletedProcess[str]:
    """Reads these captures with the core built in `folder`, under every set of limits."""
    command = [sys.executable, "-c", FEED, *map(str, captures)]
    return subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile.sanitize", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--keep", type=Path, help="build here, and leave it")
    options, rest = parser.parse_known_args(arguments)
    lacking = missing()
    if lacking:
        print(f"cannot sanitize: {lacking}", file=sys.stderr)  # noqa: T201
        return 2
    with tempfile.TemporaryDirectory(prefix="kwsniff-sanitized-") as made:
        folder = options.keep or Path(made)
        if not (folder / "kwsniff").is_dir():
            build(folder, SANITIZERS)
        done = run(folder, rest)
    print(done.stdout, end="")  # noqa: T201
    if done.returncode:
        print("\n".join(done.stderr.splitlines()[-80:]), file=sys.stderr)  # noqa: T201
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
