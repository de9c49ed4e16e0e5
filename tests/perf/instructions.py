"""`python -m tests.perf.instructions [--load NAME] [--keep] [--against COMMIT]`: instructions, by valgrind.

Times differ from run to run, instructions hardly: the same build and the same capture give the same number
but for some tenths of a percent (addresses, hash seeds). `kwsniff analyze -o` of a small capture of each kind
is counted, less one with hardly any calls, which is what starting costs. `core`: kwsniff's compiled modules;
`all`: the process. Only the thread's own work counts, no kernel.

Figures are kept, one line per load and commit, in `history.tsv` beside this file (`--keep` adds those of
HEAD). Exit status 1 where one is more than 3 % above the latest line kept with the same compiler, C library,
Python and number of processors, or that of COMMIT: whoever changes the core mends it, or says in the commit
that adds a line what it bought.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.perf import loads, repeat
from tests.perf.measure import compile_sources
from tests.traffic.tcp import Scene

HISTORY = Path(__file__).with_name("history.tsv")
MORE = 1.03
SCENES: dict[str, tuple[Callable[[loads.Offsets], Scene], int, float]] = {
    "small": (loads.small, loads.SMALL_PERIOD, 10.0),
    "mixed": (loads.mixed, loads.SMALL_PERIOD, 10.0),
    "large": (loads.large, loads.LARGE_PERIOD, 40.0),
}
"""Load -> scene, period of its rounds, megabytes."""

_OURS = re.compile(r"kwsniff/core/.*\.so$")
_OBJECT = re.compile(r"^(c?)ob=(?:\((\d+)\))?(?: (.*))?$")


@dataclass(frozen=True, slots=True)
class Counted:
    """Millions of instructions of one process."""

    core: float
    all: float


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the history: instructions per call, and millions to start."""

    commit: str
    load: str
    core: float
    all: float
    start: float
    made_with: str = ""
    """Compiler, C library, Python, processors; empty for lines from before this was kept."""


def tools() -> str:
    """What the figures depend on besides the code."""
    asked = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=False)
    libc = " ".join(platform.libc_ver())
    return (
        f"gcc {asked.stdout.strip()}, {libc}, Python {platform.python_version()}, {os.cpu_count()} processors"
    )


def counted(capture: Path, folder: Path) -> Counted:
    """Instructions of `kwsniff analyze CAPTURE -o`. Raises RuntimeError where valgrind or kwsniff fails."""
    out = folder / "callgrind.out"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable]
    command += ["-m", "kwsniff", "analyze", str(capture), "-o", str(folder / "tables")]
    fixed = os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    fixed.pop("PYTHONDONTWRITEBYTECODE", None)  # else Python compiles every module again: half of the start
    done = subprocess.run(command, capture_output=True, text=True, env=fixed, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return read_callgrind(out)


def read_callgrind(path: Path) -> Counted:
    """Own instructions per object file, summed.

    `ob=(id) name` names the object of what follows; a line of numbers is a position and a cost; the one
    behind `calls=` is the cost of what was called, which its own lines have already.

    Source: valgrind's manual, the callgrind format.
    """
    names: dict[str, str] = {}
    costs: dict[str, int] = {}
    name, called = "", False
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if found := _OBJECT.match(line.rstrip("\n")):
                of_called, number, told = found.groups()
                if told:
                    names[number] = told  # the first to name an object may be a call of it
                if not of_called:
                    name = names.get(number, told or "")
            elif line.startswith("calls="):
                called = True
            elif line[0].isdigit() or line[0] in "+-*":
                if not called:
                    costs[name] = costs.get(name, 0) + int(line.split()[1])
                called = False
    ours = sum(cost for name, cost in costs.items() if _OURS.search(name))
    return Counted(ours / 1e6, sum(costs.values()) / 1e6)


def measured(commit: str, folder: Path, loads_: Sequence[str] = tuple(SCENES)) -> list[Line]:
    """These loads of this checkout."""
    lines = []
    made_with = tools()
    for name in loads_:
        scene, period, megabytes = SCENES[name]
        least, more = folder / f"{name}-least.pcap", folder / f"{name}.pcap"
        few = repeat.write(least, loads.rounds(scene), megabytes=0.0, period_ns=period)
        calls = repeat.write(more, loads.rounds(scene), megabytes=megabytes, period_ns=period) - few
        start, whole = counted(least, folder), counted(more, folder)
        per_call = [(whole.core - start.core) * 1e6 / calls, (whole.all - start.all) * 1e6 / calls]
        lines.append(Line(commit, name, round(per_call[0]), round(per_call[1]), round(start.all), made_with))
    return lines


def kept(path: Path = HISTORY) -> list[Line]:
    """The history, oldest first."""
    if not path.exists():
        return []
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()[1:]]
    return [
        Line(row[0], row[1], float(row[2]), float(row[3]), float(row[4]), "".join(row[5:])) for row in rows
    ]


def latest(
    history: Sequence[Line], load: str, commit: str | None = None, made_with: str | None = None
) -> Line | None:
    """What there is to compare with: the last line of this load, or the one of a commit. `made_with`: only
    those of these tools."""
    fitting = [
        line
        for line in history
        if line.load == load and (line.commit == commit if commit else made_with in (None, line.made_with))
    ]
    return fitting[-1] if fitting else None


def grown(line: Line, before: Line) -> list[str]:
    """Which figures are more than 3 % above those of before."""
    return [name for name in ("core", "all", "start") if getattr(line, name) > getattr(before, name) * MORE]


def keep(lines: Sequence[Line], path: Path = HISTORY) -> None:
    """Adds lines to the history."""
    head = "" if path.exists() else "commit\tload\tcore_per_call\tall_per_call\tstart_millions\tmade_with\n"
    rows = (
        f"{row.commit}\t{row.load}\t{row.core:.0f}\t{row.all:.0f}\t{row.start:.0f}\t{row.made_with}\n"
        for row in lines
    )
    with path.open("a", encoding="utf-8") as file:
        file.write(head + "".join(rows))


def head_commit() -> str:
    """The short name of HEAD, with `+` where the tree differs from it."""
    asked = [["git", "rev-parse", "--short=10", "HEAD"], ["git", "status", "--porcelain", "-uno"]]
    answers = (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout for command in asked
    )
    name, changes = (answer.strip() for answer in answers)
    return f"{name}+" if changes else name


def run(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.perf.instructions", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="add the figures to history.tsv")
    parser.add_argument(
        "--against", metavar="COMMIT", help="compare with this line of the history, not the last"
    )
    parser.add_argument("--load", choices=SCENES, action="append", help="this load alone (default: all)")
    options = parser.parse_args(arguments)
    if not shutil.which("valgrind"):
        sys.stderr.write("valgrind is not installed: apt-get install valgrind\n")
        return 2
    history = kept()
    compile_sources()
    with tempfile.TemporaryDirectory() as folder:
        lines = measured(head_commit(), Path(folder), options.load or [*SCENES])
    worse = False
    sys.stdout.write(f"{'load':<8}{'core per call':>16}{'all per call':>16}{'to start':>14}\n")
    for line in lines:
        before = latest(history, line.load, options.against, line.made_with)
        more = grown(line, before) if before else []
        worse |= bool(more)
        sys.stdout.write(f"{line.load:<8}{line.core:>16,.0f}{line.all:>16,.0f}{line.start:>12,.0f} M\n")
        if before is None:
            sys.stdout.write(f"  no line kept with {line.made_with}\n")
        else:
            changes = "".join(
                f"{getattr(line, name) / getattr(before, name) - 1:>+16.1%}"
                for name in ("core", "all", "start")
            )
            sys.stdout.write(
                f"  {before.commit:<6}{changes.lstrip():>16}{'  more: ' + ', '.join(more) if more else ''}\n"
            )
    if options.keep:
        keep(lines)
    return int(worse)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
