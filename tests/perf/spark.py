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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kwsniff.spark.pipeline import run_pipeline
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


def packed(load: Load, folder: Path) -> Path:
    """The same capture inside zstd."""
    import pyarrow as pa

    path = folder / f"{load.path.name}.zst"
    if not path.exists():
        draft = path.with_suffix(".partial")
        with load.path.open("rb") as plain, pa.CompressedOutputStream(str(draft), "zstd") as target:
            shutil.copyfileobj(plain, target, 8 << 20)
        draft.rename(path)
    return path


def compare(  # noqa: PLR0917
    spark: Any, name: str, load: Load, paths: Sequence[Path], folder: Path, buckets: Sequence[int | None]
) -> None:
    """Analyze and pipeline over the same packets, in turns: the tables, in so many buckets."""
    ours = run_kwsniff(replace(load, path=paths[0]) if len(paths) == 1 else load, folder)
    if ours.problem:
        say(name, f"not measured: {ours.problem}")
        return
    say(f"{name}: {load.megabytes:,.0f} MB, {load.calls:,} calls",
        "time", "processor", "ratio", "read / byte", "kept", "named", "worker anon")  # fmt: skip
    alone = [ours.processor_seconds]
    say("  kwsniff analyze -o", f"{ours.seconds:.2f} s", f"{alone[0]:.2f} s", "1.00x", "", "", "",
        f"{ours.peak_bytes / 1e6:,.0f} MB")  # fmt: skip
    for num in buckets:
        with Watch() as watch:
            result = run_pipeline(
                paths, folder / "pipeline", spark=spark, tables=tuple(TABLES), num_buckets=num
            )
        if result.rows["api_calls"] != load.calls:
            raise RuntimeError(f"{result.rows['api_calls']} calls instead of {load.calls}")
        alone.append(
            run_kwsniff(replace(load, path=paths[0]) if len(paths) == 1 else load, folder).processor_seconds
        )
        facts = result.facts
        ratio = watch.processor_seconds / (sum(alone[-2:]) / 2)
        say(
            f"  {facts['splits']} splits, {facts['buckets']} buckets",
            f"{watch.seconds:.2f} s",
            f"{watch.processor_seconds:.2f} s",
            f"{ratio:.2f}x",
            f"{facts['bytes_read'] / facts['capture_bytes']:.4f}",
            f"{facts['bytes_kept'] / (load.megabytes * 1e6):.4f}",
            f"{facts['bytes_named'] / (load.megabytes * 1e6):.4f}",
            f"{watch.anonymous / 1e6:,.0f} MB",
        )


def run(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.perf.spark", description=__doc__)
    parser.add_argument("--size", type=float, default=2000.0, help="megabytes (default 2000)")
    parser.add_argument("--load", choices=("large", "small", "one"), help="this one alone")
    parser.add_argument("--form", choices=("plain", "files", "packed"), help="this one alone")
    parser.add_argument("--buckets", default="", help="numbers of buckets, as 2,16,128; default: by size")
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
    buckets: list[int | None] = [int(num) for num in options.buckets.split(",") if num] or [None]
    for name in [name for name in ("large", "small") if options.load in (None, name)]:
        load = prepared(folder, name, options.size)
        forms: dict[str, Callable[[], Sequence[Path]]] = {
            "plain": lambda load=load: [load.path],  # type: ignore[misc]
            "files": lambda load=load: rotate(load, folder),  # type: ignore[misc]
            "packed": lambda load=load: [packed(load, folder)],  # type: ignore[misc]
        }
        for form in [form for form in forms if options.form in (None, form)]:
            compare(spark, f"{name} messages, {form}", load, forms[form](), folder, buckets)
    if options.load not in (None, "one"):
        return 0
    path = folder / f"one-{options.size:g}.pcap"
    calls = repeat.write(
        path, (one_connection(), one_connection()), megabytes=options.size, period_ns=loads.LARGE_PERIOD
    )
    compare(spark, "one connection", Load("one", path, calls), [path], folder, buckets)
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
