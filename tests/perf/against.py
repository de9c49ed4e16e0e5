"""`python -m tests.perf --against REVISION`: another revision of kwsniff, built beside this one.

    this checkout        ... run 1 ...           ... run 1 ...      best and median of each,
    REVISION, installed          ... run 1 ...           ...        ratios: this one to the other

Both run in this Python with the same libraries, in turns, on the same captures.
"""

from __future__ import annotations

import compileall
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.perf.measure import Measured, process

ROOT = Path(__file__).parents[2]
Say = Callable[..., None]
_START = "import sys; from kwsniff.cli import main as each; sys.exit(getattr(each, 'main', each.run)())"
"""What the installed command of each revision does: an early one has no `main`."""
_WHERE = "import kwsniff, os; print(os.path.dirname(os.path.dirname(kwsniff.__file__)))"


def build(revision: str, folder: Path) -> Path:
    """A folder with the package of `revision`, installed there; one that was built before is used again.

    Raises RuntimeError where git does not know the revision, or the build fails.
    """
    commit = _run(["git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"], ROOT).strip()
    root = folder / f"revision-{commit[:12]}"
    if not root.exists():
        with tempfile.TemporaryDirectory(dir=folder) as place:
            clone, built = Path(place, "clone"), Path(place, "built")
            _run(["git", "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(clone)], folder)
            _run(["git", "checkout", "--quiet", "--detach", commit], clone)
            install = ["pip", "install", "--quiet", "--no-deps", "--target", str(built), str(clone)]
            _run([sys.executable, "-m", *install], folder)
            built.rename(root)
    compileall.compile_dir(root / "kwsniff", quiet=1)  # as this checkout (measure.py)
    return root


def command_of(root: Path) -> list[str]:
    """Runs the package of this root, whatever is installed. Raises RuntimeError where another one loads."""
    command = ["env", f"PYTHONPATH={root}", sys.executable, "-P"]  # not the package of the working directory
    loaded = _run([*command, "-c", _WHERE], root.parent).strip()
    if Path(loaded).resolve() != root.resolve():
        raise RuntimeError(f"Python loads kwsniff from {loaded}, not from {root}")
    return [*command, "-c", _START]


def take_turns(
    roots: Sequence[Path], capture: Path, folder: Path, rounds: int
) -> tuple[list[list[Measured]], list[str]]:
    """Runs of `analyze -o` of each root, in turns, and the tables in which their numbers of rows differ."""
    runs: list[list[Measured]] = [[] for _ in roots]
    other: set[str] = set()
    for _ in range(rounds):
        first: dict[str, int] | None = None
        for index, root in enumerate(roots):
            target = folder / "tables"
            shutil.rmtree(target, ignore_errors=True)
            words = [*command_of(root), "analyze", str(capture), "-o", str(target)]
            runs[index].append(process(words, folder / "kwsniff.out"))
            rows = rows_of(target)
            first = first or rows
            other.update(differing(first, rows))
    return runs, sorted(other)


def rows_of(folder: Path) -> dict[str, int]:
    """Rows of each table in a folder of results, by name; a table may be a file or a folder."""
    from pyarrow import parquet

    rows: dict[str, int] = {}
    for file in sorted(folder.rglob("*.parquet")):
        name = file.relative_to(folder).parts[0].removesuffix(".parquet")
        rows[name] = rows.get(name, 0) + parquet.ParquetFile(file).metadata.num_rows
    return rows


def differing(rows: dict[str, int], others: dict[str, int]) -> list[str]:
    """Names of tables that both have, with another number of rows; what is found in them is not compared."""
    shared = sorted(rows.keys() & others.keys() - {"findings", "finding_calls"})
    return [name for name in shared if rows[name] != others[name]]


def report(
    say: Say, title: str, names: Sequence[str], runs: Sequence[Sequence[Measured]], other: Sequence[str]
) -> None:
    """Best and median of wall and processor time, and their ratios to the second of the two.

    `other`: tables with another number of rows.
    """
    say(title, "wall, best", "median", "processor, best", "median", "peak memory")
    rows = []
    for name, measured in zip(names, runs, strict=True):
        if problem := next((each.problem for each in measured if each.problem), None):
            say(f"  {name}", f"not measured: {problem}")
            return
        wall = [each.seconds for each in measured]
        busy = [each.processor_seconds for each in measured]
        figures = [min(wall), statistics.median(wall), min(busy), statistics.median(busy)]
        rows.append([*figures, max(each.peak_bytes for each in measured) / 1e6])
        say(f"  {name}", *(f"{each:.2f} s" for each in figures), f"{rows[-1][-1]:,.0f} MB")
    say("  ratio", *(f"{this / other:.3f}x" for this, other in zip(*rows, strict=True)))
    say("  tables with other rows", ", ".join(other) or "none")


def _run(command: Sequence[str], folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(f"{' '.join(command[:3])}: {lines[-1] if lines else f'exit {done.returncode}'}")
    return done.stdout
