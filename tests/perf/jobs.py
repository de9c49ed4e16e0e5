"""`python -m tests.perf.jobs [--size MB] [--keep DIR]`: what several analyzers cost and give.

Whole processes of `kwsniff analyze -o`, with each number of analyzers in turns; on one core, too, where the
system can hold a process to one. Ratios are to one analyzer. Then the processor time of each stage, by the
threads' own clocks, and what follows from it for machines with more cores: the work is never faster than its
longest stage, nor than all of it shared out.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kwsniff import analyzers
from kwsniff.analysis import analyze as analysis
from kwsniff.analysis import rows
from kwsniff.analyzers import start_analyzer
from kwsniff.core.analyzer import Analyzer
from kwsniff.layout.catalog import load_catalog
from kwsniff.sources.files import CaptureFile
from kwsniff.tables.write import TableWriter
from tests.perf.__main__ import Load, kwsniff_command, prepared, say
from tests.perf.measure import Measured, compile_sources, least, process

NUMBERS = (1, 2, 3)
CORES = (1, 2, 4, 8, 16)
TURNS = 3
LOADS = (("small", 0.5), ("mixed", 0.4), ("large", 1.0))


@dataclass(frozen=True, slots=True)
class Stages:
    """Processor seconds."""

    reading: float
    walking: float
    decoding: float
    rows: float
    """What one thread does: it counts, follows, and hands to those that write."""
    merging: float
    writing: dict[str, float]
    rest: float
    """Before the first packet and behind the last one."""

    def seconds(self, cores: int, analyzers: int) -> float:
        """The least time that all of this takes."""
        merging = self.merging if analyzers > 1 else 0.0
        walking = self.walking if analyzers > 1 else 0.0
        threads = [self.reading, walking + self.decoding / analyzers, self.rows, *self.writing.values()]
        if analyzers == 1:  # one thread reads and decodes, one counts and writes
            threads += [self.reading + self.decoding, self.rows + sum(self.writing.values())]
        work = self.reading + self.decoding + walking * analyzers + self.rows + merging
        return self.rest + max(*threads, (work + sum(self.writing.values())) / cores)


def run(load: Load, folder: Path, jobs: int, *, one_core: bool = False) -> Measured:
    target = folder / "tables"
    shutil.rmtree(target, ignore_errors=True)
    bound = ["taskset", "-c", "0"] if one_core else []
    command = [*bound, *kwsniff_command(), "analyze", str(load.path), "-o", str(target), "--jobs", str(jobs)]
    return process(command, folder / "kwsniff.out")


def compared(load: Load, folder: Path) -> None:
    """Prints times of each number of analyzers, in turns."""
    kinds: list[tuple[str, int, bool]] = [(f"--jobs {jobs}", jobs, False) for jobs in NUMBERS]
    if shutil.which("taskset"):
        kinds.append(("--jobs 1, on one core", 1, True))
    found: dict[str, list[Measured]] = {name: [] for name, _, _ in kinds}
    for _ in range(TURNS):
        for name, jobs, one_core in kinds:
            found[name].append(run(load, folder, jobs, one_core=one_core))
    first = least(found[kinds[0][0]])
    say(
        f"{load.name}, {load.megabytes:.0f} MB, {load.calls:,} calls",
        "wall",
        "processor",
        "wall",
        "processor",
    )
    for name, runs in found.items():
        best = least(runs)
        say(
            f"  {name}",
            best.problem or f"{best.seconds:.2f} s",
            f"{best.processor_seconds:.2f} s",
            f"{first.seconds / max(best.seconds, 1e-9):.2f}x",
            f"{first.processor_seconds / max(best.processor_seconds, 1e-9):.2f}x",
        )


@contextmanager
def timed(owner: Any, name: str, count: Callable[[tuple[Any, ...], float], None]) -> Iterator[None]:
    """Counts processor time of a function's own thread while it runs."""
    whole = getattr(owner, name)

    def clocked(*arguments: Any, **options: Any) -> Any:
        begun = time.thread_time()
        try:
            return whole(*arguments, **options)
        finally:
            count(arguments, time.thread_time() - begun)

    setattr(owner, name, clocked)
    try:
        yield
    finally:
        setattr(owner, name, whole)


def stages(load: Load, folder: Path) -> Stages:
    """Of an analysis by two, whose threads are told apart."""
    took: Counter[str] = Counter()
    writing: Counter[str] = Counter()

    class Clocked(Analyzer):
        def feed(self, *arguments: Any) -> None:
            begun = time.thread_time()
            try:
                super().feed(*arguments)
            finally:
                took["feeding"] += time.thread_time() - begun  # type: ignore[assignment]

    def add(name: str) -> Callable[[tuple[Any, ...], float], None]:
        return lambda _, seconds: took.update({name: seconds})  # type: ignore[dict-item]

    def write(arguments: tuple[Any, ...], seconds: float) -> None:
        writing.update({arguments[1]: seconds})  # type: ignore[dict-item]

    rows, target = rows.Rows, folder / "stages"
    vars(analyzers)["Analyzer"] = Clocked
    begun = time.process_time()
    try:
        with (
            timed(rows, "_merged", add("merging")),
            timed(rows, "_take_in_turn", add("rows")),
            timed(TableWriter, "write", write),
        ):
            analysis.analyze(load.path, output=target, jobs=2)
    finally:
        vars(analyzers)["Analyzer"] = Analyzer
        shutil.rmtree(target, ignore_errors=True)
    whole = time.process_time() - begun
    reading, walking = walked(load)
    walking -= reading
    known = took["feeding"] + took["merging"] + took["rows"] + sum(writing.values())
    return Stages(
        reading,
        walking,
        took["feeding"] - 2 * walking,
        took["rows"],
        took["merging"],
        dict(writing),
        max(whole - known - reading, 0.0),
    )


def walked(load: Load) -> tuple[float, float]:
    """Processor seconds of reading alone, and with a walk over packets that are all of other buckets."""
    begun = time.thread_time()
    with CaptureFile(load.path) as capture:
        for _ in capture.buffers():
            pass
    read = time.thread_time()
    catalog = load_catalog()
    walker = start_analyzer(catalog, bucket=(65_535, 65_536), beside=True)
    walker.open_capture("walked")
    with CaptureFile(load.path) as capture:
        for buffer in capture.buffers():
            walker.feed(buffer)
    return read - begun, time.thread_time() - read


def told(found: Stages) -> None:
    """Prints the stages, and what they make of machines."""
    much = {name: seconds for name, seconds in sorted(found.writing.items()) if seconds >= 0.005}
    writing = ", ".join(f"{name} {seconds:.2f}" for name, seconds in much.items())
    say(
        "  reading, walking, decoding",
        *(f"{x:.3f} s" for x in (found.reading, found.walking, found.decoding)),
    )
    say("  rows, merging, rest", *(f"{each:.3f} s" for each in (found.rows, found.merging, found.rest)))
    say(f"  writing: {writing}")
    one = found.seconds(1, 1)
    for cores in CORES:
        analyzers = min(range(1, 9), key=lambda n: (round(found.seconds(cores, n), 3), n))
        seconds = found.seconds(cores, analyzers)
        say(f"  {cores} cores, computed: --jobs {analyzers}", f"{seconds:.2f} s", f"{one / seconds:.2f}x")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.perf.jobs")
    parser.add_argument("--size", type=float, default=400.0, metavar="MB")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep captures here")
    args = parser.parse_args()
    compile_sources()
    with tempfile.TemporaryDirectory(prefix="kwsniff-jobs-") as temporary:
        captures, folder = args.keep or Path(temporary), Path(temporary)
        captures.mkdir(parents=True, exist_ok=True)
        for name, share in LOADS:
            load = prepared(captures, name, args.size * share)
            compared(load, folder)
            told(stages(load, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
