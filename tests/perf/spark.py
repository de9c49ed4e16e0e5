"""The pipeline against `kwsniff analyze`, in one run: `python -m tests.perf.spark [--size MB] [--keep DIR]`

Processor time is that of all processes: the JVM, Python's workers, the driver. The session is warm.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kwsniff.spark.pipeline import Result, run_pipeline
from kwsniff.spark.session import start_session
from kwsniff.tables.schema import TABLES
from tests.perf import loads, repeat
from tests.perf.__main__ import Load, prepared, run_kwsniff, say
from tests.traffic.tcp import MILLISECOND, Endpoint, Scene

FILES = 20
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Process:
    """What the kernel says of a process: seconds of its own and of its dead children, and resident bytes."""

    seconds: float
    anonymous: int
    resident: int
    is_worker: bool


def descendants(root: int) -> dict[int, Process]:
    """This process and all below it."""
    parents: dict[int, int] = {}
    found: dict[int, Process] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            status = (folder / "status").read_text()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        pid = int(folder.name)
        parents[pid] = int(stat[1])
        sizes = {
            line.split(":")[0]: int(line.split()[1]) << 10 for line in status.splitlines() if "kB" in line
        }
        found[pid] = Process(
            sum(map(int, stat[11:15])) / _TICKS,
            sizes.get("RssAnon", 0),
            sizes.get("VmRSS", 0),
            b"pyspark.daemon" in command,
        )

    def is_ours(pid: int) -> bool:
        while pid and pid != root:
            pid = parents.get(pid, 0)
        return pid == root

    return {pid: process for pid, process in found.items() if is_ours(pid)}


class Watch:
    """Processor seconds of all our processes, and the most memory of any worker, while it is entered."""

    def __enter__(self) -> Watch:
        self.anonymous = self.resident = 0
        self._before = self._seconds()
        self._began = time.perf_counter()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began
        self._over.set()
        self._thread.join()
        self.processor_seconds = self._seconds() - self._before

    def _seconds(self) -> float:
        return sum(process.seconds for process in descendants(os.getpid()).values())

    def _look(self) -> None:
        while not self._over.wait(0.1):
            for process in descendants(os.getpid()).values():
                if process.is_worker:
                    self.anonymous = max(self.anonymous, process.anonymous)
                    self.resident = max(self.resident, process.resident)


def rotate(load: Load, folder: Path) -> list[Path]:
    """The same packets in files of the same size, cut between packets."""
    target = folder / f"{load.path.stem}-rotated"
    if not target.exists():
        draft = target.with_suffix(".partial")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        size = load.path.stat().st_size
        with load.path.open("rb") as source:
            head = source.read(24)
            for number in range(FILES):
                with (draft / f"load.pcap{number or ''}").open("wb") as file:
                    file.write(head)
                    while source.tell() < size * (number + 1) // FILES:
                        record = source.read(16)
                        file.write(record + source.read(int.from_bytes(record[8:12], "little")))
        draft.rename(target)
    return sorted(target.iterdir())


def one_connection() -> Scene:
    """A connection that carries all of the bytes: fetches of a megabyte."""
    from tests.traffic import messages

    scene = Scene()
    script = scene.connection(Endpoint("10.2.0.1", 40_000), Endpoint("10.2.1.1", 9092), mss=loads.OFFLOADED)
    script.gap_ns = 200
    script.open()
    data = loads.record_set(1_000_000)
    exchange = messages.fetch(11, 1, {"bulk": {0: data}}, client_id="reader")
    script.call(exchange, at=2 * MILLISECOND, answer_at=3 * MILLISECOND)
    return scene


def compare(spark: Any, name: str, load: Load, paths: Sequence[Path], folder: Path) -> None:
    """Analyze and pipeline over the same packets: with the tables alone, and with the aggregates."""
    ours = min((run_kwsniff(load, folder) for _ in range(3)), key=lambda row: row.processor_seconds)
    if ours.problem:
        say(name, f"not measured: {ours.problem}")
        return
    say(
        f"{name}: {load.megabytes:,.0f} MB, {load.calls:,} calls",
        "time",
        "processor",
        "ratio",
        "worker anon",
        "rss",
    )
    say("  kwsniff analyze -o", f"{ours.seconds:.2f} s", f"{ours.processor_seconds:.2f} s", "1.00x",
        f"{ours.peak_bytes / 1e6:,.0f} MB")  # fmt: skip

    def pipeline(tables: Sequence[str] | None) -> tuple[Watch, Result]:
        runs = []
        for _ in range(2):
            with Watch() as watch:
                result = run_pipeline(paths, folder / "pipeline", spark=spark, tables=tables)
            runs.append((watch, result))
        return min(runs, key=lambda run: run[0].processor_seconds)

    def show(title: str, run: Callable[[], tuple[Watch, Result]]) -> None:
        watch, result = run()
        if result.rows["api_calls"] != load.calls:
            raise RuntimeError(f"{result.rows['api_calls']} calls instead of {load.calls}")
        ratio = watch.processor_seconds / ours.processor_seconds
        say(title, f"{watch.seconds:.2f} s", f"{watch.processor_seconds:.2f} s", f"{ratio:.2f}x",
            f"{watch.anonymous / 1e6:,.0f} MB", f"{watch.resident / 1e6:,.0f} MB")  # fmt: skip
        facts = result.facts
        share = facts["scan_bytes"] / facts["capture_bytes"]
        say(
            f"    {facts['splits']} splits, {facts['buckets']} buckets",
            f"{share:.4f} bytes handed on per byte",
        )

    show("  kwsniff pipeline, tables", lambda: pipeline(tuple(TABLES)))
    show("  kwsniff pipeline, tables and aggregates", lambda: pipeline(None))


def run(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.perf.spark", description=__doc__)
    parser.add_argument("--size", type=float, default=2000.0, help="megabytes (default 2000)")
    parser.add_argument("--load", choices=("large", "small", "one"), help="this one alone")
    parser.add_argument("--master", default="local[2]", help="default: local[2]")
    parser.add_argument("--keep", type=Path, help="folder for the captures")
    options = parser.parse_args(arguments)
    folder: Path = options.keep or Path(tempfile.gettempdir()) / "kwsniff-perf"
    folder.mkdir(parents=True, exist_ok=True)
    tiny = prepared(folder, "small", 0.2)
    began = time.perf_counter()
    spark = start_session(options.master, {"spark.local.dir": str(folder)})
    say("session", f"{time.perf_counter() - began:.1f} s")
    began = time.perf_counter()
    run_pipeline([tiny.path], folder / "pipeline", spark=spark)
    say("first pipeline, 0.2 MB", f"{time.perf_counter() - began:.1f} s")
    began = time.perf_counter()
    run_pipeline([tiny.path], folder / "pipeline", spark=spark)
    say("second pipeline, 0.2 MB", f"{time.perf_counter() - began:.1f} s")
    for name in [name for name in ("large", "small") if options.load in (None, name)]:
        load = prepared(folder, name, options.size)
        compare(spark, f"{name} messages, one file", load, [load.path], folder)
        compare(spark, f"{name} messages, {FILES} files", load, rotate(load, folder), folder)
    if options.load not in (None, "one"):
        return 0
    path = folder / f"one-{options.size:g}.pcap"
    calls = repeat.write(path, one_connection(), megabytes=options.size, period_ns=loads.LARGE_PERIOD)
    compare(spark, "one connection", Load("one", path, calls), [path], folder)
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
